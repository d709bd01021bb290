//! The moves of the diagram, and what every layer is made of: carries, signs, wider rings, squares.
//!
//! A protocol is written once, over a driver. [`Run`](super::run::Run) makes its moves with the peer on one party's shares;
//! [`Counter`](super::moves::Counter) lists them, for costs and material.

use lanner_primitives::Ring;

use super::lanes::{Lanes, mask};
use crate::{Party, ProtocolError};

/// Takes and gives one party's shares: of values, reduced modulo a power of two that the protocol knows, or of bits in words.
pub(super) trait Driver {
    type Values: Lanes;

    /// Whose shares they are.
    fn party(&self) -> Party;

    /// For each block of the values of `bits` bits, the lowest first, in words: `[not a < b]` for the first party's `a` and the
    /// second's `b`, and whether both are equal.
    fn leaves(&mut self, mine: &Self::Values, bits: u32) -> Result<Vec<[Self::Values; 2]>, ProtocolError>;

    /// The products of shared bits, in words.
    fn and(&mut self, u: &Self::Values, v: &Self::Values) -> Result<Self::Values, ProtocolError>;

    /// The products of shared bits, in words, and shared values, modulo `2^bits`.
    fn mux(&mut self, c: &Self::Values, x: &Self::Values, bits: u32) -> Result<Self::Values, ProtocolError>;

    /// The products of the first party's values, of `factor` bits, and the second's, modulo `2^bits`.
    fn product(&mut self, mine: &Self::Values, factor: u32, bits: u32)
    -> Result<Self::Values, ProtocolError>;

    /// This party's share of a public number: the server's is the number, the client's zero.
    fn public(&self, number: u64) -> u64 {
        if self.party() == Party::Server { number } else { 0 }
    }

    /// `[a + b >= 2^bits]`, in words, for each `a` of the client's and `b` of the server's, both of a given number of bits.
    fn carry(&mut self, mine: &Self::Values, bits: u32) -> Result<Self::Values, ProtocolError> {
        let mut level = self.leaves(mine, bits)?;
        while level.len() > 1 {
            level = self.join(&level)?;
        }
        let [less, _] = level.pop().ok_or(ProtocolError::Shape { what: "a carry of no bits" })?;
        Ok(less)
    }

    /// Joins neighbouring blocks, of which the higher decides: `less = less_h xor (equal_h and less_l)`.
    fn join(&mut self, blocks: &[[Self::Values; 2]]) -> Result<Vec<[Self::Values; 2]>, ProtocolError> {
        let (mut u, mut v) = (Vec::new(), Vec::new());
        for (number, pair) in blocks.chunks_exact(2).enumerate() {
            let [[less, equal], [_, equal_high]] = [&pair[0], &pair[1]];
            // Equality of the lowest is of no use.
            let needed = if number == 0 { &[less] as &[_] } else { &[less, equal] };
            u.extend(needed.iter().map(|_| equal_high));
            v.extend(needed);
        }
        let products = self.and(&Lanes::concat(&u), &Lanes::concat(&v))?;
        let words = blocks[0][0].count();
        let product = |number: usize| products.range(number * words..(number + 1) * words);
        let joined = |(number, pair): (usize, &[[Self::Values; 2]])| match pair {
            [[_, unused], [less, _]] if number == 0 => [less.zip_map(&product(0), xor), unused.clone()],
            [_, [less, _]] => [less.zip_map(&product(2 * number - 1), xor), product(2 * number)],
            left_over => left_over[0].clone(),
        };
        Ok(blocks.chunks(2).enumerate().map(joined).collect())
    }

    /// Shares modulo `2^to` of what [`Self::carry`] gives as bits: the sum of both parties' bits less twice their product.
    fn carry_value(
        &mut self,
        mine: &Self::Values,
        bits: u32,
        to: u32,
    ) -> Result<Self::Values, ProtocolError> {
        let (carry, ring) = (self.carry(mine, bits)?.bits(mine.count()), Ring::Pow2(to));
        // Twice the product counts: its top bit does not.
        let both = self.product(&carry, 1, if to > 1 { to - 1 } else { 1 })?;
        Ok(carry.zip_map(&both, |carry, both| ring.sub(carry, both << 1)))
    }

    /// Whether each value shared modulo `2^bits` is not negative, in words.
    fn not_negative(&mut self, x: &Self::Values, bits: u32) -> Result<Self::Values, ProtocolError> {
        // The sign is the sum of both top bits and the carry of the others; one more for its complement.
        let carry = self.carry(&x.map(|x| x & mask(bits - 1)), bits - 1)?;
        let sign = carry.zip_map(&x.map(|x| x >> (bits - 1)).words(), xor);
        let one = if self.party() == Party::Client { u64::MAX } else { 0 };
        Ok(sign.map(|word| word ^ one))
    }

    /// `max(x, 0)` of values shared modulo `2^bits`.
    fn positive_part(&mut self, x: &Self::Values, bits: u32) -> Result<Self::Values, ProtocolError> {
        let positive = self.not_negative(x, bits)?;
        self.mux(&positive, x, bits)
    }

    /// Shares modulo `2^to` of values from 0 that are shared modulo `2^from`. Where all are `below_half` of the latter, that takes one product.
    fn extend(
        &mut self,
        x: &Self::Values,
        from: u32,
        to: u32,
        below_half: bool,
    ) -> Result<Self::Values, ProtocolError> {
        let ring = Ring::Pow2(to);
        if to <= from {
            return Ok(x.map(|x| ring.embed(x as i64)));
        }
        let wraps = if below_half {
            // The shares wrap if either has its top bit set: the value has not. Both have it in the product.
            let top = x.map(|x| x >> (from - 1));
            let both = self.product(&top, 1, to - from)?;
            top.zip_map(&both, u64::wrapping_sub)
        } else {
            self.carry_value(x, from, to - from)?
        };
        Ok(x.zip_map(&wraps, |x, wrap| ring.sub(x, ring.embed((wrap << from) as i64))))
    }

    /// The squares of values shared modulo `2^bits`: `(a + b)^2 = a^2 + b^2 + 2 a b`, the product modulo half of that.
    fn square(&mut self, x: &Self::Values, bits: u32) -> Result<Self::Values, ProtocolError> {
        let (ring, half) = (Ring::Pow2(bits), bits - 1);
        let cross = self.product(&x.map(|x| x & mask(half)), half, half)?;
        Ok(x.zip_map(&cross, |x, cross| ring.add(x.wrapping_mul(x), cross << 1)))
    }
}

const fn xor(x: u64, y: u64) -> u64 {
    x ^ y
}
