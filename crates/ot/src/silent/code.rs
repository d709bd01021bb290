//! The sparse linear code: every output adds ten inputs at pseudorandom places.

use lanner_primitives::{Block, PrgStream, Seed, add_named};

/// A public matrix over GF(2) with ten ones in each column, as a function of the column's number.
pub(super) struct LocalCode {
    stream: PrgStream,
}

impl LocalCode {
    /// The code of every session: nothing about it need be fresh.
    pub(super) fn new() -> Self {
        Self { stream: PrgStream::new(&Seed::from_bytes(*b"lanner LPN code1")) }
    }

    /// Adds the outputs from `first` on, which is even, of `input` to `out`. `input` has fewer than `2^32` elements.
    ///
    /// Places are public, values are not: the same reads happen whatever the values.
    pub(super) fn add_outputs(&self, input: &[Block], first: usize, out: &mut [Block]) {
        debug_assert!(first.is_multiple_of(2));
        let mut words = [Block::ZERO; PART * ONES / WORDS];
        for (out, first) in out.chunks_mut(PART).zip((first..).step_by(PART)) {
            self.stream.fill_at((first * ONES / WORDS) as u64, &mut words);
            add_named::<ONES>(input, bytemuck::must_cast_slice_mut(&mut words), out);
        }
    }
}

/// Ones of a column.
const ONES: usize = 10;
/// Words of a block, each of which names a place.
const WORDS: usize = 4;
/// Columns whose words are made at a time: an even number, so that they begin with a block.
const PART: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;
    use lanner_primitives::Prg;
    use rand_core::SeedableRng;

    #[test]
    fn outputs_are_linear_and_do_not_depend_on_how_they_are_split() {
        let mut rng = Prg::from_seed([1; 16]);
        let mut input = || (0..9 << 7).map(|_| Block::random(&mut rng)).collect::<Vec<_>>();
        let (a, b) = (input(), input());
        let sum: Vec<Block> = a.iter().zip(&b).map(|(a, b)| *a ^ *b).collect();
        let code = LocalCode::new();
        let mut whole = vec![Block::ZERO; 1000];
        code.add_outputs(&a, 0, &mut whole);
        code.add_outputs(&b, 0, &mut whole);
        let mut parts = vec![Block::ZERO; 1000];
        for (first, part) in [(0, 0..2), (2, 2..300), (300, 300..1000)] {
            code.add_outputs(&sum, first, &mut parts[part]);
        }
        assert!(whole == parts);
    }

    #[test]
    fn every_output_adds_about_ten_inputs() {
        // Weights: output i of unit vectors. Places may coincide, which cancels.
        let code = LocalCode::new();
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
}
