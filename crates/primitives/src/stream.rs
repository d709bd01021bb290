//! Random access to the stream of a seed.

use crate::cipher::{BATCH, Cipher};
use crate::{Block, Seed};

/// The stream of [`crate::Prg`], read at any block: it keeps a key schedule but neither a position nor a buffer.
///
/// For protocols that expand hundreds of seeds side by side.
pub struct PrgStream {
    cipher: Cipher,
}

impl PrgStream {
    /// The stream of a seed.
    #[must_use]
    pub fn new(seed: &Seed) -> Self {
        Self { cipher: Cipher::new(seed.as_bytes()) }
    }

    /// Fills `out` with the blocks of the stream from block `first` on.
    pub fn fill_at(&self, first: u128, out: &mut [Block]) {
        let mut counter = first;
        let mut batches = out.chunks_exact_mut(BATCH);
        for batch in &mut batches {
            self.batch(counter, batch);
            counter = counter.wrapping_add(BATCH as u128);
        }
        let rest = batches.into_remainder();
        if rest.len() < FEW {
            self.batch(counter, rest);
        } else {
            let mut whole = [Block::ZERO; BATCH];
            self.batch(counter, &mut whole);
            rest.copy_from_slice(&whole[..rest.len()]);
        }
    }

    fn batch(&self, first: u128, out: &mut [Block]) {
        for (i, block) in out.iter_mut().enumerate() {
            *block = Block(first.wrapping_add(i as u128));
        }
        self.cipher.encrypt(out);
    }
}

/// From here on a whole batch, most of it thrown away, costs less than single blocks.
const FEW: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Prg;

    #[test]
    fn any_part_is_the_generators() {
        let seed = Seed::from_bytes([9; 16]);
        let stream = PrgStream::new(&seed);
        let mut expected = [Block::ZERO; 300];
        Prg::new(seed).fill_blocks(&mut expected);
        for (first, count) in [(0, 0), (0, 1), (3, 7), (5, 8), (60, 63), (1, 64), (2, 65), (100, 200)] {
            let mut out = vec![Block::ZERO; count];
            stream.fill_at(first as u128, &mut out);
            assert!(out == expected[first..first + count]);
        }
    }
}
