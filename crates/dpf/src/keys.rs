//! Keys, and their evaluation.

use lanner_primitives::{Block, CorrelationRobustHash, parallel};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::salts::{CHILDREN, VALUES};
use crate::{DpfError, GROUP, Salts, Shape, WORDS};

/// What was opened of keys.
#[derive(Clone, Debug, Default)]
pub struct Corrections {
    /// Of nodes, of each level behind the first and each key.
    pub nodes: Vec<Vec<Block>>,
    /// Of values: of each word those of all stops and then those of all points of the tail, of each key.
    pub values: Vec<Vec<u64>>,
}

/// One party's keys of a number of comparison functions of one shape.
///
/// They have no more than what is opened, but for this party's part of Delta and its shares of the highest bit of thresholds times Delta: its secrets.
pub struct Keys {
    shape: Shape,
    root: Block,
    shares: Zeroizing<Vec<Block>>,
    is_second: bool,
    corrections: Corrections,
}

impl ZeroizeOnDrop for Keys {}

impl Drop for Keys {
    fn drop(&mut self) {
        self.root.zeroize();
    }
}

/// Keys that are evaluated in one go: some groups.
const BATCH: usize = 16 * GROUP;

impl Keys {
    /// The keys of a party, the first or the second, with what their trees began with.
    ///
    /// # Errors
    /// [`DpfError::Shape`] unless there are corrections of all levels and values of as many keys as shares.
    pub fn new(
        shape: Shape,
        root: Block,
        shares: Zeroizing<Vec<Block>>,
        is_second: bool,
        corrections: Corrections,
    ) -> Result<Self, DpfError> {
        let Corrections { nodes, values } = &corrections;
        let counts = [nodes.len(), values.len()];
        let lengths = nodes.iter().map(Vec::len).chain(values.iter().map(Vec::len));
        if counts != [shape.corrected(), shape.words() * shape.numbers()]
            || lengths.into_iter().any(|keys| keys != shares.len())
        {
            return Err(DpfError::Shape { what: "the corrections of keys" });
        }
        Ok(Self { shape, root, shares, is_second, corrections })
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.shares.len()
    }

    /// The party's part of Delta: its secret.
    #[must_use]
    pub const fn root(&self) -> Block {
        self.root
    }

    /// Its shares of the thresholds' highest bits times Delta.
    #[must_use]
    pub fn shares(&self) -> &[Block] {
        &self.shares
    }

    /// What was opened.
    #[must_use]
    pub const fn corrections(&self) -> &Corrections {
        &self.corrections
    }

    /// This party's parts of `f(x)` for each key at an `x` of its own, word by word, modulo what values are; further bits are of no use. Each `x` is public.
    ///
    /// # Errors
    /// [`DpfError::Shape`] unless there is one for each key.
    pub fn evaluate(&self, salts: &Salts, points: &[u64]) -> Result<[Zeroizing<Vec<u64>>; WORDS], DpfError> {
        if points.len() != self.count() {
            return Err(DpfError::Shape { what: "the points of keys" });
        }
        let mut sums = [0; WORDS].map(|_| Zeroizing::new(vec![0; points.len()]));
        let [low, high] = &mut sums;
        let batches = points.chunks(BATCH).zip(low.chunks_mut(BATCH).zip(high.chunks_mut(BATCH)));
        parallel::for_each((0..).step_by(BATCH).zip(batches), |(start, (points, (low, high)))| {
            let groups = points.chunks(GROUP).zip(low.chunks_mut(GROUP).zip(high.chunks_mut(GROUP)));
            let (mut aside, mut room) = (Aside::new(), Zeroizing::new(Vec::with_capacity(ASIDE + GROUP)));
            for (start, (points, (low, high))) in (start..).step_by(GROUP).zip(groups) {
                let hash = salts.group(start / GROUP);
                let mut group = Group { keys: self, start, hash: &hash, points, sums: [low, high] };
                group.evaluate(&mut aside, &mut room);
            }
        });
        Ok(sums)
    }
}

/// Nodes to the right of the way, whose values are added up at the next stop, and whose keys these are.
struct Aside {
    nodes: Zeroizing<Vec<Block>>,
    keys: Vec<u8>,
    count: usize,
}

/// The most nodes aside of a group: all that are behind a stop's nodes but those on the ways. There is room for as many, so that none is moved.
const ASIDE: usize = GROUP * ((2 << Shape::STRIDE) - 1);

impl Aside {
    fn new() -> Self {
        // One more is written before it is known whether it counts.
        Self { nodes: Zeroizing::new(vec![Block::ZERO; ASIDE + 1]), keys: vec![0; ASIDE + 1], count: 0 }
    }

    /// The nodes and their keys.
    fn all(&self) -> (&[Block], &[u8]) {
        (&self.nodes[..self.count], &self.keys[..self.count])
    }

    /// Adds a node, or none: without a branch, which would often go the other way than the processor thinks.
    fn push(&mut self, key: u8, node: Block, is_due: bool) {
        (self.nodes[self.count], self.keys[self.count]) = (node, key);
        self.count += usize::from(is_due);
    }
}

/// A group in evaluation.
struct Group<'g> {
    keys: &'g Keys,
    /// The number of the first.
    start: usize,
    hash: &'g CorrelationRobustHash,
    points: &'g [u64],
    sums: [&'g mut [u64]; WORDS],
}

impl Group<'_> {
    fn evaluate(&mut self, aside: &mut Aside, room: &mut Zeroizing<Vec<Block>>) {
        let (shape, count) = (self.keys.shape, self.points.len());
        let shares = &self.keys.shares[self.start..self.start + count];
        let mut ways = Zeroizing::new([Block::ZERO; GROUP]);
        let ways = &mut ways[..count];
        for (key, (way, share)) in ways.iter_mut().zip(shares).enumerate() {
            *way = self.turn(1, key, [*share ^ self.keys.root, self.keys.root], aside);
        }
        for depth in 1..=shape.depth() {
            if let Some(stop) = shape.stop(depth) {
                self.add_stop(stop, aside, room);
            }
            if depth < shape.depth() {
                self.descend(depth, ways, aside, room);
            }
        }
        if shape.points() > 0 {
            self.add_tail(ways, room);
        }
        if self.keys.is_second {
            self.sums.iter_mut().flat_map(|sums| sums.iter_mut()).for_each(|sum| *sum = sum.wrapping_neg());
        }
    }

    /// The child on the way at a depth, of a left child and its parent; what is to the right of it is kept aside.
    fn turn(&self, depth: usize, key: usize, [left, node]: [Block; 2], aside: &mut Aside) -> Block {
        let is_right = self.points[key] >> (self.keys.shape.bits() as usize - depth) & 1 == 1;
        aside.push(key as u8, left ^ node, !is_right);
        left ^ (Block::mask(is_right) & node)
    }

    /// Goes from a depth to the next.
    fn descend(&self, depth: usize, ways: &mut [Block], aside: &mut Aside, room: &mut Vec<Block>) {
        let corrections = &self.keys.corrections.nodes[depth - 1][self.start..];
        let left =
            |node: Block, hashed: Block, correction: Block| hashed ^ (Block::mask(node.lsb()) & correction);
        room.clear();
        room.extend_from_slice(ways);
        room.extend_from_slice(aside.all().0);
        self.hash.hash_alike_in_place(room, CHILDREN);
        let (of_ways, of_aside) = room.split_at(ways.len());
        for (place, hashed) in of_aside.iter().enumerate() {
            let (node, key) = (aside.nodes[place], aside.keys[place]);
            let left = left(node, *hashed, corrections[usize::from(key)]);
            aside.nodes[place] = left;
            aside.push(key, left ^ node, true);
        }
        let of_ways = of_ways.iter().zip(corrections);
        for (key, (way, (hashed, correction))) in ways.iter_mut().zip(of_ways).enumerate() {
            *way = self.turn(depth + 1, key, [left(*way, *hashed, *correction), *way], aside);
        }
    }

    /// Adds the values of the nodes aside, and forgets them.
    fn add_stop(&mut self, stop: usize, aside: &mut Aside, room: &mut Vec<Block>) {
        let shape = self.keys.shape;
        room.clear();
        let (nodes, keys) = aside.all();
        room.extend_from_slice(nodes);
        self.hash.hash_alike_in_place(room, VALUES);
        for (word, sums) in self.sums.iter_mut().take(shape.words()).enumerate() {
            let corrections = &self.keys.corrections.values[word * shape.numbers() + stop][self.start..];
            let (_, number) = shape.place(word, None);
            for ((node, key), hashed) in nodes.iter().zip(keys).zip(&*room) {
                let key = usize::from(*key);
                let value = shape.number(*hashed, number);
                sums[key] = sums[key].wrapping_add(corrected(value, *node, corrections[key]));
            }
        }
        aside.count = 0;
    }

    /// Adds the values of the points behind the ways.
    fn add_tail(&mut self, ways: &[Block], room: &mut Vec<Block>) {
        let shape = self.keys.shape;
        room.clear();
        for block in 0..shape.blocks(shape.depth()) {
            room.extend_from_slice(ways);
            self.hash.hash_alike_in_place(&mut room[block * ways.len()..], VALUES + block as u64);
        }
        for (word, sums) in self.sums.iter_mut().take(shape.words()).enumerate() {
            let corrections = &self.keys.corrections.values[word * shape.numbers() + shape.stops()..];
            for (key, way) in ways.iter().enumerate() {
                // The last point is below no threshold: any other stands for it, and counts nothing.
                let point = self.points[key] as usize & shape.points();
                let counts = u64::from(point < shape.points()).wrapping_neg();
                let point = point.min(shape.points() - 1);
                let (block, number) = shape.place(word, Some(point));
                let value = shape.number(room[block * ways.len() + key], number);
                let value = corrected(value, *way, corrections[point][self.start + key]);
                sums[key] = sums[key].wrapping_add(value & counts);
            }
        }
    }
}

/// A value of a node, with its correction where the node's control bit says so.
const fn corrected(value: u64, node: Block, correction: u64) -> u64 {
    value.wrapping_add(correction & (node.0 as u64 & 1).wrapping_neg())
}
