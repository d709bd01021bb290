//! AES-128 in bulk over blocks.

use aes::Aes128Enc;
use aes::cipher::array::Array;
use aes::cipher::{BlockCipherEncrypt, KeyInit};

use crate::Block;
use crate::arch::{self, WideCipher};

/// How many blocks go to the cipher at once: enough to fill its widest pipeline, few enough to stay in the first cache.
pub(crate) const BATCH: usize = 64;

/// An AES-128 key schedule; zeroized on drop.
pub(crate) enum Cipher {
    /// Where the processor has vector AES instructions.
    Wide(WideCipher),
    /// Everywhere else: the `aes` crate chooses between AES instructions and bit-sliced code.
    Portable(Aes128Enc),
}

impl Cipher {
    pub(crate) fn new(key: &[u8; 16]) -> Self {
        arch::wide_cipher(key).map_or_else(|| Self::portable(key), Self::Wide)
    }

    pub(crate) fn portable(key: &[u8; 16]) -> Self {
        Self::Portable(Aes128Enc::new(&Array(*key)))
    }

    /// That of every table of this machine, the portable one first.
    #[cfg(test)]
    pub(crate) fn every(key: [u8; 16]) -> impl Iterator<Item = Self> {
        let wide = arch::every_wide_cipher(key).map(Self::Wide);
        std::iter::once(Self::portable(&key)).chain(wide)
    }

    /// Replaces every block by its encryption.
    pub(crate) fn encrypt(&self, blocks: &mut [Block]) {
        match self {
            Self::Wide(cipher) => cipher.encrypt(blocks),
            Self::Portable(cipher) => {
                cipher.encrypt_blocks(Array::slice_as_chunks_mut(Block::slice_as_bytes_mut(blocks)).0);
            }
        }
    }

    /// Fills `bytes`, of a multiple of 16, with the encryptions of the little-endian integers from `first` on, wrapping at
    /// `2^64`.
    pub(crate) fn counter_mode(&self, first: u64, bytes: &mut [u8]) {
        match self {
            Self::Wide(cipher) => cipher.counter_mode(first, bytes),
            Self::Portable(cipher) => portable_counter_mode(cipher, first, bytes),
        }
    }
}

fn portable_counter_mode(cipher: &Aes128Enc, mut next: u64, bytes: &mut [u8]) {
    for batch in bytes.chunks_mut(BATCH * Block::BYTES) {
        let blocks = Array::slice_as_chunks_mut(batch).0;
        for block in blocks.iter_mut() {
            *block = Array(u128::from(next).to_le_bytes());
            next = next.wrapping_add(1);
        }
        cipher.encrypt_blocks(blocks);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Beyond what blocks are tried: Miri takes tenths of a second for each.
    const BLOCKS: usize = if cfg!(miri) { 10 } else { 150 };

    /// FIPS 197, appendix C.1.
    #[test]
    fn aes_128_meets_the_standards_example() {
        let key = std::array::from_fn(|i| i as u8);
        let expected = 0x69c4_e0d8_6a7b_0430_d8cd_b780_70b4_c55a_u128.to_be_bytes();
        for cipher in Cipher::every(key) {
            let mut blocks = vec![Block::from_bytes(std::array::from_fn(|i| 0x11 * i as u8)); 100];
            cipher.encrypt(&mut blocks);
            assert!(blocks.iter().all(|b| b.to_bytes() == expected));
        }
    }

    proptest! {
        #[test]
        fn every_cipher_equals_the_portable_one(key: [u8; 16], back in 0..100_u64, blocks in 0..BLOCKS) {
            // Around the wrap of the counter.
            let first = 50_u64.wrapping_sub(back);
            let counters: Vec<_> = (0..blocks as u64).map(|i| Block(u128::from(first.wrapping_add(i)))).collect();
            let mut stream = vec![Block::ZERO; blocks];
            Cipher::portable(&key).counter_mode(first, Block::slice_as_bytes_mut(&mut stream));
            for cipher in Cipher::every(key) {
                let mut encrypted = counters.clone();
                cipher.encrypt(&mut encrypted);
                prop_assert!(encrypted == stream);
                // Wherever bytes begin.
                let mut room = vec![Block::ZERO; blocks + 1];
                for start in [0, 1, 7] {
                    let bytes = &mut Block::slice_as_bytes_mut(&mut room)[start..][..blocks * Block::BYTES];
                    cipher.counter_mode(first, bytes);
                    prop_assert!(bytes == Block::slice_as_bytes(&stream));
                }
            }
        }
    }
}
