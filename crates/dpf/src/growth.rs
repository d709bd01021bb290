//! How two parties grow the trees of keys together, level by level.

use lanner_primitives::{Block, CorrelationRobustHash, parallel};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::{DpfError, MAX_BITS, VALUES, WORDS};

/// One party's trees of many keys, down to a level.
///
/// ```text
/// for each level:   sums = grow()
///                   both open CW = hashes_0 xor hashes_1 xor not(a_i) Delta, of which they have shares
///                   correct(CW)
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
    /// What nodes hash to, added modulo two.
    pub hashes: Vec<Block>,
    /// What their values hash to, word by word modulo `2^64`.
    pub values: [Vec<u64>; WORDS],
    /// Their control bits, as integers: both parties' differ by 1.
    pub controls: Vec<u64>,
}

impl ZeroizeOnDrop for Sums {}

impl Drop for Sums {
    fn drop(&mut self) {
        self.hashes.zeroize();
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
        if self.level >= MAX_BITS {
            return Err(DpfError::Shape { what: "the levels of a tree" });
        }
        self.level += 1;
        let (hash, keys) = (self.hash, self.keys);
        let (mut hashes, mut controls) = (vec![Block::ZERO; keys], vec![0; keys]);
        let [mut low, mut high] = [vec![0; keys], vec![0; keys]];
        let [lows, highs] = [&mut low, &mut high].map(|words| words.chunks_mut(GROUP));
        let sums = hashes.chunks_mut(GROUP).zip(controls.chunks_mut(GROUP)).zip(lows.zip(highs));
        parallel::for_each(self.groups.iter_mut().zip(sums), |(trees, ((hashes, controls), values))| {
            trees.grow(hash, hashes, controls, values);
        });
        Ok(Sums { hashes, values: [low, high], controls })
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
    fn grow(
        &mut self,
        hash: &CorrelationRobustHash,
        hashes: &mut [Block],
        controls: &mut [u64],
        (low, high): (&mut [u64], &mut [u64]),
    ) {
        let mut children = Zeroizing::new(vec![Block::ZERO; 2 * self.nodes.len()]);
        let mut hashed = Zeroizing::new([Block::ZERO; GROUP]);
        let hashed = &mut hashed[..self.keys];
        let rows = self.nodes.chunks(self.keys).zip(children.chunks_mut(2 * self.keys));
        for (nodes, children) in rows {
            let (left, right) = children.split_at_mut(self.keys);
            left.copy_from_slice(nodes);
            hash.hash_in_place(left, self.first);
            hashed.copy_from_slice(nodes);
            hash.hash_in_place(hashed, self.first + VALUES);
            for (key, node) in nodes.iter().enumerate() {
                right[key] = left[key] ^ *node;
                hashes[key] ^= left[key];
                controls[key] += node.0 as u64 & 1;
                low[key] = low[key].wrapping_add(hashed[key].0 as u64);
                high[key] = high[key].wrapping_add((hashed[key].0 >> 64) as u64);
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
