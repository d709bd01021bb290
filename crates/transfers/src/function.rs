//! Functions of one value by polynomials on segments of a domain: exponentials, sigmoid, tanh, and whatever else is smooth or has a table.
//!
//! [`Polynomials`] says in integers what is computed, so that the result is a function of the value alone. OPAF's formulas (exponentials
//! of each party's own share, multiplied) and roundings of each party's own share are not: what they are off by is a function of the shares,
//! and a party that knows its own learns of the value by asking again. Here every carry is computed.
//!
//! ```text
//! u = clip(round(x / 2^shift) - low, 0, 2^bits - 1)        one comparison, unless the domain is the whole ring; with both ends, or the one
//!                                                          that values may lie beyond
//! u = g 2^(m+t) + h 2^t + e                                the carries of both parties' low t bits, and of the low m + t
//! c_0, c_1, ... of segment h                               one lookup
//! p = (... (c_d e + c_(d-1)) e + ...) e + c_0              for each degree products of p with both shares of e, and with the carry
//! b = round(p / 2^drop)                                    one comparison
//! y = round(a[g] b / 2^drop')                              a lookup of each party's share of b times every factor, and one comparison
//! ```

use lanner_primitives::Ring;
use lanner_step::{ProtocolError, Result};
use serde::{Deserialize, Serialize};

use super::curve::{Curve, Cut};
use super::driver::Driver;
use super::lanes::{Lanes, mask};
use super::polynomials::{Polynomials, half};
use super::scale::Scale;

/// An end of a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// Its smallest number.
    Low,
    /// Its largest.
    High,
}

/// See [`super::Layer::function`].
#[derive(Clone, Debug)]
pub(super) struct Function {
    /// How values come: rounded, less where the domain begins.
    scale: Scale,
    /// Added by the server before: half of what is dropped, less where the domain begins.
    offset: u64,
    /// Whether the domain is the whole ring.
    is_whole: bool,
    /// The end that no value lies beyond, if one is known.
    within: Option<End>,
    /// Of a place in the domain.
    bits: u32,
    curve: Curve,
}

impl Function {
    pub(super) fn new(function: &Polynomials, [from, to]: [u32; 2], shift: u32) -> Result<Self> {
        let refuse = |what| Err(ProtocolError::Parameters(what));
        let split = function.split()?;
        let left = from.saturating_sub(shift);
        if from > MAX_BITS || !(1..=MAX_BITS).contains(&to) {
            return refuse("bits of a function");
        }
        let is_whole = left == function.bits && function.low == -1 << (function.bits - 1);
        let fits = left > function.bits && function.low.unsigned_abs() <= 1 << (left - 2);
        if !is_whole && !fits {
            return refuse("a domain beyond a quarter of the ring");
        }
        let ring = Ring::Pow2(from);
        let offset = ring.sub(half(shift), ring.embed(function.low << shift));
        let (cut, factors) = ((function.shift, Cut::Nearest), function.factors.as_ref());
        let curve = Curve::new(split, &function.polynomials, cut, factors, to)?;
        Ok(Self { scale: Scale { from, shift }, offset, is_whole, within: None, bits: function.bits, curve })
    }

    /// The same of values none of which lies beyond an end.
    pub(super) fn within(self, within: Option<End>) -> Result<Self> {
        let drops = self.scale.shift > 0 && within == Some(End::Low);
        ProtocolError::refuse_if(drops, "bits dropped in front of a domain without a low end")?;
        Ok(Self { within, ..self })
    }

    pub(super) fn run<D: Driver>(&self, driver: &mut D, x: &D::Values) -> Result<D::Values> {
        let u = self.place(driver, x)?;
        self.curve.run(driver, &u)
    }

    /// Where values lie in the domain, modulo its size.
    fn place<D: Driver>(&self, driver: &mut D, x: &D::Values) -> Result<D::Values> {
        let (ring, offset) = (Ring::Pow2(self.scale.from), driver.public(self.offset));
        let x = x.map(|x| ring.add(x, offset));
        let u = match self.within {
            _ if self.is_whole => self.scale.extend(driver, &x, self.bits)?,
            Some(End::Low) => self.scale.at_most(driver, &x, self.bits)?,
            Some(End::High) => self.scale.low_of_positive_part(driver, &x, self.bits)?,
            None => self.scale.clip(driver, &x, mask(self.bits) as i64)?,
        };
        Ok(u.map(|u| u & mask(self.bits)))
    }
}

/// The widest ring.
const MAX_BITS: u32 = 62;
