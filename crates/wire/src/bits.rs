//! Values of a fixed number of bits, packed without gaps.
//!
//! Value `i` takes the bits `[i * bits, (i + 1) * bits)` of the output, least significant first; bit `j` of the output is
//! bit `j % 8` of byte `j / 8`. The unused high bits of the last byte are zero, and a reader refuses any other.
//! The instructions executed depend on the count and the width alone, so secret values may be packed.

use crate::DecodeError;

/// Bytes that `count` values of `bits` bits take; `usize::MAX` if that is not representable.
#[must_use]
pub const fn packed_len(count: usize, bits: u32) -> usize {
    // Eight values take exactly `bits` bytes.
    let whole = (count / 8).saturating_mul(bits as usize);
    whole.saturating_add((count % 8 * bits as usize).div_ceil(8))
}

/// Packs `values`, each `< 2^bits`; higher bits are dropped, so that they cannot touch a neighbour.
///
/// # Panics
/// If `bits` is not in `1..=64`.
#[must_use]
pub fn pack_bits(values: &[u64], bits: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    pack_bits_into(values, bits, &mut bytes);
    bytes
}

/// Appends the packing of `values` to `bytes`.
pub(crate) fn pack_bits_into(values: &[u64], bits: u32, bytes: &mut Vec<u8>) {
    let start = bytes.len();
    bytes.resize(start + packed_len(values.len(), bits), 0);
    pack_bits_to(values, bits, &mut bytes[start..]);
}

/// Writes the packing of `values` over `bytes`.
///
/// # Panics
/// If `bits` is not in `1..=64`, or there are other than [`packed_len`] bytes.
pub fn pack_bits_to(values: &[u64], bits: u32, bytes: &mut [u8]) {
    assert!((1..=64).contains(&bits), "a width of {bits} bits is not in 1..=64");
    assert_eq!(
        bytes.len(),
        packed_len(values.len(), bits),
        "bytes of {} values of {bits} bits",
        values.len()
    );
    let mut packer = Packer { words: bytes.chunks_exact_mut(8), filled: 0, word: 0 };
    let mask = u64::MAX >> (64 - bits);
    if bits <= 32 {
        let (pairs, last) = values.as_chunks::<2>();
        for [low, high] in pairs {
            packer.push((low & mask) | (high & mask) << bits, 2 * bits);
        }
        for value in last {
            packer.push(value & mask, bits);
        }
    } else {
        for value in values {
            packer.push(value & mask, bits);
        }
    }
    packer.finish();
}

/// Collects bits in one word and stores it when it is full.
struct Packer<'a> {
    words: std::slice::ChunksExactMut<'a, u8>,
    word: u64,
    /// Bits used in `word`, `< 64`.
    filled: u32,
}

impl Packer<'_> {
    #[inline]
    fn push(&mut self, value: u64, bits: u32) {
        self.word |= value << self.filled;
        self.filled += bits;
        if self.filled >= 64 {
            if let Some(chunk) = self.words.next() {
                chunk.copy_from_slice(&self.word.to_le_bytes());
            }
            self.filled -= 64;
            // The high `filled` bits of the value did not fit; a shift by 64 (nothing left) must give zero.
            self.word = value.checked_shr(bits - self.filled).unwrap_or(0);
        }
    }

    fn finish(mut self) {
        // The last word is stored here although it is not full; 57 bits and more take a whole chunk.
        if let Some(chunk) = self.words.next() {
            chunk.copy_from_slice(&self.word.to_le_bytes());
            return;
        }
        let tail = self.words.into_remainder();
        let length = tail.len();
        tail.copy_from_slice(&self.word.to_le_bytes()[..length]);
    }
}

/// Unpacks `count` values of `bits` bits; each result is `< 2^bits`.
///
/// # Errors
/// [`DecodeError::Truncated`] or [`DecodeError::Trailing`] unless `bytes` has exactly [`packed_len`] bytes;
/// [`DecodeError::Invalid`] if a padding bit is set or `bits` is not in `1..=64`.
pub fn unpack_bits(bytes: &[u8], count: usize, bits: u32) -> Result<Vec<u64>, DecodeError> {
    if !(1..=64).contains(&bits) {
        return Err(DecodeError::Invalid { what: "bit width" });
    }
    let needed = packed_len(count, bits);
    if bytes.len() < needed {
        return Err(DecodeError::Truncated { needed, left: bytes.len() });
    }
    if bytes.len() > needed {
        return Err(DecodeError::Trailing { left: bytes.len() - needed });
    }
    check_padding(bytes, count, bits)?;
    // A window of eight bytes holds a value that starts within its first byte, up to this width.
    Ok(if bits <= 57 {
        unpack_windows::<8>(bytes, count, bits)
    } else {
        unpack_windows::<16>(bytes, count, bits)
    })
}

fn check_padding(bytes: &[u8], count: usize, bits: u32) -> Result<(), DecodeError> {
    let used = (count % 8 * bits as usize) % 8;
    match bytes.last() {
        Some(last) if used != 0 && last >> used != 0 => Err(DecodeError::Invalid { what: "bit padding" }),
        _ => Ok(()),
    }
}

/// Reads each value from the `W` bytes that begin with its first bit.
fn unpack_windows<const W: usize>(bytes: &[u8], count: usize, bits: u32) -> Vec<u64> {
    let mask = u64::MAX >> (64 - bits);
    let width = bits as usize;
    // Values whose window lies inside the bytes; the few others go through a padded copy.
    let inside = (bytes.len().saturating_sub(W) * 8 / width).min(count);
    let mut values = Vec::with_capacity(count);
    values.extend((0..inside).map(|i| window::<W>(bytes, i * width) & mask));
    let start = inside * width / 8;
    let mut last = [0; 64];
    let rest = &bytes[start..];
    last[..rest.len()].copy_from_slice(rest);
    values.extend((inside..count).map(|i| window::<W>(&last, i * width - start * 8) & mask));
    values
}

/// The 64 bits from bit `bit` on, as far as a window of `W` bytes holds them.
#[inline]
fn window<const W: usize>(bytes: &[u8], bit: usize) -> u64 {
    let mut word = [0; W];
    word.copy_from_slice(&bytes[bit / 8..bit / 8 + W]);
    let shift = bit % 8;
    let low = u64::from_le_bytes(std::array::from_fn(|i| word[i]));
    if W == 8 {
        return low >> shift;
    }
    (low >> shift) | (u64::from(word[8]) << 1 << (63 - shift))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Between the widths that are tested: Miri takes a thousand times as long for each value.
    const STRIDE: usize = if cfg!(miri) { 9 } else { 1 };

    /// The definition, a bit at a time.
    fn pack_naively(values: &[u64], bits: u32) -> Vec<u8> {
        let mut bytes = vec![0_u8; packed_len(values.len(), bits)];
        for (i, value) in values.iter().enumerate() {
            for j in 0..bits as usize {
                let bit = i * bits as usize + j;
                bytes[bit / 8] |= ((value >> j & 1) as u8) << (bit % 8);
            }
        }
        bytes
    }

    fn values(count: usize, bits: u32) -> Vec<u64> {
        let mix = |i: u64| (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(bits) << 40;
        (0..count as u64).map(|i| mix(i).rotate_left(17) & (u64::MAX >> (64 - bits))).collect()
    }

    #[test]
    fn packing_equals_its_definition_and_unpacking_inverts_it() {
        let (most, beyond): (_, &[usize]) =
            if cfg!(miri) { (9, &[33]) } else { (70, &[127, 128, 129, 1000]) };
        for bits in (1..=64).step_by(STRIDE) {
            for count in (0..=most).chain(beyond.iter().copied()) {
                let values = values(count, bits);
                let packed = pack_bits(&values, bits);
                assert_eq!(packed, pack_naively(&values, bits), "{count} values of {bits} bits");
                assert_eq!(packed.len(), (count * bits as usize).div_ceil(8));
                assert_eq!(unpack_bits(&packed, count, bits).unwrap(), values);
            }
        }
    }

    #[test]
    fn bits_above_the_width_are_dropped() {
        assert_eq!(pack_bits(&[u64::MAX, 0, 0], 3), [0b111, 0]);
    }

    #[test]
    fn each_padding_bit_is_refused() {
        for bits in (1..=64).step_by(STRIDE) {
            for count in 1..=(if cfg!(miri) { 3 } else { 16 }) {
                let used = count * bits as usize;
                for bit in used..used.next_multiple_of(8) {
                    let mut packed = pack_bits(&values(count, bits), bits);
                    packed[bit / 8] |= 1 << (bit % 8);
                    let invalid = Err(DecodeError::Invalid { what: "bit padding" });
                    assert_eq!(unpack_bits(&packed, count, bits), invalid);
                }
            }
        }
    }

    #[test]
    fn other_lengths_and_widths_are_refused_before_allocating() {
        let packed = pack_bits(&[1, 2, 3], 20);
        assert!(matches!(unpack_bits(&packed[1..], 3, 20), Err(DecodeError::Truncated { .. })));
        assert!(matches!(unpack_bits(&packed, 2, 20), Err(DecodeError::Trailing { .. })));
        assert!(matches!(unpack_bits(&packed, usize::MAX, 64), Err(DecodeError::Truncated { .. })));
        assert!(unpack_bits(&packed, 3, 0).is_err());
        assert!(unpack_bits(&packed, 3, 65).is_err());
        assert_eq!(unpack_bits(&[], 0, 20), Ok(vec![]));
    }
}
