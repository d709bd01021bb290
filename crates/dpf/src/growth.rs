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
    root: Block,
    level: u32,
    groups: Vec<Trees>,
    keys: usize,
    /// What corrects the nodes of the last level, of each key, until these are read; none of the roots.
    corrections: Vec<Block>,
}

/// The trees of some keys.
#[derive(Default)]
struct Trees {
    /// The number of the first key.
    first: u64,
    keys: usize,
    /// The nodes of the last level, not corrected: rows of one node of every key, the two children of a row's nodes next to each other.
    nodes: Zeroizing<Vec<Block>>,
    /// Room for the next level.
    next: Zeroizing<Vec<Block>>,
}

/// A row of nodes.
type Row = Zeroizing<[Block; GROUP]>;

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

impl ZeroizeOnDrop for Growth<'_> {}

impl Drop for Growth<'_> {
    fn drop(&mut self) {
        self.root.zeroize();
    }
}

impl<'h> Growth<'h> {
    /// Trees of a root each, this party's part of Delta: the low bits of both parties' parts differ. `first` is the number of the first of the keys, below
    /// `2^62` with all others of the same Delta.
    #[must_use]
    pub fn new(hash: &'h CorrelationRobustHash, root: Block, keys: usize, first: u64) -> Self {
        let mut growth = Self { hash, root, level: 0, groups: Vec::new(), keys: 0, corrections: Vec::new() };
        growth.restart(keys, first);
        growth
    }

    /// Begins the trees of other keys of the same root, in the same memory.
    pub fn restart(&mut self, keys: usize, first: u64) {
        (self.level, self.keys) = (0, keys);
        self.corrections.clear();
        self.groups.resize_with(keys.div_ceil(GROUP), Trees::default);
        for (trees, start) in self.groups.iter_mut().zip((0..).step_by(GROUP)) {
            (trees.first, trees.keys) = (first + start as u64, GROUP.min(keys - start));
            trees.nodes.clear();
            trees.nodes.resize(trees.keys, self.root);
        }
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
        Ok(self.add(true))
    }

    /// The sums over the nodes of the last level, which has no more children.
    #[must_use]
    pub fn finish(&mut self) -> Sums {
        self.add(false)
    }

    /// The sums over the nodes of the last level, which has a tail.
    #[must_use]
    pub fn finish_tail(&self) -> TailSums {
        let Self { hash, keys, corrections, groups, .. } = self;
        let mut sums = TailSums { values: vec![[0; POINTS]; *keys], controls: vec![0; *keys] };
        let of_groups = sums.values.chunks_mut(GROUP).zip(sums.controls.chunks_mut(GROUP));
        let items = groups.iter().zip(of_groups).zip((0..).step_by(GROUP));
        parallel::for_each(items, |((trees, (values, controls)), from)| {
            let mut hashed = Row::new([Block::ZERO; GROUP]);
            trees.each_row(corrections.get(from..), |row| {
                add_controls(row, controls);
                for (sums, value) in values.iter_mut().zip(trees.values(hash, row, &mut hashed)) {
                    for (sum, point) in sums.iter_mut().zip(points(*value)) {
                        *sum = sum.wrapping_add(point);
                    }
                }
            });
        });
        sums
    }

    /// The sums over the nodes of the last level, which then gets children, if it does.
    fn add(&mut self, grows: bool) -> Sums {
        let Self { hash, groups, corrections, .. } = self;
        let mut sums = Sums::new(self.keys);
        let [low, high] = &mut sums.values;
        let values = low.chunks_mut(GROUP).zip(high.chunks_mut(GROUP)).zip(sums.controls.chunks_mut(GROUP));
        let items =
            groups.iter_mut().zip(sums.hashes.chunks_mut(GROUP)).zip(values).zip((0..).step_by(GROUP));
        parallel::for_each(items, |(((trees, hashes), ((low, high), controls)), from)| {
            let mut next = std::mem::take(&mut trees.next);
            // What would be moved when the room grows is wiped before.
            next.zeroize();
            next.reserve_exact(if grows { 2 * trees.nodes.len() } else { 0 });
            let mut hashed = Row::new([Block::ZERO; GROUP]);
            trees.each_row(corrections.get(from..), |row| {
                add_controls(row, controls);
                let values = trees.values(hash, row, &mut hashed);
                for ((low, high), value) in low.iter_mut().zip(&mut *high).zip(values) {
                    *low = low.wrapping_add(value.0 as u64);
                    *high = high.wrapping_add((value.0 >> 64) as u64);
                }
                if grows {
                    trees.grow(hash, row, &mut next, hashes);
                }
            });
            trees.next = std::mem::replace(&mut trees.nodes, next);
        });
        corrections.clear();
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
        self.corrections = corrections.to_vec();
        Ok(())
    }
}

impl Trees {
    /// Reads all rows, corrected where there are corrections.
    fn each_row(&self, corrections: Option<&[Block]>, mut read: impl FnMut(&[Block])) {
        let Some(corrections) = corrections.filter(|corrections| !corrections.is_empty()) else {
            return self.nodes.chunks(self.keys).for_each(read);
        };
        let mut rows = [(); 2].map(|()| Row::new([Block::ZERO; GROUP]));
        for pair in self.nodes.chunks(2 * self.keys) {
            let (left, right) = pair.split_at(self.keys);
            let [corrected_left, corrected_right] = &mut rows;
            let corrected = corrected_left.iter_mut().zip(corrected_right.iter_mut());
            for ((corrected, (left, right)), correction) in
                corrected.zip(left.iter().zip(right)).zip(corrections)
            {
                // The sum of both children is their node.
                let correction = Block::mask((*left ^ *right).lsb()) & *correction;
                (*corrected.0, *corrected.1) = (*left ^ correction, *right ^ correction);
            }
            for row in &rows {
                read(&row[..self.keys]);
            }
        }
    }

    /// What values of a row hash to.
    fn values<'r>(&self, hash: &CorrelationRobustHash, row: &[Block], hashed: &'r mut Row) -> &'r [Block] {
        let hashed = &mut hashed[..row.len()];
        hashed.copy_from_slice(row);
        hash.hash_in_place(hashed, self.first + VALUES);
        hashed
    }

    /// Appends the children of a row, and adds what it hashes to.
    fn grow(&self, hash: &CorrelationRobustHash, row: &[Block], next: &mut Vec<Block>, hashes: &mut [Block]) {
        let start = next.len();
        next.extend_from_slice(row);
        hash.hash_in_place(&mut next[start..], self.first);
        next.extend_from_within(start..);
        let (left, right) = next[start..].split_at_mut(row.len());
        for (((left, right), node), sum) in left.iter().zip(right).zip(row).zip(hashes) {
            *right = *left ^ *node;
            *sum ^= *left;
        }
    }
}

fn add_controls(row: &[Block], controls: &mut [u64]) {
    controls.iter_mut().zip(row).for_each(|(controls, node)| *controls += node.0 as u64 & 1);
}

/// The values of all points of a tail that its node hashes to.
pub(crate) fn points(hash: Block) -> [u16; POINTS] {
    std::array::from_fn(|point| (hash.0 >> (16 * point)) as u16)
}
