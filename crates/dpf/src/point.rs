//! Distributed point functions: keys of two parties for `f(x) = 1 if x = a, else 0`, which hide `a`, expanded over the whole domain.
//!
//! The trees are those of comparisons: on the way to a both parties' nodes differ by Delta, and so their control bits t, elsewhere they are alike. Trees end early
//! ([`PointShape`]): a node above two or four points hashes to as many words G, and
//!
//! ```text
//! (-1)^party (G_i(s) + t W_i),   W_i = (t_0 - t_1) ([i is the place of a] - (G_i(s_0) - G_i(s_1)))
//! ```
//!
//! add up to 1 at a and to 0 elsewhere. As all nodes off the way cancel, the corrections follow from sums over all nodes. The keys of a [`GROUP`] share a key of the
//! cipher.

use std::ops::Range;

use lanner_primitives::{Block, CorrelationRobustHash, parallel};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::salts::CHILDREN;
use crate::{DpfError, GROUP, MAX_BITS, Salts};

/// The most words of a node.
pub const POINT_WORDS: usize = 4;

/// Tweak of the first key's words. All trees of a party have one root, so each key of a group has tweaks of its own: from [`CHILDREN`] and from here on.
const WORDS: u64 = CHILDREN + GROUP as u64;

/// What point functions are of and into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PointShape {
    bits: u32,
    to: u32,
}

impl PointShape {
    /// Of points of so many bits, with values modulo `2^to`.
    ///
    /// # Errors
    /// [`DpfError::Shape`] unless there are 3 to [`MAX_BITS`] bits, and 2 to 62 of values.
    pub fn new(bits: u32, to: u32) -> Result<Self, DpfError> {
        if !(3..=MAX_BITS).contains(&bits) || !(2..=62).contains(&to) {
            return Err(DpfError::Shape { what: "the bits of points" });
        }
        Ok(Self { bits, to })
    }

    /// Bits of a point.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.bits
    }

    /// Bits of a value.
    #[must_use]
    pub const fn to(self) -> u32 {
        self.to
    }

    /// Bits of a point below the last nodes.
    #[must_use]
    pub const fn below(self) -> u32 {
        if self.to <= u32::BITS { 2 } else { 1 }
    }

    /// Words of a last node: one for each point below it.
    #[must_use]
    pub const fn words(self) -> usize {
        1 << self.below()
    }

    /// Levels of nodes that are corrected.
    #[must_use]
    pub const fn levels(self) -> usize {
        (self.bits - self.below()) as usize
    }

    /// The words of a hash.
    fn split(self, hash: Block) -> [u64; POINT_WORDS] {
        std::array::from_fn(|word| match self.below() {
            2 => u64::from((hash.0 >> (32 * word)) as u32),
            _ if word < 2 => (hash.0 >> (64 * word)) as u64,
            _ => 0,
        })
    }
}

/// A party's sums over the last nodes, for each key.
pub struct PointSums {
    /// What nodes hash to, word by word modulo `2^to` or more.
    pub values: Vec<[u64; POINT_WORDS]>,
    /// Their control bits, as integers: both parties' differ by 1.
    pub controls: Vec<u64>,
}

impl ZeroizeOnDrop for PointSums {}

impl Drop for PointSums {
    fn drop(&mut self) {
        self.values.zeroize();
        self.controls.zeroize();
    }
}

/// The trees of a group of keys: rows of one node of every key, the two children of a row's nodes next to each other.
struct Trees {
    hash: CorrelationRobustHash,
    keys: usize,
    nodes: Zeroizing<Vec<Block>>,
}

impl Trees {
    /// The next level, not corrected; what each key's nodes hash to in sum.
    fn grow(&mut self) -> Vec<Block> {
        let Self { hash, keys, nodes } = self;
        let mut next = Zeroizing::new(Vec::with_capacity(2 * nodes.len()));
        let mut sums = vec![Block::ZERO; *keys];
        for row in nodes.chunks(*keys) {
            let start = next.len();
            next.extend_from_slice(row);
            hash.hash_in_place(&mut next[start..], CHILDREN);
            next.extend_from_within(start..);
            let (left, right) = next[start..].split_at_mut(row.len());
            for (((left, right), node), sum) in left.iter().zip(right).zip(row).zip(&mut sums) {
                *right = *left ^ *node;
                *sum ^= *left;
            }
        }
        self.nodes = next;
        sums
    }

    /// Corrects the children of nodes whose control bit is set: a node is the sum of its children.
    fn correct(&mut self, corrections: &[Block]) {
        for pair in self.nodes.chunks_mut(2 * self.keys) {
            let (left, right) = pair.split_at_mut(self.keys);
            for ((left, right), correction) in left.iter_mut().zip(right).zip(corrections) {
                let correction = Block::mask((*left ^ *right).lsb()) & *correction;
                *left ^= correction;
                *right ^= correction;
            }
        }
    }

    /// What the last nodes hash to, row by row.
    fn hashed(&self) -> Zeroizing<Vec<Block>> {
        let mut hashed = self.nodes.clone();
        hashed.chunks_mut(self.keys).for_each(|row| self.hash.hash_in_place(row, WORDS));
        hashed
    }
}

/// One party's trees of some keys, from the first of a group on.
pub struct PointGrowth {
    shape: PointShape,
    groups: Vec<Trees>,
}

impl PointGrowth {
    /// Trees of a root each, this party's part of Delta: the low bits of both parties' parts differ. The first key is the first of a group.
    ///
    /// # Errors
    /// [`DpfError::Shape`] if it is not.
    pub fn new(shape: PointShape, salts: &Salts, root: Block, keys: Range<usize>) -> Result<Self, DpfError> {
        if !keys.start.is_multiple_of(GROUP) {
            return Err(DpfError::Shape { what: "the first of a group of keys" });
        }
        let starts = keys.clone().step_by(GROUP);
        let trees = |start: usize| {
            let count = GROUP.min(keys.end - start);
            let nodes = Zeroizing::new(vec![root; count]);
            Trees { hash: salts.group(start / GROUP), keys: count, nodes }
        };
        Ok(Self { shape, groups: starts.map(trees).collect() })
    }

    /// Grows a level, which is to be corrected next: what each key's nodes above it hash to in sum.
    #[must_use]
    pub fn grow(&mut self) -> Vec<Block> {
        let mut sums: Vec<Vec<Block>> = vec![Vec::new(); self.groups.len()];
        parallel::for_each(self.groups.iter_mut().zip(&mut sums), |(trees, sums)| *sums = trees.grow());
        sums.concat()
    }

    /// Corrects the last level, given the opened correction of each key.
    ///
    /// # Errors
    /// [`DpfError::Shape`] unless there is one for each key.
    pub fn correct(&mut self, corrections: &[Block]) -> Result<(), DpfError> {
        if corrections.len() != self.groups.iter().map(|trees| trees.keys).sum::<usize>() {
            return Err(DpfError::Shape { what: "the corrections of a level" });
        }
        let items = self.groups.iter_mut().zip(corrections.chunks(GROUP));
        parallel::for_each(items, |(trees, corrections)| trees.correct(corrections));
        Ok(())
    }

    /// The sums over the last nodes.
    #[must_use]
    pub fn finish(&self) -> PointSums {
        let mut sums = PointSums { values: Vec::new(), controls: Vec::new() };
        for trees in &self.groups {
            let from = sums.values.len();
            sums.values.resize(from + trees.keys, [0; POINT_WORDS]);
            sums.controls.resize(from + trees.keys, 0);
            let hashed = trees.hashed();
            for (row, hashed) in trees.nodes.chunks(trees.keys).zip(hashed.chunks(trees.keys)) {
                let of_keys = sums.values[from..].iter_mut().zip(&mut sums.controls[from..]);
                for ((values, controls), (node, hash)) in of_keys.zip(row.iter().zip(hashed)) {
                    *controls += node.0 as u64 & 1;
                    for (sum, word) in values.iter_mut().zip(self.shape.split(*hash)) {
                        *sum = sum.wrapping_add(word);
                    }
                }
            }
        }
        sums
    }
}

/// One party's keys, with the root that all have: its secret. All else is opened.
pub struct PointKeys {
    shape: PointShape,
    root: Block,
    is_second: bool,
    nodes: Vec<Vec<Block>>,
    words: Vec<[u64; POINT_WORDS]>,
}

impl ZeroizeOnDrop for PointKeys {}

impl Drop for PointKeys {
    fn drop(&mut self) {
        self.root.zeroize();
    }
}

impl PointKeys {
    /// The keys of a party, the first or the second, with the corrections of nodes, the highest level's first, and of words.
    ///
    /// # Errors
    /// [`DpfError::Shape`] unless there is one of each level for as many keys.
    pub fn new(
        shape: PointShape,
        root: Block,
        is_second: bool,
        nodes: Vec<Vec<Block>>,
        words: Vec<[u64; POINT_WORDS]>,
    ) -> Result<Self, DpfError> {
        if nodes.len() != shape.levels() || nodes.iter().any(|level| level.len() != words.len()) {
            return Err(DpfError::Shape { what: "the corrections of keys" });
        }
        Ok(Self { shape, root, is_second, nodes, words })
    }

    /// How many there are.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.words.len()
    }

    /// The party's root: its secret.
    #[must_use]
    pub const fn root(&self) -> Block {
        self.root
    }

    /// The corrections of nodes, level by level.
    #[must_use]
    pub fn nodes(&self) -> &[Vec<Block>] {
        &self.nodes
    }

    /// The corrections of words.
    #[must_use]
    pub fn words(&self) -> &[[u64; POINT_WORDS]] {
        &self.words
    }

    /// Writes to each key's item what `of` makes of this party's shares of `f` at all points, modulo `2^to`, in their order.
    ///
    /// # Errors
    /// [`DpfError::Shape`] unless there is an item for each key.
    pub fn expand<T: Send>(
        &self,
        salts: &Salts,
        items: &mut [T],
        of: impl Fn(usize, &[u64], &mut T) + Sync,
    ) -> Result<(), DpfError> {
        if items.len() != self.count() {
            return Err(DpfError::Shape { what: "the items of keys" });
        }
        let groups = items.chunks_mut(GROUP).enumerate();
        parallel::for_each(groups, |(number, items)| {
            let start = number * GROUP;
            let nodes = Zeroizing::new(vec![self.root; items.len()]);
            let mut trees = Trees { hash: salts.group(number), keys: items.len(), nodes };
            for level in &self.nodes {
                trees.grow();
                trees.correct(&level[start..start + items.len()]);
            }
            let hashed = trees.hashed();
            let mut shares = Zeroizing::new(vec![0; 1 << self.shape.bits]);
            for (key, item) in items.iter_mut().enumerate() {
                let rows = trees.nodes.iter().zip(hashed.iter()).skip(key).step_by(trees.keys);
                for ((node, hash), shares) in rows.zip(shares.chunks_mut(self.shape.words())) {
                    self.shares(*node, *hash, &self.words[start + key], shares);
                }
                of(start + key, &shares, item);
            }
        });
        Ok(())
    }

    /// The shares at the points below a node.
    fn shares(&self, node: Block, hash: Block, words: &[u64; POINT_WORDS], shares: &mut [u64]) {
        let control = (node.0 as u64 & 1).wrapping_neg();
        let mask = u64::MAX >> (u64::BITS - self.shape.to);
        for ((share, value), word) in shares.iter_mut().zip(self.shape.split(hash)).zip(words) {
            let sum = value.wrapping_add(word & control);
            *share = (if self.is_second { sum.wrapping_neg() } else { sum }) & mask;
        }
    }
}
