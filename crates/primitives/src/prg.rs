//! The pseudorandom generator: AES-128 in counter mode.
//!
//! The stream of a seed is `AES_seed(0) || AES_seed(1) || ...`, the counter being a little-endian 128-bit integer. It is
//! one stream of bytes whatever the sizes of the reads, and the same on every machine.
//!
//! Security: a pseudorandom generator as long as AES-128 is a pseudorandom permutation and one seed gives far fewer than
//! `2^64` blocks.

use std::convert::Infallible;

use rand_core::{Rng, SeedableRng, TryCryptoRng, TryRng};
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::cipher::BATCH;
use crate::{Block, PrgStream, PrimitivesError, Seed};

const BUFFER: usize = BATCH * Block::BYTES;

/// A generator of pseudorandom bytes; usable wherever a cryptographic random generator is asked for.
pub struct Prg {
    stream: PrgStream,
    /// The first block of the stream that is neither given out nor in the buffer.
    next: u64,
    buffer: [Block; BATCH],
    /// Bytes of the buffer that were given out.
    used: usize,
}

impl Prg {
    /// The generator of a seed.
    #[must_use]
    pub fn new(seed: Seed) -> Self {
        let stream = PrgStream::new(&seed);
        // Taken rather than borrowed, so that no seed is expanded twice by accident.
        drop(seed);
        Self { stream, next: 0, buffer: [Block::ZERO; BATCH], used: BUFFER }
    }

    /// A generator seeded by the operating system.
    ///
    /// # Errors
    /// [`PrimitivesError::Entropy`] if the operating system gives none.
    pub fn from_entropy() -> Result<Self, PrimitivesError> {
        let mut seed = Seed::from_bytes([0; 16]);
        getrandom::fill(seed.as_bytes_mut()).map_err(|e| PrimitivesError::Entropy(e.to_string()))?;
        Ok(Self::new(seed))
    }

    /// Fills `out` with the next `16 * out.len()` bytes of the stream.
    pub fn fill_blocks(&mut self, out: &mut [Block]) {
        self.fill(Block::slice_as_bytes_mut(out));
    }

    /// Fills `out` with the next bytes of the stream.
    pub fn fill_bytes(&mut self, out: &mut [u8]) {
        self.fill(out);
    }

    /// A seed taken from the stream.
    #[must_use]
    pub fn seed(&mut self) -> Seed {
        let mut seed = Seed::from_bytes([0; 16]);
        self.fill(seed.as_bytes_mut());
        seed
    }

    fn fill(&mut self, out: &mut [u8]) {
        let out = self.take_buffered(out);
        let whole = out.len() - out.len() % Block::BYTES;
        let (direct, rest) = out.split_at_mut(whole);
        // Few blocks are cheaper to take from a full batch than to encrypt on their own.
        let (direct, few) = direct.split_at_mut(whole - whole % BUFFER);
        self.stream.fill_bytes_at(self.next, direct);
        self.next = self.next.wrapping_add((direct.len() / Block::BYTES) as u64);
        for part in [few, rest] {
            let left = self.take_buffered(part);
            if !left.is_empty() {
                self.refill();
                self.take_buffered(left);
            }
        }
    }

    /// Copies what the buffer has; returns the part of `out` that is still to be filled.
    fn take_buffered<'a>(&mut self, out: &'a mut [u8]) -> &'a mut [u8] {
        let count = out.len().min(BUFFER - self.used);
        let (now, later) = out.split_at_mut(count);
        let bytes = Block::slice_as_bytes_mut(&mut self.buffer);
        now.copy_from_slice(&bytes[self.used..self.used + count]);
        self.used += count;
        later
    }

    fn refill(&mut self) {
        self.stream.fill_at(self.next, &mut self.buffer);
        self.next = self.next.wrapping_add(BATCH as u64);
        self.used = 0;
    }
}

impl Drop for Prg {
    fn drop(&mut self) {
        self.buffer.zeroize();
    }
}

impl ZeroizeOnDrop for Prg {}

impl SeedableRng for Prg {
    type Seed = [u8; 16];

    fn from_seed(seed: Self::Seed) -> Self {
        Self::new(Seed::from_bytes(seed))
    }
}

impl TryRng for Prg {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        let mut bytes = [0; 4];
        self.fill(&mut bytes);
        Ok(u32::from_le_bytes(bytes))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let mut bytes = [0; 8];
        self.fill(&mut bytes);
        Ok(u64::from_le_bytes(bytes))
    }

    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Infallible> {
        self.fill(out);
        Ok(())
    }
}

impl TryCryptoRng for Prg {}

impl Block {
    /// A uniform block that the peer is to see: a generator of its own makes it, whose seed is drawn and forgotten. Blocks of one stream of
    /// [`Prg`] are those of a permutation, no two alike, so that one that is seen would say a little of all others.
    #[must_use]
    pub fn public<R: Rng + ?Sized>(rng: &mut R) -> Self {
        Self::random(&mut Prg::new(Seed::random(rng)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cipher::Cipher;
    use rand_core::Rng;

    fn stream(length: usize) -> Vec<u8> {
        let cipher = Cipher::new(&[7; 16]);
        let mut blocks: Vec<_> = (0..length.div_ceil(16) as u128).map(Block).collect();
        cipher.encrypt(&mut blocks);
        Block::slice_as_bytes(&blocks)[..length].to_vec()
    }

    #[test]
    fn reads_of_any_size_give_one_stream() {
        let sizes = [1, 15, 16, 17, 3, 0, 64, 1023, 1024, 1025, 4096, 8191, 2048, 5000];
        let sizes = &sizes[..if cfg!(miri) { 10 } else { sizes.len() }];
        let expected = stream(sizes.iter().sum());
        let mut prg = Prg::from_seed([7; 16]);
        let mut got = Vec::new();
        for &size in sizes {
            let mut part = vec![0; size];
            prg.fill_bytes(&mut part);
            got.extend(part);
        }
        assert_eq!(got, expected);
    }

    #[test]
    fn integers_are_little_endian_bytes_of_the_stream() {
        let expected = stream(28);
        let mut prg = Prg::from_seed([7; 16]);
        assert_eq!(prg.next_u32().to_le_bytes(), expected[..4]);
        assert_eq!(prg.next_u64().to_le_bytes(), expected[4..12]);
        assert!(Block::random(&mut prg).to_bytes()[..] == expected[12..28]);
    }

    #[test]
    fn entropy_differs_each_time() {
        let (mut a, mut b) = (Prg::from_entropy().unwrap(), Prg::from_entropy().unwrap());
        assert!(Block::random(&mut a) != Block::random(&mut b));
    }
}
