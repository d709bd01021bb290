//! Products of shared bits, 64 in a word, by triples from random transfers ([Bea91](https://doi.org/10.1007/3-540-46766-1_34),
//! made as in [GMW87](https://doi.org/10.1145/28395.28420)).
//!
//! A random transfer with keys `k_0, k_1` and choice `x` shares the product `x (k_0 xor k_1)` as `k_x` and `k_0` without a message; one
//! in each direction gives both cross terms of `(a_F xor a_G)(b_F xor b_G)`.

use lanner_ot::{CorrelatedSender, SilentSender};
use lanner_primitives::{Block, CorrelationRobustHash};
use lanner_wire::{DecodeError, Reader, Writer};
use zeroize::{ZeroizeOnDrop, Zeroizing};

use super::lanes::{Lanes, Values, decode};
use super::material::Part;

/// Shares of random bits `a`, `b` and of their products.
pub(super) struct AndTriples {
    a: Values,
    b: Values,
    product: Values,
}

impl ZeroizeOnDrop for AndTriples {}

impl AndTriples {
    pub(super) fn new(
        sender: &SilentSender,
        receive: &CorrelationRobustHash,
        sent: &Part,
        received: &Part,
        words: usize,
    ) -> Self {
        let zeros = sent.key_bits(sender.hash(), Block::ZERO);
        let ones = sent.key_bits(sender.hash(), sender.delta());
        let chosen = received.key_bits(receive, Block::ZERO);
        let a: Values = Zeroizing::new((0..words).map(|w| received.choices(64 * w)).collect());
        let b = zeros.zip_map(&ones, |k0, k1| k0 ^ k1);
        let product = (0..words).map(|i| zeros[i] ^ chosen[i] ^ a[i] & b[i]).collect();
        Self { a, b, product: Zeroizing::new(product) }
    }

    pub(super) fn encode(&self, writer: &mut Writer) {
        for row in [&self.a, &self.b, &self.product] {
            writer.packed(row, 64);
        }
    }

    pub(super) fn decode(reader: &mut Reader, words: usize) -> Result<Self, DecodeError> {
        let mut row = || decode(reader, words, 64);
        Ok(Self { a: row()?, b: row()?, product: row()? })
    }

    /// The words that open `u` and `v` against the triples.
    pub(super) fn masked(&self, u: &Values, v: &Values) -> Values {
        let masked = |x: &Values, mask: &Values| x.zip_map(mask, |x, mask| x ^ mask);
        Values::concat(&[&masked(u, &self.a), &masked(v, &self.b)])
    }

    /// This party's share of the products, given what both sent. The first adds the product of the opened bits.
    pub(super) fn product(self, mine: &[u64], theirs: &[u64], is_first: bool) -> Values {
        let opened: Vec<u64> = mine.iter().zip(theirs).map(|(mine, theirs)| mine ^ theirs).collect();
        let (d, e) = opened.split_at(opened.len() / 2);
        let public = u64::from(is_first).wrapping_neg();
        let word = |i: usize| self.product[i] ^ d[i] & self.b[i] ^ e[i] & self.a[i] ^ d[i] & e[i] & public;
        Zeroizing::new((0..d.len()).map(word).collect())
    }
}
