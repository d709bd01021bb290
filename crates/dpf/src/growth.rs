//! How two parties grow the trees of keys together, level by level.

use std::ops::Range;

use lanner_primitives::{Block, CorrelationRobustHash, add_by_parents, low_bits, parallel};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::salts::{CHILDREN, VALUES};
use crate::{DpfError, GROUP, Salts, Shape};

/// One party's trees of many keys, down to a level.
///
/// ```text
/// for each level but the last:   sums()
///                                both open CW = hashes_0 xor hashes_1 xor not(a_i) Delta, of which they have shares
///                                correct(CW)
/// for the last:                  sums()
/// ```
///
/// and of the sums of values and of control bits of all stops they make the corrections of values, whenever they like.
///
/// Nodes of the last levels, the most, are not stored but grown anew for each level, a piece of a tree at a time, in the processor's nearest cache.
pub struct Growth<'s> {
    shape: Shape,
    salts: &'s Salts,
    /// This party's part of Delta.
    root: Block,
    keys: Range<usize>,
    depth: usize,
    is_read: bool,
    /// The nodes of the last level that is stored, key by key; both children of each are as far apart as there are nodes.
    nodes: Zeroizing<Vec<Block>>,
    /// Of the levels behind the first, of each key.
    corrections: Vec<Vec<Block>>,
}

/// A party's sums over all nodes of a level, for each key.
#[derive(Default)]
pub struct Sums {
    /// What nodes hash to, added modulo two; none of the last level, which has no children.
    pub hashes: Vec<Block>,
    /// At a stop what their values hash to, in as many hashes as these take ([`Shape::place`]), number by number ([`Shape::number`]).
    pub values: Vec<Vec<Block>>,
    /// At a stop their control bits, as integers: both parties' differ by 1.
    pub controls: Vec<u64>,
}

impl Sums {
    fn new(shape: Shape, depth: usize, keys: usize) -> Self {
        let zeros = |are_due: bool| if are_due { vec![Block::ZERO; keys] } else { Vec::new() };
        let is_stop = shape.stop(depth).is_some();
        Self {
            hashes: zeros(depth < shape.depth()),
            values: if is_stop { vec![zeros(true); shape.blocks(depth)] } else { Vec::new() },
            controls: vec![0; if is_stop { keys } else { 0 }],
        }
    }

    /// Those of all keys of one level, in vectors that do not grow: growing would leave copies behind.
    fn joined(parts: &[Self]) -> Self {
        fn all<'p, T: Copy + 'p>(parts: impl Iterator<Item = &'p Vec<T>>) -> Vec<T> {
            parts.map(Vec::as_slice).collect::<Vec<_>>().concat()
        }
        let blocks = parts.first().map_or(0, |part| part.values.len());
        Self {
            hashes: all(parts.iter().map(|part| &part.hashes)),
            values: (0..blocks).map(|block| all(parts.iter().map(|part| &part.values[block]))).collect(),
            controls: all(parts.iter().map(|part| &part.controls)),
        }
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

impl ZeroizeOnDrop for Growth<'_> {}

impl Drop for Growth<'_> {
    fn drop(&mut self) {
        self.root.zeroize();
    }
}

/// Levels of the deepest nodes that are not stored.
const FLYING: usize = 2;

/// Nodes of a stored level whose children are grown at a time.
const PIECE: usize = 128;

/// Nodes that are hashed at a time.
const ROOM: usize = PIECE << FLYING;

impl<'s> Growth<'s> {
    /// No trees yet; `root` is this party's part of Delta: the low bits of both parties' parts differ.
    #[must_use]
    pub fn new(shape: Shape, salts: &'s Salts, root: Block) -> Self {
        let (nodes, corrections) = (Zeroizing::new(Vec::new()), Vec::new());
        Self { shape, salts, root, keys: 0..0, depth: 0, is_read: false, nodes, corrections }
    }

    /// Nodes of a key that are stored.
    #[must_use]
    pub const fn stored(shape: Shape) -> usize {
        1 << stored_depth(shape)
    }

    /// Begins the trees of keys of these numbers, in the same memory, with shares of their thresholds' highest bit times Delta; the first number
    /// is a multiple of [`GROUP`].
    ///
    /// # Errors
    /// [`DpfError::Shape`] if there are not as many shares, or the first number is another one.
    pub fn restart(
        &mut self,
        keys: Range<usize>,
        shares: impl ExactSizeIterator<Item = Block>,
    ) -> Result<(), DpfError> {
        if shares.len() != keys.len() || !keys.start.is_multiple_of(GROUP) {
            return Err(DpfError::Shape { what: "the keys of trees" });
        }
        let stored = Self::stored(self.shape);
        if self.nodes.len() < keys.len() * stored {
            // What would be moved when the room grows is none.
            self.nodes = Zeroizing::new(vec![Block::ZERO; keys.len() * stored]);
        }
        for (nodes, share) in self.nodes.chunks_mut(stored).zip(shares) {
            (nodes[0], nodes[1]) = (share ^ self.root, share);
        }
        (self.keys, self.depth, self.is_read) = (keys, 1, false);
        self.corrections.clear();
        Ok(())
    }

    /// The sums over the nodes of the level; once.
    ///
    /// # Errors
    /// [`DpfError::Shape`] if they were read.
    pub fn sums(&mut self) -> Result<Sums, DpfError> {
        if std::mem::replace(&mut self.is_read, true) {
            return Err(DpfError::Shape { what: "the sums of a level" });
        }
        let Self { shape, salts, keys, depth, corrections, nodes, .. } = self;
        let (stored, first) = (Self::stored(*shape), keys.start / GROUP);
        let groups = nodes[..keys.len() * stored].chunks_mut(GROUP * stored).enumerate();
        let sums = parallel::map(groups, |(number, nodes)| {
            let corrections = corrections.iter().map(|of_keys| &of_keys[number * GROUP..]).collect();
            let hash = salts.group(first + number);
            let mut group = Group {
                shape: *shape,
                depth: *depth,
                hash,
                corrections,
                sums: Sums::new(*shape, *depth, nodes.len() / stored),
                room: Zeroizing::new(vec![Block::ZERO; ROOM]),
                words: Zeroizing::new(Vec::with_capacity(ROOM / 64)),
            };
            let mut flying = Zeroizing::new(vec![Block::ZERO; ROOM]);
            nodes.chunks_mut(stored).enumerate().for_each(|(key, nodes)| group.add(key, nodes, &mut flying));
            group.sums
        });
        Ok(Sums::joined(&sums))
    }

    /// Goes on to the next level, given the opened correction of each key.
    ///
    /// # Errors
    /// [`DpfError::Shape`] unless there is one for each key, and a next level of which the sums were read.
    pub fn correct(&mut self, corrections: Vec<Block>) -> Result<(), DpfError> {
        if corrections.len() != self.keys.len() || !self.is_read || self.depth >= self.shape.depth() {
            return Err(DpfError::Shape { what: "the corrections of a level" });
        }
        self.corrections.push(corrections);
        (self.depth, self.is_read) = (self.depth + 1, false);
        Ok(())
    }
}

const fn stored_depth(shape: Shape) -> usize {
    if shape.depth() > FLYING { shape.depth() - FLYING } else { 1 }
}

/// What is read of the trees of a group.
struct Group<'g> {
    shape: Shape,
    depth: usize,
    hash: CorrelationRobustHash,
    /// Of the levels behind the first, of the group's keys.
    corrections: Vec<&'g [Block]>,
    sums: Sums,
    room: Zeroizing<Vec<Block>>,
    /// Their low bits.
    words: Zeroizing<Vec<u64>>,
}

impl Group<'_> {
    /// Adds up the level of a key, whose stored nodes these are.
    fn add(&mut self, key: usize, nodes: &mut [Block], flying: &mut [Block]) {
        let (depth, stored) = (self.depth, stored_depth(self.shape));
        if depth > stored {
            for piece in nodes.chunks(PIECE) {
                flying[..piece.len()].copy_from_slice(piece);
                for below in stored + 1..=depth {
                    let grown = &mut flying[..piece.len() << (below - stored)];
                    self.hash.expand_alike_in_place(grown, CHILDREN);
                    self.correct(below, key, grown);
                }
                self.read(key, &flying[..piece.len() << (depth - stored)]);
            }
            return;
        }
        let count = 1 << depth;
        self.correct(depth, key, &mut nodes[..count]);
        self.read(key, &nodes[..count]);
        if depth < stored {
            self.sums.hashes[key] = self.hash.expand_alike_in_place(&mut nodes[..2 * count], CHILDREN);
        }
    }

    fn correct(&self, depth: usize, key: usize, nodes: &mut [Block]) {
        if let Some(corrections) = depth.checked_sub(2).and_then(|level| self.corrections.get(level)) {
            add_by_parents(nodes, corrections[key]);
        }
    }

    /// Adds what nodes of a key hash to: their values, and their children where these are not stored.
    fn read(&mut self, key: usize, nodes: &[Block]) {
        let Self { shape, depth, hash, sums, room, words, .. } = self;
        for nodes in nodes.chunks(ROOM) {
            let room = &mut room[..nodes.len()];
            for (values, tweak) in sums.values.iter_mut().zip(VALUES..) {
                hashed(hash, nodes, room, tweak);
                values[key] = shape.sum(values[key], room);
            }
            if let Some(controls) = sums.controls.get_mut(key) {
                words.clear();
                low_bits(nodes, words);
                *controls += words.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
            }
            if *depth >= stored_depth(*shape) && *depth < shape.depth() {
                hashed(hash, nodes, room, CHILDREN);
                sums.hashes[key] = room.iter().fold(sums.hashes[key], |sum, hash| sum ^ *hash);
            }
        }
    }
}

fn hashed(hash: &CorrelationRobustHash, nodes: &[Block], room: &mut [Block], tweak: u64) {
    room.copy_from_slice(nodes);
    hash.hash_alike_in_place(room, tweak);
}
