//! The sixteen instances that are garbled together, and the transposition of their packed bits.

use bytemuck::{Pod, Zeroable};
use lanner_primitives::{Bits, Block};
use zeroize::{Zeroize, Zeroizing};

use super::product;
use crate::GcError;
use crate::circuit::{Circuit, check_length};

/// Instances that share the key schedules of their gates.
///
/// More would cost security: the hash keeps `128 - log2(instances per key)` bits.
pub(crate) const LANES: usize = 16;

/// One wire's labels in sixteen instances.
#[derive(Clone, Copy, Pod, Zeroable, Zeroize)]
#[repr(C, align(64))]
pub(crate) struct Lanes(pub(crate) [Block; LANES]);

impl Lanes {
    pub(crate) const ZERO: Self = Self([Block::ZERO; LANES]);

    /// The colour bits, lane `j` at bit `j`.
    pub(crate) fn colours(&self) -> u16 {
        let bits = self.0.iter().enumerate();
        bits.fold(0, |mask, (lane, label)| mask | u16::from(label.lsb()) << lane)
    }

    /// `block` in the lanes whose bit of `mask` is one, else zero; without a branch, as all lanes are one vector's.
    pub(crate) fn masked(mask: u16, block: Block) -> Self {
        Self(std::array::from_fn(|lane| Block(u128::from(mask >> lane & 1).wrapping_neg()) & block))
    }
}

/// The packed bits of instances `first..first + lanes` (`width` bits each, instance-major) as one mask per column.
///
/// Bits past the end of `bits` read as zero; `columns` has `width` masks.
pub(crate) fn gather(bits: &Bits, first: usize, lanes: usize, columns: &mut [u16]) {
    let width = columns.len();
    let words = bits.as_words();
    for (chunk, masks) in columns.chunks_mut(64).enumerate() {
        let mut rows = Zeroizing::new([0_u64; LANES]);
        for (lane, row) in rows[..lanes].iter_mut().enumerate() {
            *row = window(words, (first + lane) * width + chunk * 64);
        }
        for (byte, eight) in masks.chunks_mut(8).enumerate() {
            let square = |half: &[u64]| {
                let bytes = half.iter().enumerate();
                transpose8(bytes.fold(0, |x, (lane, row)| x | (row >> (8 * byte) & 0xff) << (8 * lane)))
            };
            let (low, high) = (square(&rows[..8]), square(&rows[8..]));
            for (j, mask) in eight.iter_mut().enumerate() {
                *mask = (low >> (8 * j) & 0xff | (high >> (8 * j) & 0xff) << 8) as u16;
            }
        }
    }
}

/// Instance-major bits being collected group by group.
pub(crate) struct Collector {
    words: Zeroizing<Vec<u64>>,
    len: usize,
}

impl Collector {
    pub(crate) fn new(len: usize) -> Self {
        Self { words: Zeroizing::new(vec![0; len.div_ceil(64)]), len }
    }

    /// The inverse of [`gather`]: adds the columns of instances `first..first + lanes`, each set once.
    pub(crate) fn scatter(&mut self, columns: &[u16], first: usize, lanes: usize) {
        let width = columns.len();
        for (chunk, masks) in columns.chunks(64).enumerate() {
            let mut rows = Zeroizing::new([0_u64; LANES]);
            for (byte, eight) in masks.chunks(8).enumerate() {
                let square = |shift: u32| {
                    let columns = eight.iter().enumerate();
                    transpose8(columns.fold(0, |x, (j, mask)| x | u64::from(mask >> shift & 0xff) << (8 * j)))
                };
                let (low, high) = (square(0), square(8));
                for lane in 0..8 {
                    rows[lane] |= (low >> (8 * lane) & 0xff) << (8 * byte);
                    rows[lane + 8] |= (high >> (8 * lane) & 0xff) << (8 * byte);
                }
            }
            for (lane, row) in rows[..lanes].iter().enumerate() {
                self.put((first + lane) * width + chunk * 64, *row);
            }
        }
    }

    /// The collected bits.
    pub(crate) fn finish(self) -> Result<Bits, GcError> {
        let bytes: &[u8] = bytemuck::must_cast_slice(&self.words[..]);
        let expected = Bits::byte_len(self.len);
        let got = bytes.len();
        Bits::from_bytes(self.len, &bytes[..expected]).map_err(|_| GcError::Length {
            what: "output bits",
            expected,
            got,
        })
    }

    fn put(&mut self, offset: usize, row: u64) {
        let (word, shift) = (offset / 64, offset % 64);
        self.words[word] |= row << shift;
        if shift > 0
            && let Some(next) = self.words.get_mut(word + 1)
        {
            *next |= row >> (64 - shift);
        }
    }
}

/// Labels of outputs being collected group by group, if somebody asks for them.
pub(crate) struct OutputLabels<'a> {
    /// Instance-major.
    all: Option<&'a mut [Block]>,
    width: usize,
    /// Of the group at work; empty if nobody asks.
    pub(crate) of_group: Zeroizing<Vec<Lanes>>,
}

impl<'a> OutputLabels<'a> {
    /// # Errors
    /// [`GcError::Length`] unless there is one for each output of each instance.
    pub(crate) fn new(
        all: Option<&'a mut [Block]>,
        instances: usize,
        circuit: &Circuit,
    ) -> Result<Self, GcError> {
        let width = circuit.outputs();
        if let Some(all) = &all {
            check_length("labels of outputs", product(instances, width)?, all.len())?;
        }
        let wanted = if all.is_some() { width } else { 0 };
        Ok(Self { all, width, of_group: Zeroizing::new(vec![Lanes::ZERO; wanted]) })
    }

    /// Writes those of instances `first..first + lanes`.
    pub(crate) fn scatter(&mut self, first: usize, lanes: usize) {
        let Some(all) = &mut self.all else { return };
        for (lane, instance) in (first..first + lanes).enumerate() {
            let of_instance = &mut all[instance * self.width..][..self.width];
            for (label, column) in of_instance.iter_mut().zip(self.of_group.iter()) {
                *label = column.0[lane];
            }
        }
    }
}

/// The 64 bits from bit `offset` on.
fn window(words: &[u64], offset: usize) -> u64 {
    let (word, shift) = (offset / 64, offset % 64);
    let low = words.get(word).map_or(0, |w| w >> shift);
    let next = words.get(word + 1).copied().unwrap_or(0);
    // Shifting in two steps keeps the second word out where the shift is zero.
    low | next << (63 - shift) << 1
}

/// Transposes 8 x 8 bits, row `r` in byte `r` (Warren, Hacker's Delight, section 7-3).
const fn transpose8(x: u64) -> u64 {
    let t = (x ^ x >> 7) & 0x00aa_00aa_00aa_00aa;
    let x = x ^ t ^ t << 7;
    let t = (x ^ x >> 14) & 0x0000_cccc_0000_cccc;
    let x = x ^ t ^ t << 14;
    let t = (x ^ x >> 28) & 0x0000_0000_f0f0_f0f0;
    x ^ t ^ t << 28
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanner_primitives::Prg;
    use rand_core::SeedableRng;

    #[test]
    fn gather_then_scatter_is_identity_at_every_width() {
        let mut prg = Prg::from_seed([3; 16]);
        for width in [1, 2, 7, 8, 9, 20, 63, 64, 65, 130, 200] {
            let instances = 21;
            let bits = Bits::random(instances * width, &mut prg);
            let mut collector = Collector::new(bits.len());
            for (first, lanes) in [(0, 16), (16, 5)] {
                let mut columns = vec![0; width];
                gather(&bits, first, lanes, &mut columns);
                for (column, mask) in columns.iter().enumerate() {
                    for lane in 0..16 {
                        let expected = lane < lanes && bits.get((first + lane) * width + column);
                        assert_eq!(
                            mask >> lane & 1 == 1,
                            expected,
                            "width {width} column {column} lane {lane}"
                        );
                    }
                }
                collector.scatter(&columns, first, lanes);
            }
            assert_eq!(collector.finish().unwrap().as_words(), bits.as_words());
        }
    }

    #[test]
    fn colours_and_masks_are_inverse() {
        assert_eq!(Lanes::masked(0x9a35, Block::ONES).colours(), 0x9a35);
    }
}
