//! SIRNN's exponential of what is negative, sigmoid and tanh ([RRGRKC21](https://eprint.iacr.org/2021/459), section 5).
//!
//! Digits of the value, an exponential of each by a lookup, their product; then the reciprocal. Every truncation is exact, towards minus infinity,
//! as in the paper: results are functions of the value alone.

use lanner_primitives::Ring;
use lanner_step::ProtocolError;
use lanner_transfers::blocks::{Driver, Lanes, Part, Program, Task, compare};

use crate::blocks::{Positive, add_where, mask, multiply, rows, sign, table, truncate};
use crate::reciprocal::Reciprocal;

/// `exp(-z / 2^input)` with `scale` fraction bits, modulo `2^(scale + 2)`, for values `z` from 0 on, of as many bits as the digits have together.
#[derive(Clone, Copy, Debug)]
struct Decay {
    input: i32,
    scale: u32,
    /// Bits of two digits or three, the lowest first.
    digits: &'static [u32],
    /// Added to every value.
    beyond: u32,
}

impl Decay {
    fn bits(self) -> u32 {
        self.digits.iter().sum()
    }

    fn run<D: Driver>(self, driver: &mut D, z: &D::Values) -> Result<Positive<D::Values>, ProtocolError> {
        let mut lookups = Vec::new();
        let mut shift = 0;
        for (places, width) in self.split(driver, z)?.into_iter().zip(self.digits) {
            let beyond = if shift == 0 { self.beyond } else { 0 };
            let entry = |j: u32| {
                let x = f64::from(beyond) + f64::from(j) * f64::from(shift).exp2();
                ((-x / f64::from(self.input).exp2()).exp() * f64::from(self.scale).exp2()) as u64
            };
            let entries = (0..1 << width).map(entry).collect();
            let table = table(*width, vec![(self.scale + 2, entries)])?;
            lookups.push(Task::Lookup { places, table });
            shift += width;
        }
        let factors = driver.turn(lookups)?.into_iter().flatten();
        let factors = factors.map(|values| Positive { values, bits: self.scale + 2 });
        let mut all: Option<Positive<D::Values>> = None;
        for factor in factors {
            all = Some(match all {
                None => factor,
                Some(all) => product(driver, &all, &factor, self.scale)?,
            });
        }
        all.ok_or(ProtocolError::Missing("the digits of an exponential"))
    }

    /// The digits, each modulo the power of two that it is below: the carries of the lower ones are computed together.
    fn split<D: Driver>(self, driver: &mut D, z: &D::Values) -> Result<Vec<D::Values>, ProtocolError> {
        let (mut own, mut shift) = (Vec::new(), 0);
        for width in self.digits {
            own.push(z.map(|z| z >> shift & mask(*width)));
            shift += width;
        }
        let part = |(number, digit): (usize, &D::Values)| Part {
            numbers: vec![digit.clone()],
            bits: self.digits[number],
            equality: number > 0,
        };
        let lower = own.iter().enumerate().take(own.len() - 1).map(part).collect();
        let compared = compare(driver, lower)?;
        let mut carries: Vec<D::Values> = compared.iter().map(|[less, _]| less.clone()).collect();
        if let [[first, _], [second, equal]] = &compared[..] {
            let [passed] = rows(vec![driver.bit_products(first.clone(), vec![equal.clone()])?])?;
            carries[1] = second.zip_map(&passed, |second, passed| second ^ passed);
        }
        let bits: Vec<D::Values> = carries.iter().map(|carry| carry.bits(z.count())).collect();
        let widths = &self.digits[1..];
        let tasks = bits.iter().zip(widths).map(|(bits, width)| driver.to_values(bits, *width)).collect();
        let both = driver.turn(tasks)?.into_iter().flatten();
        for (((digit, bits), both), width) in own[1..].iter_mut().zip(&bits).zip(both).zip(widths) {
            let carry = driver.values_of(bits, &both, *width);
            *digit = digit.zip_map(&carry, |digit, carry| Ring::Pow2(*width).add(digit, carry));
        }
        Ok(own)
    }
}

/// The product of two numbers from 0 to 1, with `scale` fraction bits like both, modulo `2^(scale + 2)`.
fn product<D: Driver>(
    driver: &mut D,
    x: &Positive<D::Values>,
    y: &Positive<D::Values>,
    scale: u32,
) -> Result<Positive<D::Values>, ProtocolError> {
    let product = multiply(driver, x, y, 2 * scale + 2)?;
    let (values, _) = truncate(driver, &product, scale, scale + 2)?;
    Ok(Positive { values, bits: scale + 2 })
}

/// `exp(x / 2^scale)` for values from `-2^bits` to -1, both with `scale` fraction bits, where the digits have that many bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NegativeExp {
    pub(crate) scale: u32,
    pub(crate) digits: &'static [u32],
}

impl Program for NegativeExp {
    fn run<D: Driver>(&self, driver: &mut D, x: &D::Values) -> Result<D::Values, ProtocolError> {
        let Self { scale, digits } = *self;
        let decay = Decay { input: scale as i32, scale, digits, beyond: 1 };
        // -x - 1, which fits.
        let (ring, offset) = (Ring::Pow2(decay.bits()), driver.public(mask(decay.bits())));
        let z = x.map(|x| ring.sub(offset, x & mask(decay.bits())));
        Ok(decay.run(driver, &z)?.values)
    }
}

/// `sigmoid(x)` or `tanh(x)` for values over one bit more than the digits have, but for the lowest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Curve {
    pub(crate) scale: u32,
    pub(crate) digits: &'static [u32],
    pub(crate) reciprocal: Reciprocal,
    pub(crate) is_tanh: bool,
}

impl Program for Curve {
    fn run<D: Driver>(&self, driver: &mut D, x: &D::Values) -> Result<D::Values, ProtocolError> {
        let Self { scale, digits, reciprocal, is_tanh } = *self;
        // Twice the value is the value with a fraction bit less.
        let decay = Decay { input: scale as i32 - i32::from(is_tanh), scale, digits, beyond: 0 };
        let (below, bits) = (decay.bits(), scale + 2);
        let negative = sign(driver, x, below + 1)?;
        let twice = x.map(|x| (x << 1).wrapping_neg() & mask(below));
        let magnitude = add_where(driver, x, negative.clone(), twice, below)?;
        let e = decay.run(driver, &magnitude)?;
        // 1 + e, and where that is 2 one unit less.
        let (one, ring) = (driver.public(1 << scale), Ring::Pow2(bits));
        let v = e.values.map(|e| ring.add(e, one));
        let is_two = sign(driver, &v, bits)?.bits(v.count());
        let less = driver.bits_to_values(&is_two, bits)?;
        let v = v.zip_map(&less, |v, less| ring.sub(v, less));
        if is_tanh {
            let (w, _) = reciprocal.run(driver, &v, None)?;
            let numerator = Positive { values: e.values.map(|e| ring.sub(one, e)), bits };
            let of_magnitude = product(driver, &numerator, &w, scale)?.values;
            let twice = of_magnitude.map(|y| ring.neg(ring.add(y, y)));
            return add_where(driver, &of_magnitude, negative, twice, bits);
        }
        // 1, or e where x is negative.
        let values = e.values.map(|e| ring.sub(e, one));
        let (w, chosen) = reciprocal.run(driver, &v, Some(Task::Mux { choices: negative, values, bits }))?;
        let chosen = chosen.ok_or(ProtocolError::Missing("a numerator"))?;
        let numerator = Positive { values: chosen.map(|chosen| ring.add(chosen, one)), bits };
        Ok(product(driver, &numerator, &w, scale)?.values)
    }
}
