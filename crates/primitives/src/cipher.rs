//! AES-128 in bulk over blocks.

use aes::Aes128Enc;
use aes::cipher::array::Array;
use aes::cipher::{BlockCipherEncrypt, KeyInit};

use crate::Block;

/// How many blocks go to the cipher at once: enough to fill its widest pipeline, few enough to stay in the first cache.
pub(crate) const BATCH: usize = 64;

/// An AES-128 key schedule; zeroized on drop.
pub(crate) struct Cipher(Aes128Enc);

impl Cipher {
    pub(crate) fn new(key: &[u8; 16]) -> Self {
        Self(Aes128Enc::new(&Array(*key)))
    }

    /// Replaces every block by its encryption.
    pub(crate) fn encrypt(&self, blocks: &mut [Block]) {
        self.encrypt_bytes(Block::slice_as_bytes_mut(blocks));
    }

    /// Replaces every 16 bytes by their encryption; a shorter rest is left as it is.
    pub(crate) fn encrypt_bytes(&self, bytes: &mut [u8]) {
        let (whole, _) = Array::slice_as_chunks_mut(bytes);
        self.0.encrypt_blocks(whole);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS 197, appendix C.1.
    #[test]
    fn aes_128_meets_the_standards_example() {
        let cipher = Cipher::new(&std::array::from_fn(|i| i as u8));
        let mut blocks = vec![Block::from_bytes(std::array::from_fn(|i| 0x11 * i as u8)); 100];
        cipher.encrypt(&mut blocks);
        let expected = 0x69c4_e0d8_6a7b_0430_d8cd_b780_70b4_c55a_u128.to_be_bytes();
        assert!(blocks.iter().all(|b| b.to_bytes() == expected));
    }
}
