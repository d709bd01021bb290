//! Products of shared bits, 64 in a word, by triples from random transfers ([Bea91](https://doi.org/10.1007/3-540-46766-1_34),
//! made as in [GMW87](https://doi.org/10.1145/28395.28420)).
//!
//! A random transfer with keys `k_0, k_1` and choice `x` shares the product `x (k_0 xor k_1)` as `k_x` and `k_0` without a message; one
//! in each direction gives both cross terms of `(a_F xor a_G)(b_F xor b_G)`.

use lanner_ot::{CorrelatedSender, SilentSender};
use lanner_primitives::{Block, CorrelationRobustHash};
use zeroize::Zeroizing;

use super::material::{Part, Words};

/// Shares of random bits `a`, `b` and of their products.
pub(super) struct AndTriples {
    a: Words,
    b: Words,
    product: Words,
    /// Whether this party adds the product of the opened bits.
    adds_opened: bool,
}

impl AndTriples {
    pub(super) fn new(
        sender: &SilentSender,
        receive: &CorrelationRobustHash,
        sent: &Part,
        received: &Part,
        words: usize,
        is_first: bool,
    ) -> Self {
        let zeros = sent.key_bits(sender.hash(), Block::ZERO);
        let ones = sent.key_bits(sender.hash(), sender.delta());
        let chosen = received.key_bits(receive, Block::ZERO);
        let a: Words = Zeroizing::new((0..words).map(|w| received.choices(64 * w)).collect());
        let b: Words = Zeroizing::new(zeros.iter().zip(ones.iter()).map(|(k0, k1)| k0 ^ k1).collect());
        let product = (0..words).map(|i| zeros[i] ^ chosen[i] ^ a[i] & b[i]).collect();
        Self { a, b, product: Zeroizing::new(product), adds_opened: is_first }
    }

    /// The bytes that open `u` and `v` against the triples.
    pub(super) fn masked(&self, u: &[u64], v: &[u64]) -> Vec<u8> {
        let masked = |x: &[u64], mask: &Words| {
            let words = x.iter().zip(mask.iter()).map(|(x, mask)| (x ^ mask).to_le_bytes());
            words.flatten().collect::<Vec<u8>>()
        };
        [masked(u, &self.a), masked(v, &self.b)].concat()
    }

    /// This party's share of the products, given what both sent.
    pub(super) fn product(self, mine: &[u8], theirs: &[u8]) -> Words {
        let opened: Vec<u64> = mine.as_chunks().0.iter().zip(theirs.as_chunks().0).map(opened).collect();
        let (d, e) = opened.split_at(opened.len() / 2);
        let public = u64::from(self.adds_opened).wrapping_neg();
        let word = |i: usize| self.product[i] ^ d[i] & self.b[i] ^ e[i] & self.a[i] ^ d[i] & e[i] & public;
        Zeroizing::new((0..d.len()).map(word).collect())
    }
}

fn opened((mine, theirs): (&[u8; 8], &[u8; 8])) -> u64 {
    u64::from_le_bytes(*mine) ^ u64::from_le_bytes(*theirs)
}
