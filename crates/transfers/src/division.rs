//! Quotients of a public number by a shared one, digit by digit: each digit by comparisons with all multiples of the divisor at once.
//!
//! ```text
//! r_q = r - q 2^place S >= 0 ?     for q = 1, 2, ...: comparisons
//! digit = sum of what they tell;   r = r - 2^place S for each that is true: multiplexers
//! ```

use lanner_primitives::Ring;
use lanner_step::{ProtocolError, Result};

use super::driver::{Driver, Task, only};
use super::lanes::Lanes;
use super::scale::Scale;

/// The most bits of a quotient that are found at once.
const MOST_BITS: u32 = 7;

/// `floor(dividend / S + 1/2)` for shared S from `least` to `most`.
#[derive(Clone, Debug)]
pub(super) struct Division {
    dividend: u64,
    /// The highest first.
    digits: Vec<Digit>,
    /// The ring that the divisor comes in.
    pub(super) bits: u32,
}

/// Bits of a quotient.
#[derive(Clone, Copy, Debug)]
struct Digit {
    /// What they may be at most.
    largest: u64,
    /// Bits of the quotient below them.
    place: u32,
    /// The ring in which what is left has a sign.
    bits: u32,
}

impl Division {
    /// Of divisors from `least` to `most`.
    ///
    /// # Errors
    /// [`ProtocolError::Parameters`] if there is no quotient above 0, or no ring of 62 bits has room.
    pub(super) fn new(dividend: u64, [least, most]: [u64; 2]) -> Result<Self> {
        let refuse = ProtocolError::Parameters("the bits of a division");
        if dividend.max(most) >> 62 > 0 {
            return Err(refuse);
        }
        // Twice of everything, so that the half is an integer.
        let [dividend, least, most] = [dividend, least, most].map(u128::from);
        let quotient = (2 * dividend + least).checked_div(2 * least).unwrap_or(0);
        let quotient_bits = u128::BITS - quotient.leading_zeros();
        let (count, mut place) = (quotient_bits.div_ceil(MOST_BITS), quotient_bits);
        // What is left, at most.
        let mut left = 2 * dividend + most;
        let digit = |number: u32| {
            let width = place.div_ceil(count - number);
            place -= width;
            let largest = if number == 0 { quotient >> place } else { (1 << width) - 1 };
            let taken = (2 * most) << place;
            // Wider than any ring where it does not even fit here.
            let largest_taken = largest.saturating_mul(taken);
            let bits = u128::BITS - left.max(largest_taken).leading_zeros() + 1;
            left = left.min(taken);
            Digit { largest: largest as u64, place, bits }
        };
        let digits: Vec<Digit> = (0..count).map(digit).collect();
        match digits.first() {
            Some(Digit { bits, .. }) if *bits <= 62 => {
                Ok(Self { dividend: dividend as u64, bits: *bits, digits })
            }
            _ => Err(refuse),
        }
    }

    /// The quotients, modulo `2^to`, of one divisor that is shared modulo `2^bits`.
    pub(super) fn run<D: Driver>(&self, driver: &mut D, divisor: &D::Values, to: u32) -> Result<D::Values> {
        let (ring, out) = (Ring::Pow2(self.bits), Ring::Pow2(to));
        let dividend = driver.public(2 * self.dividend);
        let mut left = divisor.map(|s| ring.add(s, dividend));
        let mut quotient = divisor.map(|_| 0);
        for (number, digit) in self.digits.iter().enumerate() {
            let Digit { largest, place, bits } = *digit;
            let (ring, count) = (Ring::Pow2(bits), largest as usize);
            let taken = divisor.map(|s| ring.embed((s << (place + 1)) as i64));
            let tried: Vec<D::Values> = (1..=largest)
                .map(|q| {
                    left.zip_map(&taken, |r, t| {
                        ring.sub(ring.embed(r as i64), ring.embed(t.wrapping_mul(q) as i64))
                    })
                })
                .collect();
            let tried = D::Values::concat(&tried.iter().collect::<Vec<_>>());
            let told = Scale { from: bits, shift: 0 }.not_negative(driver, &tried)?;
            let lanes = told.bits(count);
            let mut tasks = vec![driver.to_values(&lanes, to)];
            if number + 1 < self.digits.len() {
                tasks.push(Task::Mux { choices: told, values: taken.gather(&vec![0; count]), bits });
            }
            let mut done = driver.turn(tasks)?.into_iter();
            let mut next = || only(done.next().unwrap_or_default());
            let values = driver.values_of(&lanes, &next()?, to);
            quotient = quotient
                .zip_map(&sum(&values, out), |q, digit| out.add(q, out.embed((digit << place) as i64)));
            if number + 1 < self.digits.len() {
                left = left.zip_map(&sum(&next()?, ring), |r, taken| ring.sub(ring.embed(r as i64), taken));
            }
        }
        Ok(quotient)
    }
}

/// The sum of all lanes.
pub(super) fn sum<V: Lanes>(values: &V, ring: Ring) -> V {
    let lanes = (0..values.count()).map(|lane| values.range(lane..lane + 1));
    let none = values.range(0..0);
    lanes.reduce(|sum, lane| sum.zip_map(&lane, |a, b| ring.add(a, b))).unwrap_or(none)
}
