//! How far trees are grown, and where values are due.

use lanner_primitives::Block;

use crate::{DpfError, MAX_BITS, WORDS};

/// What trees of a comparison look like.
///
/// ```text
/// depth 1      both children of the root
/// stops        every STRIDE levels up to the last one: their nodes have a value
/// the last     its nodes are hashed to lanes: the value of the node, and those of all points of its tail but the last
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    bits: u32,
    words: usize,
    /// Bits of a number that a hash is cut into.
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
        let all = (Block::BYTES as u32 * 8 / self.lane).ilog2();
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
        self.depth().div_ceil(Self::STRIDE)
    }

    /// Which of the stops a depth is.
    #[must_use]
    pub const fn stop(self, depth: usize) -> Option<usize> {
        let above = self.depth() - depth;
        if above.is_multiple_of(Self::STRIDE) { Some(self.stops() - 1 - above / Self::STRIDE) } else { None }
    }

    /// Numbers of one word of a key that are corrected: of all stops, then of all points of the tail.
    #[must_use]
    pub const fn numbers(self) -> usize {
        self.stops() + self.points()
    }

    /// Hashes under one key of the cipher that a party's part of Delta is in, of one key: of the nodes on the way to the threshold.
    #[must_use]
    pub const fn hashes(self) -> usize {
        self.corrected() + self.words * self.stops()
    }

    /// A number of a hash or of a sum of hashes: of a tail's point, or of the node behind them.
    #[must_use]
    pub const fn number(self, hash: Block, place: usize) -> u64 {
        (hash.0 >> (self.lane as usize * place)) as u64 & (u64::MAX >> (64 - self.lane))
    }

    /// The sum of a block and hashes, number by number.
    pub(crate) fn sum(self, first: Block, hashes: &[Block]) -> Block {
        match self.lane {
            16 => sum::<[u16; 8]>(first, hashes),
            32 => sum::<[u32; 4]>(first, hashes),
            _ => sum::<[u64; 2]>(first, hashes),
        }
    }
}

/// Numbers that a block is cut into.
trait Lanes: bytemuck::Pod {
    /// Both, number by number.
    fn plus(self, other: Self) -> Self;
}

macro_rules! lanes {
    ($($number:ty: $count:literal),*) => {$(
        impl Lanes for [$number; $count] {
            fn plus(self, other: Self) -> Self {
                std::array::from_fn(|place| self[place].wrapping_add(other[place]))
            }
        }
    )*};
}

lanes!(u16: 8, u32: 4, u64: 2);

fn sum<L: Lanes>(first: Block, hashes: &[Block]) -> Block {
    let add = |sum: L, hash: &Block| sum.plus(bytemuck::cast(*hash));
    bytemuck::cast(hashes.iter().fold(bytemuck::cast(first), add))
}
