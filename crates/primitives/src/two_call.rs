//! The tweakable hash for strings that a peer may have chosen or repeats under several uses.
//!
//! `H(x, i) = pi(pi(x) xor i) xor pi(x)` for the permutation `pi` that AES is under a public key: `TMMO` of
//! [GKWY20](https://eprint.iacr.org/2019/074), section 7.4. It calls the cipher twice where [`crate::CorrelationRobustHash`] calls it once, and is circular
//! correlation robust for every `x` and `i` that a peer chooses, as long as each pair is hashed once for each party, in the ideal permutation model. A
//! relation between two `x` and two `i` makes no relation between hashes: with one call, `sigma(x xor x') = i xor i'` gives two hashes that differ by `i xor i'`.

use zeroize::Zeroizing;

use crate::Block;
use crate::cipher::{BATCH, Cipher};

/// The hash `H(x, i)` under one public key.
pub struct TweakableHash {
    cipher: Cipher,
}

impl TweakableHash {
    /// The hash keyed by a public salt.
    #[must_use]
    pub fn new(salt: Block) -> Self {
        Self { cipher: Cipher::new(&salt.to_bytes()) }
    }

    /// Replaces every `x[j]` by `H(x[j] xor offset, first + step j)`, tweaks below `2^128`.
    pub fn hash_in_place(&self, x: &mut [Block], offset: Block, first: u128, step: u64) {
        let mut inner = Zeroizing::new([Block::ZERO; BATCH]);
        for (number, batch) in x.chunks_mut(BATCH).enumerate() {
            let inner = &mut inner[..batch.len()];
            for x in batch.iter_mut() {
                *x ^= offset;
            }
            self.cipher.encrypt(batch);
            for (j, (inner, outer)) in inner.iter_mut().zip(&*batch).enumerate() {
                let place = (number * BATCH + j) as u128;
                *inner = *outer ^ Block(first.wrapping_add(place.wrapping_mul(u128::from(step))));
            }
            self.cipher.encrypt(inner);
            for (outer, inner) in batch.iter_mut().zip(&*inner) {
                *outer ^= *inner;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rand_core::SeedableRng;

    use super::*;
    use crate::{CorrelationRobustHash, Prg, sigma};

    #[test]
    fn bulk_equals_the_formula_on_the_fast_and_the_portable_cipher() {
        let mut prg = Prg::from_seed([1; 16]);
        let (salt, offset) = (Block::random(&mut prg), Block::random(&mut prg));
        let portable = Cipher::portable(&salt.to_bytes());
        let pi = |x: Block| {
            let mut x = [x];
            portable.encrypt(&mut x);
            x[0]
        };
        let counts = [0, 1, 2, 63, 64, 65, 200];
        for &count in &counts[..if cfg!(miri) { 3 } else { counts.len() }] {
            let mut x = vec![Block::ZERO; count];
            prg.fill_blocks(&mut x);
            let first = u128::MAX - 70;
            for cipher in [Cipher::new(&salt.to_bytes()), Cipher::portable(&salt.to_bytes())] {
                let mut hashed = x.clone();
                TweakableHash { cipher }.hash_in_place(&mut hashed, offset, first, 3);
                for (j, (x, hashed)) in x.iter().zip(&hashed).enumerate() {
                    let outer = pi(*x ^ offset);
                    assert!(*hashed == pi(outer ^ Block(first.wrapping_add(3 * j as u128))) ^ outer);
                }
            }
        }
    }

    /// What the second call is for. A peer that makes two strings differ so that the inputs of one call are equal knows how the hashes differ, whatever else is
    /// secret in both strings.
    #[test]
    fn strings_and_tweaks_that_are_related_give_related_hashes_with_one_call_only() {
        let mut prg = Prg::from_seed([2; 16]);
        let (salt, secret) = (Block::random(&mut prg), Block::random(&mut prg));
        let (i, j) = (5_u64, 12_u64);
        let solution = unsigma(Block(u128::from(i ^ j)));
        let once = CorrelationRobustHash::new(salt);
        let related = once.hash(secret, i) ^ once.hash(secret ^ solution, j);
        assert!(related == Block(u128::from(i ^ j)));
        let twice = TweakableHash::new(salt);
        let mut hashes = [secret, secret ^ solution];
        twice.hash_in_place(&mut hashes[..1], Block::ZERO, i.into(), 0);
        twice.hash_in_place(&mut hashes[1..], Block::ZERO, j.into(), 0);
        assert!(hashes[0] ^ hashes[1] != Block(u128::from(i ^ j)));
    }

    /// `x` with `sigma(x) = y`: `sigma(hi || lo) = (hi xor lo) || hi`, so `hi` is the lower half of `y`.
    fn unsigma(y: Block) -> Block {
        let (high, low) = (y.0 >> 64, y.0 & u128::from(u64::MAX));
        let x = Block(low << 64 | (high ^ low));
        assert!(sigma(x) == y);
        x
    }
}
