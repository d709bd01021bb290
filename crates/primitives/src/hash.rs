//! The correlation-robust hash that turns correlated into independent random strings.
//!
//! `H(x, i) = AES_k(sigma(x) xor i) xor sigma(x)` with a public key `k` that many hashes share: the hash `MMO^` of
//! [GKWY20](https://eprint.iacr.org/2019/074) section 7 ("Efficient and Secure Multiparty Computation from Fixed-Key
//! Block Ciphers") with the tweak `i` added to its input.
//!
//! Security: since `sigma` is a linear bijection, `H(x, i) = MMO^(x xor sigma^-1(i)) xor i`, so it is circular
//! correlation robust in the random permutation model as long as no two queries have equal `x xor sigma^-1(i)`. That
//! holds but for probability `q^2 / 2^128` where the `x` are pseudorandom, as in OT where no party chooses the `x`: those of
//! malicious receivers follow from what both parties say at set-up. It is not the two-call hash that peers who choose `x` would need. One evaluation of the cipher tries a guess of a secret offset at every hash under `k`,
//! so the bits of the offset less the logarithm of the number of such hashes are what is left.

use zeroize::Zeroizing;

use crate::Block;
use crate::arch::Numbering;
use crate::cipher::{BATCH, Cipher};

/// The linear orthomorphism `sigma(hi || lo) = (hi xor lo) || hi`, `hi` being the upper 64 bits.
#[must_use]
pub const fn sigma(x: Block) -> Block {
    let (hi, lo) = (x.0 >> 64, x.0 & u64::MAX as u128);
    Block((hi ^ lo) << 64 | hi)
}

/// The hash `H(x, i)` under one public key.
pub struct CorrelationRobustHash {
    cipher: Cipher,
}

impl CorrelationRobustHash {
    /// The hash keyed by a public salt, which is used once; [`HashGroups`](crate::HashGroups) makes many of one.
    #[must_use]
    pub fn new(salt: Block) -> Self {
        Self { cipher: Cipher::new(&salt.to_bytes()) }
    }

    /// `H(x, index)`.
    #[must_use]
    pub fn hash(&self, x: Block, index: u64) -> Block {
        let mut out = [x];
        self.hash_in_place(&mut out, index);
        out[0]
    }

    /// Replaces every `x[j]` by `H(x[j], first + j)`, indices wrapping at `2^64`.
    pub fn hash_in_place(&self, x: &mut [Block], first: u64) {
        self.hash_masked_in_place(x, Block::ZERO, first);
    }

    /// Replaces every `x[j]` by `H(x[j] xor offset, first + j)`: the sender's second string of a correlated pair.
    pub fn hash_masked_in_place(&self, x: &mut [Block], offset: Block, first: u64) {
        self.hash_numbered(x, offset, Numbering::From(first));
    }

    /// Replaces every `x[j]` by `H(x[j], tweak)`.
    pub fn hash_alike_in_place(&self, x: &mut [Block], tweak: u64) {
        self.hash_numbered(x, Block::ZERO, Numbering::All(tweak));
    }

    fn hash_numbered(&self, x: &mut [Block], offset: Block, tweaks: Numbering) {
        match &self.cipher {
            Cipher::Wide(cipher) => cipher.hash(x, offset, tweaks),
            Cipher::Portable(_) => self.hash_batches(x, offset, tweaks),
        }
    }

    /// Writes the low word of `H(x[j] xor offset, first + j)` to `out[j]` for every `j` below the shorter length, indices wrapping at `2^64`.
    pub fn hash_to_words(&self, x: &[Block], offset: Block, first: u64, out: &mut [u64]) {
        if let Cipher::Wide(cipher) = &self.cipher {
            return cipher.hash_low_words(x, offset, first, out);
        }
        let mut hashed = Zeroizing::new([Block::ZERO; BATCH]);
        for (number, (x, out)) in x.chunks(BATCH).zip(out.chunks_mut(BATCH)).enumerate() {
            let hashed = &mut hashed[..x.len()];
            hashed.copy_from_slice(x);
            self.hash_masked_in_place(hashed, offset, first.wrapping_add((number * BATCH) as u64));
            out.iter_mut().zip(hashed).for_each(|(out, hashed)| *out = hashed.0 as u64);
        }
    }

    /// The low bits of the hashes of runs of strings that share a tweak, of which one party knows one each: bit `j` of `out[v][r]` becomes
    /// bit `r` of `H(x[v] xor offsets[j], first + v)`, indices wrapping at `2^64`. There are at most 16 offsets; bits beyond are of no use.
    pub fn hash_runs_to_bits<const ROWS: usize>(
        &self,
        x: &[Block],
        offsets: &[Block],
        first: u64,
        out: &mut [[u16; ROWS]],
    ) {
        debug_assert!((1..=16).contains(&offsets.len()) && x.len() == out.len());
        // Whole runs of 8 or 16 fill the cipher's registers.
        let mut filled = Zeroizing::new([Block::ZERO; 16]);
        filled[..offsets.len()].copy_from_slice(offsets);
        let filled = &filled[..if offsets.len() <= 8 { 8 } else { 16 }];
        if let Cipher::Wide(cipher) = &self.cipher {
            return cipher.hash_runs_to_bits(x, filled, first, out);
        }
        let mut hashed = Zeroizing::new([Block::ZERO; 16]);
        for (number, (x, out)) in x.iter().zip(out).enumerate() {
            let hashed = &mut hashed[..filled.len()];
            hashed.iter_mut().zip(filled).for_each(|(slot, offset)| *slot = *x ^ *offset);
            let tweak = first.wrapping_add(number as u64);
            self.hash_batches(hashed, Block::ZERO, Numbering::All(tweak));
            for (row, out) in out.iter_mut().enumerate() {
                *out = hashed.iter().rev().fold(0, |bits, block| bits << 1 | (block.0 >> row) as u16 & 1);
            }
        }
    }

    fn hash_batches(&self, x: &mut [Block], offset: Block, tweaks: Numbering) {
        let mut input = [Block::ZERO; BATCH];
        for (number, batch) in x.chunks_mut(BATCH).enumerate() {
            for (j, (a, s)) in batch.iter_mut().zip(&mut input).enumerate() {
                *a = sigma(*a ^ offset);
                *s = *a ^ Block(u128::from(tweaks.of(number * BATCH + j)));
            }
            // A whole batch runs through the cipher's pipeline; single blocks would not.
            let used = if batch.len() == 1 { 1 } else { BATCH };
            self.cipher.encrypt(&mut input[..used]);
            for (a, e) in batch.iter_mut().zip(&input) {
                *a ^= *e;
            }
        }
    }

    /// Makes of every `x` in the first half of `nodes`, at place `j`, its children in a half tree: `H(x, first + j)` in its place, and
    /// `x xor H(x, first + j)` in the second half. Bits that `keep` lacks are cleared in all children.
    ///
    /// Returns the sum of the first half with all bits. The length of `nodes` is even.
    pub fn expand_in_place(&self, nodes: &mut [Block], first: u64, keep: Block) -> Block {
        self.expand_numbered(nodes, Numbering::From(first), keep)
    }

    /// The same with one tweak for all, and with all bits of all children.
    pub fn expand_alike_in_place(&self, nodes: &mut [Block], tweak: u64) -> Block {
        self.expand_numbered(nodes, Numbering::All(tweak), Block::ONES)
    }

    fn expand_numbered(&self, nodes: &mut [Block], tweaks: Numbering, keep: Block) -> Block {
        debug_assert!(nodes.len().is_multiple_of(2));
        if let Cipher::Wide(cipher) = &self.cipher {
            return cipher.expand(nodes, tweaks, keep);
        }
        let (left, right) = nodes.split_at_mut(nodes.len() / 2);
        right.copy_from_slice(left);
        self.hash_numbered(left, Block::ZERO, tweaks);
        let mut sum = Block::ZERO;
        for (left, right) in left.iter_mut().zip(right) {
            sum ^= *left;
            *right = (*right ^ *left) & keep;
            *left &= keep;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Prg;
    use rand_core::SeedableRng;

    /// The hash as every table of this machine computes it.
    fn every(salt: Block) -> impl Iterator<Item = CorrelationRobustHash> {
        Cipher::every(salt.to_bytes()).map(|cipher| CorrelationRobustHash { cipher })
    }

    #[test]
    #[cfg_attr(miri, ignore = "linear algebra over two safe functions")]
    fn sigma_and_sigma_plus_identity_are_bijections() {
        // Linear maps over GF(2): a bijection has no non-zero element in its kernel, found by rank.
        let rank = |f: &dyn Fn(Block) -> Block| {
            let mut rows: Vec<u128> = (0..128).map(|i| f(Block(1 << i)).0).collect();
            let mut rank = 0;
            for bit in 0..128 {
                if let Some(at) = (rank..128).find(|&r| rows[r] >> bit & 1 == 1) {
                    rows.swap(rank, at);
                    for r in 0..128 {
                        if r != rank && rows[r] >> bit & 1 == 1 {
                            rows[r] ^= rows[rank];
                        }
                    }
                    rank += 1;
                }
            }
            rank
        };
        assert_eq!(rank(&sigma), 128);
        assert_eq!(rank(&|x| sigma(x) ^ x), 128);
        assert!(sigma(Block(5 << 64 | 3)) == Block(6 << 64 | 5));
    }

    #[test]
    fn bulk_equals_the_formula() {
        let mut prg = Prg::from_seed([2; 16]);
        let salt = Block::random(&mut prg);
        let cipher = Cipher::new(&salt.to_bytes());
        let counts = [0, 1, 2, 3, 4, 63, 64, 65, 200];
        let counts = &counts[..if cfg!(miri) { 3 } else { counts.len() }];
        let hashes: Vec<_> = every(salt).collect();
        for (hash, &count) in hashes.iter().flat_map(|hash| counts.iter().map(move |count| (hash, count))) {
            let mut x = vec![Block::ZERO; count];
            prg.fill_blocks(&mut x);
            let offset = Block::random(&mut prg);
            let first = u64::MAX - 10;
            let (mut bulk, mut masked) = (x.clone(), x.clone());
            hash.hash_in_place(&mut bulk, first);
            hash.hash_masked_in_place(&mut masked, offset, first);
            let formula = |x: Block, j: usize| {
                let mut y = [sigma(x) ^ Block(u128::from(first.wrapping_add(j as u64)))];
                cipher.encrypt(&mut y);
                y[0] ^ sigma(x)
            };
            for (j, x) in x.iter().enumerate() {
                assert!(bulk[j] == formula(*x, j) && masked[j] == formula(*x ^ offset, j));
            }
        }
    }

    #[test]
    fn children_are_the_hash_and_what_adds_up_to_the_parent() {
        let mut prg = Prg::from_seed([4; 16]);
        let salt = Block::random(&mut prg);
        let halves = [0, 1, 2, 3, 4, 6, 7, 8, 64, 67, 512];
        for &half in &halves[..if cfg!(miri) { 3 } else { halves.len() }] {
            let mut nodes = vec![Block::ZERO; 2 * half];
            prg.fill_blocks(&mut nodes);
            let first = u64::MAX - 5;
            let (keep, parents) = (Block::random(&mut prg), nodes[..half].to_vec());
            for hash in every(salt) {
                let mut nodes = nodes.clone();
                let sum = hash.expand_in_place(&mut nodes, first, keep);
                let left = |j: usize| hash.hash(parents[j], first.wrapping_add(j as u64));
                assert!((0..half).all(|j| nodes[j] == left(j) & keep));
                assert!((0..half).all(|j| nodes[half + j] == (parents[j] ^ left(j)) & keep));
                assert!(sum == (0..half).fold(Block::ZERO, |sum, j| sum ^ left(j)));
                let (mut alike, mut hashed) = ([&parents[..], &parents[..]].concat(), parents.clone());
                hash.hash_alike_in_place(&mut hashed, first);
                let sum = hash.expand_alike_in_place(&mut alike, first);
                assert!(
                    (0..half).all(|j| hashed[j] == hash.hash(parents[j], first) && alike[j] == hashed[j])
                );
                assert!((0..half).all(|j| alike[half + j] == parents[j] ^ hashed[j]));
                assert!(sum == hashed.iter().fold(Block::ZERO, |sum, hash| sum ^ *hash));
            }
        }
    }

    #[test]
    fn low_words_and_bits_are_those_of_whole_hashes() {
        let mut prg = Prg::from_seed([3; 16]);
        let (salt, offset, first) = (Block::random(&mut prg), Block::random(&mut prg), u64::MAX - 20);
        let mut blocks = vec![Block::ZERO; 100];
        prg.fill_blocks(&mut blocks);
        let whole = CorrelationRobustHash::new(salt);
        for hash in every(salt) {
            let counts = [0, 1, 5, 31, 32, 33, 64, 100];
            for &count in &counts[..if cfg!(miri) { 2 } else { counts.len() }] {
                let x = &blocks[..count];
                let mut words = vec![0; count];
                hash.hash_to_words(x, offset, first, &mut words);
                let at = |x: Block, v: usize| whole.hash(x, first.wrapping_add(v as u64)).0;
                assert!((0..count).all(|v| words[v] == at(x[v] ^ offset, v) as u64));
                let runs = [1, 9, 2, 3, 4, 8, 16];
                for &run in &runs[..if cfg!(miri) { 1 } else { runs.len() }] {
                    let offsets = &blocks[80..80 + run];
                    let mut bits = vec![[0xffff_u16; 3]; count];
                    hash.hash_runs_to_bits(x, offsets, first, &mut bits);
                    for (v, rows) in bits.iter().enumerate() {
                        for (j, offset) in offsets.iter().enumerate() {
                            let expected = at(x[v] ^ *offset, v);
                            assert!((0..3).all(|r| u128::from(rows[r] >> j & 1) == expected >> r & 1));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn vectors_made_with_another_aes_are_met() {
        let hash = CorrelationRobustHash::new(Block(0x0f0e_0d0c_0b0a_0908_0706_0504_0302_0100));
        let x = Block(0xffee_ddcc_bbaa_9988_7766_5544_3322_1100);
        assert_eq!(hash.hash(x, 0).0, 0xb6d3_af0a_40e5_cd56_377c_ac1e_15f2_2c24);
        assert_eq!(hash.hash(x, 1 << 40).0, 0xd7ed_753c_8174_84c1_715b_ab76_d524_1928);
    }
}
