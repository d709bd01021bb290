//! A sparse linear code: every output adds ten inputs at pseudorandom places.

use crate::arch::{ONES, WORDS};
use crate::cipher::Cipher;
use crate::{Block, Seed};

/// A public matrix over GF(2) with ten ones in each column, as a function of the column's number.
///
/// Columns take ten 32-bit words each of the seed's stream ([`crate::Prg`]), one after the other. Word `w` names place `w n / 2^32` of
/// `n`: each is as likely as any other to within `n / 2^32`. Places that coincide cancel.
pub struct LocalCode {
    cipher: Cipher,
}

impl LocalCode {
    /// The code of a seed, which is public.
    #[must_use]
    pub fn new(seed: &Seed) -> Self {
        Self { cipher: Cipher::new(seed.as_bytes()) }
    }

    /// Adds the outputs from `first` on, which is even, of `input` to `out`. `input` has at least one and fewer than `2^32` elements;
    /// otherwise nothing is added.
    ///
    /// Places are public, values are not: the same reads happen whatever the values.
    pub fn add_outputs(&self, input: &[Block], first: usize, out: &mut [Block]) {
        debug_assert!(first.is_multiple_of(2));
        let Some(count) = u32::try_from(input.len()).ok().filter(|count| *count > 0) else { return };
        let first = (first * ONES / WORDS) as u64;
        match &self.cipher {
            Cipher::Wide(cipher) if cipher.has_room(count) => cipher.add_local(input, first, out),
            _ => self.add_parts(input, count, first, out),
        }
    }

    /// Adds outputs from that on whose places begin with block `first` of the stream.
    fn add_parts(&self, input: &[Block], count: u32, first: u64, out: &mut [Block]) {
        let mut words = [Block::ZERO; PART * ONES / WORDS];
        let mut places = [0; PART * ONES];
        for (out, first) in out.chunks_mut(PART).zip((first..).step_by(words.len())) {
            self.cipher.counter_mode(first, Block::slice_as_bytes_mut(&mut words));
            let words = Block::slice_as_bytes(&words).as_chunks::<4>().0;
            for (place, word) in places.iter_mut().zip(words) {
                *place = place_of(u32::from_le_bytes(*word), count);
            }
            for (out, places) in out.iter_mut().zip(places.as_chunks::<ONES>().0) {
                *out ^= places.iter().fold(Block::ZERO, |sum, place| sum ^ input[*place as usize]);
            }
        }
    }
}

/// The place among `count` that a word names.
fn place_of(word: u32, count: u32) -> u32 {
    ((u64::from(word) * u64::from(count)) >> 32) as u32
}

/// Columns whose places are made at a time: an even number, so that they begin with a block.
const PART: usize = if cfg!(miri) { 8 } else { 128 };

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Prg;
    use rand_core::SeedableRng;

    const KEY: [u8; 16] = [7; 16];

    /// The code as every table of this machine computes it.
    fn every() -> impl Iterator<Item = LocalCode> {
        Cipher::every(KEY).map(|cipher| LocalCode { cipher })
    }

    fn blocks(count: usize, rng: &mut Prg) -> Vec<Block> {
        (0..count).map(|_| Block::random(rng)).collect()
    }

    #[test]
    fn outputs_are_sums_at_the_places_that_the_stream_names() {
        let mut rng = Prg::from_seed([1; 16]);
        let cases = [(1, 0, 9), (3, 4, 0), (9 << 7, 6, 1), (1000, 2, 130), (65_537, 1024, 515)];
        for &(inputs, first, outputs) in &cases[..if cfg!(miri) { 2 } else { cases.len() }] {
            let (input, out) = (blocks(inputs, &mut rng), blocks(outputs, &mut rng));
            let mut stream = vec![0; 4 * ONES * (first + outputs)];
            Prg::new(Seed::from_bytes(KEY)).fill_bytes(&mut stream);
            let words = stream.as_chunks::<4>().0.as_chunks::<ONES>().0;
            let place =
                |word: &[u8; 4]| ((u64::from(u32::from_le_bytes(*word)) * inputs as u64) >> 32) as usize;
            let expected =
                |i: usize| words[first + i].iter().map(place).fold(out[i], |sum, place| sum ^ input[place]);
            for code in every() {
                let mut out = out.clone();
                code.add_outputs(&input, first, &mut out);
                assert!((0..outputs).all(|i| out[i] == expected(i)));
            }
        }
    }

    #[test]
    fn outputs_are_linear_and_do_not_depend_on_how_they_are_split() {
        const INPUTS: usize = if cfg!(miri) { 30 } else { 9 << 7 };
        const OUTPUTS: usize = if cfg!(miri) { 20 } else { 1000 };
        const MIDDLE: usize = OUTPUTS * 3 / 10;
        let mut rng = Prg::from_seed([2; 16]);
        let (a, b) = (blocks(INPUTS, &mut rng), blocks(INPUTS, &mut rng));
        let sum: Vec<Block> = a.iter().zip(&b).map(|(a, b)| *a ^ *b).collect();
        for code in every() {
            let mut whole = vec![Block::ZERO; OUTPUTS];
            code.add_outputs(&a, 0, &mut whole);
            code.add_outputs(&b, 0, &mut whole);
            let mut parts = vec![Block::ZERO; OUTPUTS];
            for (first, part) in [(0, 0..2), (2, 2..MIDDLE), (MIDDLE, MIDDLE..OUTPUTS)] {
                code.add_outputs(&sum, first, &mut parts[part]);
            }
            assert!(whole == parts);
        }
    }

    #[test]
    #[cfg_attr(
        miri,
        ignore = "a distribution, for which a million inputs are read; the shorter tests run the same code"
    )]
    fn every_output_adds_about_ten_inputs() {
        // Weights: output i of unit vectors. Places may coincide, which cancels.
        let code = LocalCode::new(&Seed::from_bytes(KEY));
        let mut weights = vec![0; 200];
        for place in 0..9 << 7 {
            let mut unit = vec![Block::ZERO; 9 << 7];
            unit[place] = Block(1);
            let mut out = vec![Block::ZERO; 200];
            code.add_outputs(&unit, 0, &mut out);
            out.iter().zip(&mut weights).for_each(|(bit, weight)| *weight += usize::from(bit.lsb()));
        }
        assert!(weights.iter().all(|weight| [6, 8, 10].contains(weight)), "{weights:?}");
        assert!(weights.iter().filter(|weight| **weight == 10).count() > 180);
    }

    #[test]
    #[cfg_attr(miri, ignore = "a distribution, for which many blocks are drawn by a safe generator")]
    fn places_are_all_of_the_input_and_nothing_beyond() {
        let count = 9 << 7;
        assert_eq!(place_of(0, count), 0);
        assert_eq!(place_of(u32::MAX, count), count - 1);
        let mut rng = Prg::from_seed([2; 16]);
        let mut hits = vec![0_u32; count as usize];
        (0..64 * count).for_each(|_| hits[place_of(Block::random(&mut rng).0 as u32, count) as usize] += 1);
        // 64 hits are expected of each place, with a deviation of 8.
        assert!(hits.iter().all(|hits| (16..112).contains(hits)));
        // No input gives no outputs.
        for code in every() {
            code.add_outputs(&[], 0, &mut [Block::ZERO; 3]);
        }
    }
}
