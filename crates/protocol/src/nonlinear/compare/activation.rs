//! Maximum over windows, ReLU, rescaling and an upper bound, in the small ring that rescaling leaves.

use lanner_share::{Ring, Share};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::moves::{Move, Moves, carry, words};
use super::run::{Run, Values, both_bits, mask, packed, unpacked};
use crate::nonlinear::windows::Windows;
use crate::nonlinear::yao::Function;
use crate::{Party, ProtocolError};

/// How values lose `d` bits. Each party drops the low bits of its own share, modulo `2^(l-d)`; what is missing is the carry of those.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rounding {
    /// `floor((x + 2^(d-1)) / 2^d)`: the carry is computed, by a comparison of `d` bits.
    Exact,
    /// `floor(x / 2^d) + [u <= x mod 2^d]` with u the low bits of the client's share: one is added in the carry's place. Never off by more than
    /// one from [`Self::Exact`]. A client that knows u and sees what is computed from the outputs can solve for x and for weights behind.
    Faithful,
}

/// See [`super::Layer::activation`].
#[derive(Clone, Debug)]
pub(super) struct Activation {
    function: Function,
    /// The elements of each window, as many for all.
    windows: Vec<Vec<usize>>,
    area: usize,
    from: u32,
    to: u32,
    rounding: Rounding,
}

impl Activation {
    pub(super) fn new(
        function: Function,
        windows: &Windows,
        from: u32,
        to: u32,
        rounding: Rounding,
    ) -> Result<Self, ProtocolError> {
        let refuse = |what| Err(ProtocolError::Shape { what });
        if function.slope.is_some() {
            return refuse("a slope over a power of two");
        }
        if function.high.is_some_and(|high| high < 0 || !function.relu) {
            return refuse("an upper bound that is negative or without ReLU");
        }
        let left = from.saturating_sub(function.shift);
        let widths = left >= 3 && from <= MAX_BITS && (2..=MAX_BITS).contains(&to);
        if !widths || function.high.is_some_and(|high| high as u64 > mask(left - 2)) {
            return refuse("bits of a nonlinear layer");
        }
        let groups = windows.filled_groups()?;
        Ok(Self { function, windows: groups, area: windows.area(), from, to, rounding })
    }

    /// Bits that are left behind the shift.
    const fn bits(&self) -> u32 {
        self.from - self.function.shift
    }

    pub(super) fn moves(&self) -> Moves {
        let (count, bits) = (self.windows.len(), self.bits());
        let mut moves = Vec::new();
        if self.function.shift > 0 && self.rounding == Rounding::Exact {
            let values = count * self.area;
            moves.extend(carry(values, self.function.shift));
            moves.push(Move::Overlaps { values, bits: both_bits(bits) });
        }
        for values in pairs(self.area).map(|pairs| pairs * count) {
            moves.extend(carry(values, bits - 1));
            moves.push(Move::Selections { values, bits });
        }
        if self.function.relu {
            let bounded = self.function.high.is_some();
            let values = count * (1 + usize::from(bounded));
            moves.extend(carry(values, bits - 1));
            moves.extend(bounded.then_some(Move::Conjunctions { words: words(count) }));
            moves.push(Move::Selections { values, bits });
        }
        if let Some(more) = self.to.checked_sub(bits).filter(|more| *more > 0) {
            if self.function.relu {
                moves.push(Move::Overlaps { values: count, bits: more });
            } else {
                moves.extend(carry(count, bits));
                moves.push(Move::Overlaps { values: count, bits: both_bits(more) });
            }
        }
        Moves(moves)
    }

    pub(super) fn run(&self, run: &mut Run, party: Party, x: &[u64]) -> Result<Share, ProtocolError> {
        // Element by element of the windows, so that neighbours in a window are compared in one go.
        let gathered = (0..self.area).flat_map(|element| self.windows.iter().map(move |w| x[w[element]]));
        let mut values = self.truncate(run, party, Zeroizing::new(gathered.collect()))?;
        for pairs in pairs(self.area) {
            values = self.maximum(run, &values, pairs)?;
        }
        if self.function.relu {
            values = self.rectify(run, party, values)?;
        }
        self.extend(run, party, values)
    }

    fn truncate(&self, run: &mut Run, party: Party, mut x: Values) -> Result<Values, ProtocolError> {
        let (shift, is_server) = (self.function.shift, party == Party::Server);
        if shift == 0 {
            return Ok(x);
        }
        let ring = Ring::Pow2(self.bits());
        let drop_bits = |x: &Values| -> Values { Zeroizing::new(x.iter().map(|x| x >> shift).collect()) };
        if self.rounding == Rounding::Faithful {
            let mut y = drop_bits(&x);
            y.iter_mut().for_each(|y| *y = ring.add(*y, u64::from(is_server)));
            return Ok(y);
        }
        let half = u64::from(is_server) << (shift - 1);
        x.iter_mut().for_each(|x| *x = Ring::Pow2(self.from).add(*x, half));
        let low: Values = Zeroizing::new(x.iter().map(|x| x & mask(shift)).collect());
        let carry = run.carry_value(&low, shift, self.bits())?;
        let mut y = drop_bits(&x);
        y.iter_mut().zip(carry.iter()).for_each(|(y, carry)| *y = ring.add(*y, *carry));
        Ok(y)
    }

    /// The larger of each of the first `pairs` pairs of rows, and the row that is left over.
    fn maximum(&self, run: &mut Run, values: &Values, pairs: usize) -> Result<Values, ProtocolError> {
        let (count, bits) = (self.windows.len(), self.bits());
        let (a, rest) = values.split_at(pairs * count);
        let (b, left) = rest.split_at(pairs * count);
        let ring = Ring::Pow2(bits);
        let difference: Values = Zeroizing::new(a.iter().zip(b).map(|(a, b)| ring.sub(*a, *b)).collect());
        let sign = run.negative(&difference, bits)?;
        let not_negative = run.not(sign);
        let above = run.select(&not_negative, &difference, bits)?;
        let larger = b.iter().zip(above.iter()).map(|(b, above)| ring.add(*b, *above));
        Ok(Zeroizing::new(larger.chain(left.iter().copied()).collect()))
    }

    /// `max(y, 0)`, less `max(y - high, 0)` where there is a bound: both from one comparison of twice as many values. Nothing is taken off
    /// where y is negative: `y - high` may be too small for the ring there. So the output is never negative, whatever y is.
    fn rectify(&self, run: &mut Run, party: Party, mut y: Values) -> Result<Values, ProtocolError> {
        let (count, bits) = (self.windows.len(), self.bits());
        let ring = Ring::Pow2(bits);
        if let Some(high) = self.function.high {
            let high = if party == Party::Server { ring.embed(high) } else { 0 };
            let above: Values = Zeroizing::new(y.iter().map(|y| ring.sub(*y, high)).collect());
            y = Zeroizing::new([y.as_slice(), above.as_slice()].concat());
        }
        let sign = run.negative(&y, bits)?;
        let mut chosen = run.not(sign);
        if self.function.high.is_some() {
            let bits = unpacked(&chosen, 2 * count);
            let (positive, above) = bits.split_at(count);
            let above = unpacked(&run.conjunction(&packed(positive), &packed(above))?, count);
            chosen = packed(&Values::new([positive, above.as_slice()].concat()));
        }
        let mut rectified = run.select(&chosen, &y, bits)?;
        if self.function.high.is_some() {
            let (kept, above) = rectified.split_at(count);
            let clipped = kept.iter().zip(above).map(|(kept, above)| ring.sub(*kept, *above)).collect();
            rectified = Zeroizing::new(clipped);
        }
        Ok(rectified)
    }

    /// To the ring of the output. What may be negative is moved up by half of the small ring for it, which takes every value there is: the
    /// output is the same for all shares, also of values beyond what numbers of this ring should be.
    fn extend(&self, run: &mut Run, party: Party, mut y: Values) -> Result<Share, ProtocolError> {
        let (bits, to) = (self.bits(), Ring::Pow2(self.to));
        let half = if self.function.relu || party == Party::Client { 0 } else { 1 << (bits - 1) };
        y.iter_mut().for_each(|y| *y = Ring::Pow2(bits).add(*y, half));
        let extended = run.extend(&y, bits, self.to, self.function.relu)?;
        let values = extended.iter().map(|y| to.sub(*y, to.embed(half as i64))).collect();
        Ok(Share::new(to, values)?)
    }
}

/// The pairs of each level of a tournament among so many.
fn pairs(players: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(players), |left| Some(left.div_ceil(2)))
        .take_while(|left| *left > 1)
        .map(|left| left / 2)
}

/// The widest ring: sums of two elements fit 64 bits with room.
const MAX_BITS: u32 = 62;
