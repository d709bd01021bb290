//! How two parties grow the trees of keys together, level by level.

use lanner_primitives::{Block, CorrelationRobustHash, parallel};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::{DpfError, MAX_BITS, POINTS, VALUES, WORDS};

/// One party's trees of many keys, down to a level.
///
/// ```text
/// for each level but the last:   sums = grow()
///                                both open CW = hashes_0 xor hashes_1 xor not(a_i) Delta, of which they have shares
///                                correct(CW)
/// for the last:                  sums = finish(), or for the last three finish_tail()
/// ```
///
/// and of the sums of values and of control bits of all levels they make the corrections of values, whenever they like.
pub struct Growth<'h> {
    hash: &'h CorrelationRobustHash,
    level: u32,
    groups: Vec<Trees>,
    keys: usize,
}

/// The trees of some keys.
struct Trees {
    /// The number of the first key.
    first: u64,
    keys: usize,
    /// The nodes of the last level: rows of one node of every key, the two children of a row's nodes next to each other.
    nodes: Zeroizing<Vec<Block>>,
}

/// A party's sums over all nodes of a level, for each key.
pub struct Sums {
    /// What nodes hash to, added modulo two; zeros of the last level, which has no children.
    pub hashes: Vec<Block>,
    /// What their values hash to, word by word modulo `2^64`.
    pub values: [Vec<u64>; WORDS],
    /// Their control bits, as integers: both parties' differ by 1.
    pub controls: Vec<u64>,
}

impl Sums {
    fn new(keys: usize) -> Self {
        Self {
            hashes: vec![Block::ZERO; keys],
            values: [vec![0; keys], vec![0; keys]],
            controls: vec![0; keys],
        }
    }

    /// Appends those of other keys.
    pub fn append(&mut self, others: &Self) {
        self.hashes.extend_from_slice(&others.hashes);
        for (values, others) in self.values.iter_mut().zip(&others.values) {
            values.extend_from_slice(others);
        }
        self.controls.extend_from_slice(&others.controls);
    }
}

impl TailSums {
    /// Appends those of other keys.
    pub fn append(&mut self, others: &Self) {
        self.values.extend_from_slice(&others.values);
        self.controls.extend_from_slice(&others.controls);
    }
}

impl ZeroizeOnDrop for Sums {}

impl Drop for Sums {
    fn drop(&mut self) {
        self.hashes.zeroize();
        self.values.zeroize();
        self.controls.zeroize();
    }
}

/// A party's sums over all nodes above a tail, for each key.
pub struct TailSums {
    /// What their values hash to, for each point modulo `2^16`.
    pub values: Vec<[u16; POINTS]>,
    /// Their control bits, as integers.
    pub controls: Vec<u64>,
}

impl ZeroizeOnDrop for TailSums {}

impl Drop for TailSums {
    fn drop(&mut self) {
        self.values.zeroize();
        self.controls.zeroize();
    }
}

/// Keys whose trees are grown at a time: the nodes of a row are hashed in one go, with the tweaks of their keys.
const GROUP: usize = 256;

impl<'h> Growth<'h> {
    /// Trees of a root each, this party's part of Delta: the low bits of both parties' parts differ. `first` is the number of the first of the keys, below
    /// `2^62` with all others of the same Delta.
    #[must_use]
    pub fn new(hash: &'h CorrelationRobustHash, root: Block, keys: usize, first: u64) -> Self {
        let group = |start: usize| {
            let keys = GROUP.min(keys - start);
            Trees { first: first + start as u64, keys, nodes: Zeroizing::new(vec![root; keys]) }
        };
        Self { hash, level: 0, groups: (0..keys).step_by(GROUP).map(group).collect(), keys }
    }

    /// Grows a level, which is to be corrected next; the sums over the nodes above it.
    ///
    /// # Errors
    /// [`DpfError::Shape`] if there are [`MAX_BITS`] levels.
    pub fn grow(&mut self) -> Result<Sums, DpfError> {
        if self.level + 1 >= MAX_BITS {
            return Err(DpfError::Shape { what: "the levels of a tree" });
        }
        self.level += 1;
        let (sums, hash) = (Sums::new(self.keys), self.hash);
        Ok(self.add(sums, |trees, hashes| trees.grow(hash, hashes)))
    }

    /// The sums over the nodes of the last level, which has no more children.
    #[must_use]
    pub fn finish(mut self) -> Sums {
        let sums = Sums::new(self.keys);
        self.add(sums, |_, _| ())
    }

    /// The sums over the nodes of the last level, which has a tail.
    #[must_use]
    pub fn finish_tail(self) -> TailSums {
        let (hash, keys) = (self.hash, self.keys);
        let mut sums = TailSums { values: vec![[0; POINTS]; keys], controls: vec![0; keys] };
        let of_groups = sums.values.chunks_mut(GROUP).zip(sums.controls.chunks_mut(GROUP));
        parallel::for_each(self.groups.iter().zip(of_groups), |(trees, (values, controls))| {
            trees.add_tail(hash, values, controls);
        });
        sums
    }

    /// Adds the sums of values and control bits, then does what is left with each group and its sums of hashes.
    fn add(&mut self, mut sums: Sums, then: impl Fn(&mut Trees, &mut [Block]) + Send + Sync) -> Sums {
        let hash = self.hash;
        let [low, high] = &mut sums.values;
        let values = low.chunks_mut(GROUP).zip(high.chunks_mut(GROUP)).zip(sums.controls.chunks_mut(GROUP));
        let items = self.groups.iter_mut().zip(sums.hashes.chunks_mut(GROUP)).zip(values);
        parallel::for_each(items, |((trees, hashes), ((low, high), controls))| {
            trees.add(hash, [low, high, controls]);
            then(trees, hashes);
        });
        sums
    }

    /// Corrects the last level, given the opened correction of each key.
    ///
    /// # Errors
    /// [`DpfError::Shape`] unless there is one for each key, and a level was grown.
    pub fn correct(&mut self, corrections: &[Block]) -> Result<(), DpfError> {
        if corrections.len() != self.keys || self.level == 0 {
            return Err(DpfError::Shape { what: "the corrections of a level" });
        }
        parallel::for_each(self.groups.iter_mut().zip(corrections.chunks(GROUP)), |(trees, corrections)| {
            trees.correct(corrections);
        });
        Ok(())
    }
}

impl Trees {
    /// Adds what values hash to, and control bits.
    fn add(&self, hash: &CorrelationRobustHash, [low, high, controls]: [&mut [u64]; 3]) {
        let mut hashed = Zeroizing::new([Block::ZERO; GROUP]);
        let hashed = &mut hashed[..self.keys];
        for nodes in self.nodes.chunks(self.keys) {
            hashed.copy_from_slice(nodes);
            hash.hash_in_place(hashed, self.first + VALUES);
            for (key, (node, value)) in nodes.iter().zip(&*hashed).enumerate() {
                controls[key] += node.0 as u64 & 1;
                low[key] = low[key].wrapping_add(value.0 as u64);
                high[key] = high[key].wrapping_add((value.0 >> 64) as u64);
            }
        }
    }

    /// Adds what values of all points hash to, and control bits.
    fn add_tail(&self, hash: &CorrelationRobustHash, values: &mut [[u16; POINTS]], controls: &mut [u64]) {
        let mut hashed = Zeroizing::new([Block::ZERO; GROUP]);
        let hashed = &mut hashed[..self.keys];
        for nodes in self.nodes.chunks(self.keys) {
            hashed.copy_from_slice(nodes);
            hash.hash_in_place(hashed, self.first + VALUES);
            for (((node, value), sums), controls) in
                nodes.iter().zip(&*hashed).zip(&mut *values).zip(&mut *controls)
            {
                *controls += node.0 as u64 & 1;
                for (sum, point) in sums.iter_mut().zip(points(*value)) {
                    *sum = sum.wrapping_add(point);
                }
            }
        }
    }

    /// Makes all children, and adds what nodes hash to.
    fn grow(&mut self, hash: &CorrelationRobustHash, hashes: &mut [Block]) {
        let mut children = Zeroizing::new(vec![Block::ZERO; 2 * self.nodes.len()]);
        for (nodes, children) in self.nodes.chunks(self.keys).zip(children.chunks_mut(2 * self.keys)) {
            let (left, right) = children.split_at_mut(self.keys);
            left.copy_from_slice(nodes);
            hash.hash_in_place(left, self.first);
            for (((left, right), node), sum) in left.iter().zip(right).zip(nodes).zip(hashes.iter_mut()) {
                *right = *left ^ *node;
                *sum ^= *left;
            }
        }
        self.nodes = children;
    }

    fn correct(&mut self, corrections: &[Block]) {
        for children in self.nodes.chunks_mut(2 * self.keys) {
            let (left, right) = children.split_at_mut(corrections.len());
            for ((left, right), correction) in left.iter_mut().zip(right).zip(corrections) {
                // The sum of both children is their node.
                let corrected = Block::mask((*left ^ *right).lsb()) & *correction;
                *left ^= corrected;
                *right ^= corrected;
            }
        }
    }
}

/// The values of all points of a tail that its node hashes to.
pub(crate) fn points(hash: Block) -> [u16; POINTS] {
    std::array::from_fn(|point| (hash.0 >> (16 * point)) as u16)
}
