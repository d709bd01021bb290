//! How far trees are grown, and where values are due.

use lanner_primitives::Block;

use crate::{DpfError, MAX_BITS, WORDS};

/// What trees of a comparison look like.
///
/// ```text
/// depth 1      both children of the root
/// stops        every STRIDE levels up to the last one, and none at depth 1 before others: their nodes have a value
/// the last     its nodes are hashed to the value of the node, and those of all points of its tail but the last
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    bits: u32,
    words: usize,
    /// Bits of the numbers that a hash is cut into.
    lane: u32,
}

impl Shape {
    /// Levels from one stop to the next: the more, the fewer values are opened, and the more siblings have values to add up.
    pub(crate) const STRIDE: usize = 3;

    /// Of comparisons on `bits` bits, with values of so many words modulo `2^ring`.
    ///
    /// # Errors
    /// [`DpfError::Shape`] unless there are 1 to [`MAX_BITS`] bits, a word or two, of at most 64 bits.
    pub fn new(bits: u32, words: usize, ring: u32) -> Result<Self, DpfError> {
        if !(1..=MAX_BITS).contains(&bits) || !(1..=WORDS).contains(&words) || !(1..=64).contains(&ring) {
            return Err(DpfError::Shape { what: "the bits of a comparison" });
        }
        Ok(Self { bits, words, lane: ring.next_power_of_two().max(16) })
    }

    /// Bits of a threshold.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.bits
    }

    /// Words of a value.
    #[must_use]
    pub const fn words(self) -> usize {
        self.words
    }

    /// Levels below the last nodes, which are not grown.
    #[must_use]
    pub const fn tail(self) -> u32 {
        let all = self.lanes().ilog2();
        if all < self.bits { all } else { self.bits - 1 }
    }

    /// Points of a tail that have values: all but the last, which is below no threshold.
    #[must_use]
    pub const fn points(self) -> usize {
        (1 << self.tail()) - 1
    }

    /// The depth of the last nodes, 1 or more.
    #[must_use]
    pub const fn depth(self) -> usize {
        (self.bits - self.tail()) as usize
    }

    /// Levels that are corrected: all but the first.
    #[must_use]
    pub const fn corrected(self) -> usize {
        self.depth() - 1
    }

    /// Levels whose nodes have values.
    #[must_use]
    pub const fn stops(self) -> usize {
        let all = self.depth().div_ceil(Self::STRIDE);
        if all > 1 && self.depth() % Self::STRIDE == 1 { all - 1 } else { all }
    }

    /// Which of the stops a depth is.
    #[must_use]
    pub const fn stop(self, depth: usize) -> Option<usize> {
        let above = self.depth() - depth;
        let is_stop = above.is_multiple_of(Self::STRIDE) && above / Self::STRIDE < self.stops();
        if is_stop { Some(self.stops() - 1 - above / Self::STRIDE) } else { None }
    }

    /// Numbers of one word of a key that are corrected: of all stops, then of all points of the tail.
    #[must_use]
    pub const fn numbers(self) -> usize {
        self.stops() + self.points()
    }

    /// Hashes under one key of the cipher that a party's part of Delta is in, of one key: of the nodes on the way to the threshold.
    #[must_use]
    pub const fn hashes(self) -> usize {
        self.corrected() + self.stops() - 1 + self.blocks(self.depth())
    }

    /// Numbers of a hash.
    const fn lanes(self) -> usize {
        (Block::BYTES * 8) >> self.lane.ilog2()
    }

    /// Hashes for the values of a node at a stop.
    #[must_use]
    pub const fn blocks(self, depth: usize) -> usize {
        if depth < self.depth() { 1 } else { (self.words << self.tail()).div_ceil(self.lanes()) }
    }

    /// The hash, and the number of it, that a word of the value of a node is, or of a point of its tail: the words of one value are in one hash.
    #[must_use]
    pub const fn place(self, word: usize, point: Option<usize>) -> (usize, usize) {
        let number = word
            + match point {
                Some(point) => (1 + point) * self.words,
                None => 0,
            };
        (number >> self.lanes().ilog2(), number & (self.lanes() - 1))
    }

    /// A number of a hash or of a sum of hashes.
    #[must_use]
    pub const fn number(self, hash: Block, number: usize) -> u64 {
        (hash.0 >> (self.lane as usize * number)) as u64 & (u64::MAX >> (64 - self.lane))
    }

    /// The sum of a block and hashes, number by number.
    pub(crate) fn sum(self, first: Block, hashes: &[Block]) -> Block {
        match self.lane {
            16 => sum::<[u16; 8 * LANES]>(first, hashes),
            32 => sum::<[u32; 4 * LANES]>(first, hashes),
            _ => sum::<[u64; 2 * LANES]>(first, hashes),
        }
    }
}

/// Blocks whose numbers are added at once.
const LANES: usize = 4;

/// Numbers that so many blocks are cut into.
trait Numbers: bytemuck::Pod {
    /// Adds others to them.
    fn add(&mut self, others: &Self);
}

macro_rules! numbers {
    ($($number:ty: $count:literal),*) => {$(
        impl Numbers for [$number; $count * LANES] {
            fn add(&mut self, others: &Self) {
                self.iter_mut().zip(others).for_each(|(sum, number)| *sum = sum.wrapping_add(*number));
            }
        }
    )*};
}

numbers!(u16: 8, u32: 4, u64: 2);

fn sum<N: Numbers>(first: Block, hashes: &[Block]) -> Block {
    let mut sums = N::zeroed();
    let (groups, few) = hashes.as_chunks::<LANES>();
    for group in groups {
        sums.add(bytemuck::cast_ref(group));
    }
    let blocks: [Block; LANES] = bytemuck::cast(sums);
    let mut all = N::zeroed();
    for block in blocks.iter().chain(few).chain([&first]) {
        let alone: [Block; LANES] =
            std::array::from_fn(|place| if place == 0 { *block } else { Block::ZERO });
        all.add(bytemuck::cast_ref(&alone));
    }
    bytemuck::cast::<N, [Block; LANES]>(all)[0]
}
