//! Random access to the stream of a seed.

use crate::cipher::Cipher;
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
    pub fn fill_at(&self, first: u64, out: &mut [Block]) {
        self.fill_bytes_at(first, Block::slice_as_bytes_mut(out));
    }

    /// As [`Self::fill_at`], for a number of bytes that is a multiple of 16.
    pub(crate) fn fill_bytes_at(&self, first: u64, out: &mut [u8]) {
        self.cipher.counter_mode(first, out);
    }
}

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
            stream.fill_at(first as u64, &mut out);
            assert!(out == expected[first..first + count]);
        }
    }
}
