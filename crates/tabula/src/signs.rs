//! What follows from opened values under masks that keys compare with.

use lanner_dpf::Salts;
use lanner_primitives::Ring;
use lanner_step::{Party, Result};

use super::keys::Made;

/// A party's view of values u of `kept` bits with their sign, `e = u + t mod 2^kept`, whose t the keys have as thresholds.
pub(super) struct Signs<'a> {
    pub(super) party: Party,
    /// Of the keys.
    pub(super) salts: &'a Salts,
    pub(super) made: &'a Made,
    pub(super) kept: u32,
    /// Bits of the ring of the results.
    pub(super) to: u32,
}

impl Signs<'_> {
    /// This party's shares of `e - t` as numbers with their signs, given e.
    pub(super) fn values(&self, e: &[u64]) -> Result<Vec<u64>> {
        self.parts(e, 1 << (self.kept - 1), |e, upper, t, _, [c2, _]| {
            self.public(e.wrapping_sub(upper << self.kept)).wrapping_sub(t).wrapping_add(c2 << self.kept)
        })
    }

    /// This party's shares of their positive parts.
    pub(super) fn positive(&self, e: &[u64]) -> Result<Vec<u64>> {
        self.above(e, 0)
    }

    /// This party's shares of their positive parts less those of the same less a bound, which is below `2^(kept-1)`.
    pub(super) fn clipped(&self, e: &[u64], bound: u64) -> Result<Vec<u64>> {
        let ring = Ring::Pow2(self.to);
        let both = self.positive(e)?.into_iter().zip(self.above(e, bound)?);
        Ok(both.map(|(positive, above)| ring.sub(positive, above)).collect())
    }

    /// This party's shares of what they are above a bound, which is below `2^(kept-1)`.
    fn above(&self, e: &[u64], bound: u64) -> Result<Vec<u64>> {
        // Values u less the bound count from 0 to below this, as numbers without sign; from `2^(kept-1) - bound` on they are values below 0.
        let width = (1 << (self.kept - 1)) - bound;
        let of = Ring::Pow2(self.kept);
        let moved: Vec<u64> = e.iter().map(|e| of.sub(*e, bound)).collect();
        self.parts(&moved, width, |e, outside, t, [c1, c1_t], [c2, c2_t]| {
            // Nothing of what counts where e is below the width alone.
            let inside = outside.wrapping_sub(1);
            let counts = self.public(1 - outside).wrapping_sub(c1).wrapping_add(c2);
            let t = (t & inside).wrapping_sub(c1_t).wrapping_add(c2_t);
            e.wrapping_mul(counts).wrapping_sub(t).wrapping_add(c2 << self.kept & inside)
        })
    }

    /// Of each e, whether it reaches a width, this party's share of t, and its parts of `[e < t]` and `[e - width < t]`, times 1 and t.
    fn parts(
        &self,
        e: &[u64],
        width: u64,
        part: impl Fn(u64, u64, u64, [u64; 2], [u64; 2]) -> u64,
    ) -> Result<Vec<u64>> {
        let (ring, of_e) = (Ring::Pow2(self.to), Ring::Pow2(self.kept));
        let moved: Vec<u64> = e.iter().map(|e| of_e.sub(*e, width)).collect();
        let [c1, c1_t] = self.made.keys.evaluate(self.salts, e)?;
        let [c2, c2_t] = self.made.keys.evaluate(self.salts, &moved)?;
        let of = |i: usize| {
            let t = self.made.thresholds[i];
            ring.embed(part(e[i], u64::from(e[i] >= width), t, [c1[i], c1_t[i]], [c2[i], c2_t[i]]) as i64)
        };
        Ok((0..e.len()).map(of).collect())
    }

    /// This party's share of a public number.
    fn public(&self, number: u64) -> u64 {
        if self.party == Party::Server { number } else { 0 }
    }
}
