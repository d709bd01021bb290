//! Packed bit vectors.

use rand_core::Rng;
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::PrimitivesError;

/// A vector of secret bits: choices, colours, shares of bits. Its words never move to a larger allocation, which would leave them
/// behind in the old one.
///
/// Bit `i` is bit `i % 64` of word `i / 64`. Invariant: the bits of the last word from `len` on are zero.
#[derive(Clone, Default, Zeroize, ZeroizeOnDrop)]
pub struct Bits {
    words: Vec<u64>,
    len: usize,
}

impl Bits {
    /// `len` zeros.
    #[must_use]
    pub fn zeros(len: usize) -> Self {
        Self { words: vec![0; len.div_ceil(64)], len }
    }

    /// `len` uniform bits.
    #[must_use]
    pub fn random<R: Rng + ?Sized>(len: usize, rng: &mut R) -> Self {
        let mut bits = Self::zeros(len);
        rng.fill_bytes(bytemuck::must_cast_slice_mut(&mut bits.words));
        bits.clear_padding();
        bits
    }

    /// The first `len` bits of packed words; words that are missing count as zeros.
    #[must_use]
    pub fn from_words(len: usize, words: Vec<u64>) -> Self {
        let mut bits = Self { words, len };
        if bits.words.capacity() < len.div_ceil(64) {
            bits = Self::copied(len, &bits.words);
        }
        bits.words.resize(len.div_ceil(64), 0);
        bits.clear_padding();
        bits
    }

    /// `len` bits from word `word` on; bits that are missing count as zeros.
    #[must_use]
    pub fn part(&self, word: usize, len: usize) -> Self {
        let mut bits = Self::copied(len, self.words.get(word..).unwrap_or_default());
        bits.clear_padding();
        bits
    }

    /// `len` bits with as many of these words as there is room for.
    fn copied(len: usize, words: &[u64]) -> Self {
        let mut bits = Self::zeros(len);
        bits.words.iter_mut().zip(words).for_each(|(to, from)| *to = *from);
        bits
    }

    /// The vectors one after the other, each but the last of whole words.
    ///
    /// # Errors
    /// [`PrimitivesError::Length`] if one before the last has bits left over.
    pub fn join(parts: &[Self]) -> Result<Self, PrimitivesError> {
        let len = parts.iter().map(Self::len).sum::<usize>();
        let mut bits = Self { words: Vec::with_capacity(len.div_ceil(64)), len };
        for (number, part) in parts.iter().enumerate() {
            if number + 1 < parts.len() && !part.len.is_multiple_of(64) {
                return Err(PrimitivesError::Length {
                    expected: part.len.next_multiple_of(64),
                    got: part.len,
                });
            }
            bits.words.extend_from_slice(&part.words);
        }
        Ok(bits)
    }

    /// The number of bits.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no bits.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bit `i`; zero from `len` on.
    #[must_use]
    pub fn get(&self, i: usize) -> bool {
        debug_assert!(i < self.len, "bit {i} of {}", self.len);
        self.words.get(i / 64).is_some_and(|word| word >> (i % 64) & 1 == 1)
    }

    /// Sets bit `i`, which must be below `len`; takes the same time for either value.
    ///
    /// An index from `len` on changes nothing.
    pub fn set(&mut self, i: usize, bit: bool) {
        debug_assert!(i < self.len, "bit {i} of {}", self.len);
        if i < self.len {
            let word = &mut self.words[i / 64];
            *word = *word & !(1 << (i % 64)) | u64::from(bit) << (i % 64);
        }
    }

    /// Adds `other` bit by bit mod 2.
    ///
    /// # Errors
    /// [`PrimitivesError::Length`] if the lengths differ.
    pub fn xor_assign(&mut self, other: &Self) -> Result<(), PrimitivesError> {
        if self.len != other.len {
            return Err(PrimitivesError::Length { expected: self.len, got: other.len });
        }
        for (a, b) in self.words.iter_mut().zip(&other.words) {
            *a ^= b;
        }
        Ok(())
    }

    /// The sum mod 2 of two vectors.
    ///
    /// # Errors
    /// [`PrimitivesError::Length`] if the lengths differ.
    pub fn xor(&self, other: &Self) -> Result<Self, PrimitivesError> {
        let mut sum = self.clone();
        sum.xor_assign(other)?;
        Ok(sum)
    }

    /// The packed words; the last one's unused bits are zero.
    #[must_use]
    pub fn as_words(&self) -> &[u64] {
        &self.words
    }

    /// The bits in order.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = bool> + '_ {
        (0..self.len).map(|i| self.get(i))
    }

    /// The bytes that `len` bits take on the wire.
    #[must_use]
    pub const fn byte_len(len: usize) -> usize {
        len.div_ceil(8)
    }

    /// The packed bytes: bit `i` is bit `i % 8` of byte `i / 8`.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let bytes: &[u8] = bytemuck::must_cast_slice(&self.words);
        bytes[..Self::byte_len(self.len)].to_vec()
    }

    /// The vector of `len` bits of packed bytes.
    ///
    /// # Errors
    /// [`PrimitivesError::Length`] if there are not exactly `len` bits' bytes, [`PrimitivesError::Padding`] if an unused
    /// bit of the last byte is set.
    pub fn from_bytes(len: usize, bytes: &[u8]) -> Result<Self, PrimitivesError> {
        let expected = Self::byte_len(len);
        if bytes.len() != expected {
            return Err(PrimitivesError::Length { expected, got: bytes.len() });
        }
        let mut bits = Self::zeros(len);
        let own: &mut [u8] = bytemuck::must_cast_slice_mut(&mut bits.words);
        own[..expected].copy_from_slice(bytes);
        let padding = bits.words.last().is_some_and(|word| *word & !last_word_mask(len) != 0);
        if padding {
            return Err(PrimitivesError::Padding { bits: len });
        }
        Ok(bits)
    }

    fn clear_padding(&mut self) {
        let mask = last_word_mask(self.len);
        if let Some(word) = self.words.last_mut() {
            *word &= mask;
        }
    }
}

impl FromIterator<bool> for Bits {
    fn from_iter<I: IntoIterator<Item = bool>>(iter: I) -> Self {
        let iter = iter.into_iter();
        let mut bits = Self { words: Vec::with_capacity(iter.size_hint().0.div_ceil(64)), len: 0 };
        for bit in iter {
            if bits.len.is_multiple_of(64) {
                if bits.words.len() == bits.words.capacity() {
                    let mut larger =
                        Self { words: Vec::with_capacity(2 * bits.words.len() + 1), len: bits.len };
                    larger.words.extend_from_slice(&bits.words);
                    bits = larger;
                }
                bits.words.push(0);
            }
            bits.words[bits.len / 64] |= u64::from(bit) << (bits.len % 64);
            bits.len += 1;
        }
        bits
    }
}

fn last_word_mask(len: usize) -> u64 {
    match len % 64 {
        0 => u64::MAX,
        rest => (1 << rest) - 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Prg;
    use rand_core::SeedableRng;

    #[test]
    fn bytes_round_trip_at_every_length() {
        let mut prg = Prg::from_seed([1; 16]);
        for len in (0..300).step_by(if cfg!(miri) { 31 } else { 1 }) {
            let bits = Bits::random(len, &mut prg);
            let back = Bits::from_bytes(len, &bits.to_bytes()).unwrap();
            assert!(bits.iter().eq(back.iter()) && bits.iter().collect::<Bits>().words == bits.words);
            assert!(bits.xor(&back).unwrap().as_words().iter().all(|w| *w == 0));
        }
    }

    #[test]
    fn padding_and_length_are_strict() {
        assert!(matches!(Bits::from_bytes(9, &[0, 2]), Err(PrimitivesError::Padding { bits: 9 })));
        assert!(Bits::from_bytes(9, &[0, 1]).is_ok());
        assert!(matches!(Bits::from_bytes(9, &[0]), Err(PrimitivesError::Length { expected: 2, got: 1 })));
        assert!(Bits::zeros(3).xor(&Bits::zeros(4)).is_err());
    }

    #[test]
    fn parts_join_to_the_whole() {
        let mut prg = Prg::from_seed([2; 16]);
        for len in [0, 1, 64, 128, 191, 192, 200] {
            let bits = Bits::random(len, &mut prg);
            let starts = (0..len).step_by(64);
            let parts: Vec<_> = starts.map(|at| bits.part(at / 64, 64.min(len - at))).collect();
            let joined = Bits::join(&parts).unwrap();
            assert!(joined.len() == len && joined.words == bits.words);
        }
        assert!(Bits::join(&[Bits::zeros(63), Bits::zeros(1)]).is_err());
        assert!(Bits::from_words(70, vec![3, 63]).part(1, 2).as_words() == [3]);
    }

    #[test]
    fn bits_of_unknown_number_are_collected_and_vectors_of_words_may_be_short() {
        let mut prg = Prg::from_seed([3; 16]);
        for len in [0, 1, 63, 64, 65, 1000] {
            let bits = Bits::random(len, &mut prg);
            let unknown: Bits = bits.iter().filter(|_| true).collect();
            assert!(unknown.len == len && unknown.words == bits.words);
            let known: Bits = bits.iter().collect();
            assert_eq!(known.words.capacity(), len.div_ceil(64), "room for all from the start");
            let longer = Bits::from_words(len + 100, bits.words.clone());
            assert_eq!(longer.words.len(), (len + 100).div_ceil(64));
            assert!(
                longer.part(0, len).words == bits.words && longer.part(bits.words.len(), 70).words == [0; 2]
            );
        }
    }

    #[test]
    fn set_changes_one_bit() {
        let mut bits = Bits::zeros(130);
        bits.set(129, true);
        bits.set(64, true);
        bits.set(64, false);
        assert_eq!(bits.as_words(), [0, 0, 2]);
    }
}
