//! What protocols compute on between their moves: one party's numbers, or how many there are.

use std::ops::Range;

use lanner_primitives::bit_of_words;
use lanner_wire::{DecodeError, Reader};
use zeroize::Zeroizing;

/// Numbers of a protocol, one a lane: values, or bits 64 at a time in *words*, of which those behind the last are of no use.
pub trait Lanes: Sized + Clone {
    /// How many there are.
    fn count(&self) -> usize;

    /// Lane by lane.
    #[must_use]
    fn map(&self, of: impl Fn(u64) -> u64) -> Self;

    /// Lane by lane, of two of equal counts.
    #[must_use]
    fn zip_map(&self, other: &Self, of: impl Fn(u64, u64) -> u64) -> Self;

    /// The lanes of several, one after the other.
    fn concat(parts: &[&Self]) -> Self;

    /// Some of the lanes.
    #[must_use]
    fn range(&self, lanes: Range<usize>) -> Self;

    /// The lanes of these indices.
    #[must_use]
    fn gather(&self, indices: &[usize]) -> Self;

    /// The lanes' lowest bits in words.
    #[must_use]
    fn words(&self) -> Self;

    /// The first `count` bits of words, one a lane.
    #[must_use]
    fn bits(&self, count: usize) -> Self;
}

/// The lanes of a run.
pub(super) type Values = Zeroizing<Vec<u64>>;

impl Lanes for Values {
    fn count(&self) -> usize {
        self.len()
    }

    fn map(&self, of: impl Fn(u64) -> u64) -> Self {
        Self::new(self.iter().map(|x| of(*x)).collect())
    }

    fn zip_map(&self, other: &Self, of: impl Fn(u64, u64) -> u64) -> Self {
        Self::new(self.iter().zip(other.iter()).map(|(x, y)| of(*x, *y)).collect())
    }

    fn concat(parts: &[&Self]) -> Self {
        let parts: Vec<&[u64]> = parts.iter().map(|part| part.as_slice()).collect();
        Self::new(parts.concat())
    }

    fn range(&self, lanes: Range<usize>) -> Self {
        Self::new(self[lanes].to_vec())
    }

    fn gather(&self, indices: &[usize]) -> Self {
        Self::new(indices.iter().map(|index| self[*index]).collect())
    }

    fn words(&self) -> Self {
        Self::new(self.chunks(64).map(|lanes| bit_of_words(lanes, 0)).collect())
    }

    fn bits(&self, count: usize) -> Self {
        Self::new((0..count).map(|i| bit(self, i)).collect())
    }
}

/// The number of lanes, all that counting moves takes.
#[derive(Clone, Copy)]
pub(super) struct Count(pub(super) usize);

impl Lanes for Count {
    fn count(&self) -> usize {
        self.0
    }

    fn map(&self, _: impl Fn(u64) -> u64) -> Self {
        *self
    }

    fn zip_map(&self, _: &Self, _: impl Fn(u64, u64) -> u64) -> Self {
        *self
    }

    fn concat(parts: &[&Self]) -> Self {
        Self(parts.iter().map(|part| part.0).sum())
    }

    fn range(&self, lanes: Range<usize>) -> Self {
        Self(lanes.len())
    }

    fn gather(&self, indices: &[usize]) -> Self {
        Self(indices.len())
    }

    fn words(&self) -> Self {
        Self(words(self.0))
    }

    fn bits(&self, count: usize) -> Self {
        Self(count)
    }
}

/// Secrets that were written as packed values of a given number of bits.
pub(super) fn decode(reader: &mut Reader, count: usize, bits: u32) -> Result<Values, DecodeError> {
    reader.packed(count, bits).map(Zeroizing::new)
}

/// Words of 64 bits that hold a given number of bits.
pub(super) const fn words(bits: usize) -> usize {
    bits.div_ceil(64)
}

/// Bit `i` of words.
pub(super) fn bit(words: &[u64], i: usize) -> u64 {
    words[i / 64] >> (i % 64) & 1
}

/// A given number of ones, one at least.
pub(super) const fn mask(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}
