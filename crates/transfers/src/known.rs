//! Numbers of a known range on their way into other rings.
//!
//! Moved so that the least is 0 they stay below half of their ring, so that both shares' sum wraps where either has its top bit set: one
//! product of a bit tells, where a comparison of all bits would have to.

use lanner_primitives::Ring;
use lanner_step::{ProtocolError, Result};

use super::comparison::{carry, compare};
use super::driver::{Driver, Part, Task, only, unwrap};
use super::lanes::{Lanes, mask};

/// Numbers from `low` to less than half of `2^bits` above it, shared modulo `2^bits`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    low: i128,
    pub(super) bits: u32,
}

/// Numbers that are to be shared modulo `2^to`.
pub(super) struct Widened<V> {
    pub(super) numbers: V,
    pub(super) known: Known,
    pub(super) to: u32,
}

impl Known {
    /// Those between two, the lower of which is first rounded down to a multiple of `2^unit`: more than so many bits, and as few as may be.
    pub(super) fn between([low, high]: [i128; 2], unit: u32) -> Self {
        let low = low >> unit << unit;
        let bits = u128::BITS - (high - low).unsigned_abs().leading_zeros() + 1;
        Self { low, bits: bits.max(unit + 1) }
    }

    /// The same where no more than `2^bits` of the ring matters.
    pub(super) const fn reduced(self, bits: u32) -> Self {
        Self { low: self.low, bits }
    }

    /// The lowest modulo the ring of so many bits, as the server's share of it.
    fn low<D: Driver>(self, driver: &D, bits: u32) -> u64 {
        driver.public(self.low as u64) & mask(bits)
    }

    /// The distances of the numbers from the lowest.
    fn moved<D: Driver>(self, driver: &D, numbers: &D::Values) -> D::Values {
        let (ring, low) = (Ring::Pow2(self.bits), self.low(driver, self.bits));
        numbers.map(|x| ring.sub(x & mask(self.bits), low))
    }

    /// The task that tells the wraps of distances, as far as a ring of `2^to` takes them.
    fn wraps<V: Lanes>(self, moved: &V, to: u32) -> Task<V> {
        Task::Products { mine: moved.map(|x| x >> (self.bits - 1)), factor: 1, bits: to - self.bits }
    }

    /// `floor(x / 2^unit)` of the numbers, which are between multiples of `2^unit`, modulo `2^to`.
    pub(super) fn drop<D: Driver>(
        self,
        driver: &mut D,
        numbers: &D::Values,
        unit: u32,
        to: u32,
    ) -> Result<D::Values> {
        if unit == 0 {
            return only(widen(driver, vec![Widened { numbers: numbers.clone(), known: self, to }])?);
        }
        let (moved, count, ring) = (self.moved(driver, numbers), numbers.count(), Ring::Pow2(to));
        let low_bits = moved.map(|x| x & mask(unit));
        let mut tasks = Vec::new();
        // One bit of each party carries where both are set: their product.
        let carry = if unit == 1 {
            tasks.push(Task::Products { mine: low_bits, factor: 1, bits: to });
            None
        } else {
            let carry = carry(driver, low_bits, unit)?.bits(count);
            tasks.push(driver.to_values(&carry, to));
            Some(carry)
        };
        let wraps = to + unit > self.bits;
        if wraps {
            tasks.push(self.wraps(&moved, to + unit));
        }
        let mut done = driver.turn(tasks)?;
        let both = if wraps { done.pop() } else { None };
        let carried = only(only(done)?)?;
        let carried = carry.map_or_else(|| carried.clone(), |carry| driver.values_of(&carry, &carried, to));
        let high = moved.map(|x| x >> unit);
        let high = match both {
            Some(both) => self.without_wraps(&high, &moved, &only(both)?, self.bits - unit, ring),
            None => high,
        };
        let low = driver.public((self.low >> unit) as u64) & mask(to);
        Ok(high.zip_map(&carried, |x, carry| ring.add(ring.add(x & mask(to), carry & mask(to)), low)))
    }

    /// Shares modulo `2^bits` of what distances are made of, in a wider ring, given the product of the top bits.
    fn without_wraps<V: Lanes>(self, numbers: &V, moved: &V, both: &V, bits: u32, ring: Ring) -> V {
        let either = moved.zip_map(both, |x, both| (x >> (self.bits - 1)).wrapping_sub(both));
        unwrap(numbers, &either, bits, ring)
    }
}

/// Numbers in wider rings, or in narrower ones: of all in one turn, or none.
pub(super) fn widen<D: Driver>(driver: &mut D, all: Vec<Widened<D::Values>>) -> Result<Vec<D::Values>> {
    let (mut tasks, mut moved) = (Vec::new(), Vec::new());
    for Widened { numbers, known, to } in all.iter().filter(|of| of.to > of.known.bits) {
        let numbers = known.moved(driver, numbers);
        tasks.push(known.wraps(&numbers, *to));
        moved.push(numbers);
    }
    let done = if tasks.is_empty() { Vec::new() } else { driver.turn(tasks)? };
    let mut told = moved.into_iter().zip(done);
    let missing = || ProtocolError::Missing("the wraps of shares");
    let wide = |Widened { numbers, known, to }: Widened<D::Values>| {
        if to <= known.bits {
            return Ok(numbers.map(|x| x & mask(to)));
        }
        let (moved, both) = told.next().ok_or_else(missing)?;
        let (ring, low) = (Ring::Pow2(to), known.low(driver, to));
        let distance = known.without_wraps(&moved, &moved, &only(both)?, known.bits, ring);
        Ok(distance.map(|x| ring.add(x, low)))
    };
    all.into_iter().map(wide).collect()
}

/// The carries out of consecutive runs of bits of both parties' shares, from the lowest bit on, in words; none where nothing lies below.
pub(super) fn carries<D: Driver>(
    driver: &mut D,
    u: &D::Values,
    runs: &[u32],
) -> Result<Vec<Option<D::Values>>> {
    let mut parts = Vec::new();
    let mut from = 0;
    for bits in runs.iter().filter(|bits| **bits > 0) {
        let numbers = vec![u.map(|u| u >> from & mask(*bits))];
        parts.push(Part { numbers, bits: *bits, equality: from > 0 });
        from += bits;
    }
    let mut told = if parts.is_empty() { Vec::new() } else { compare(driver, parts)? }.into_iter();
    let missing = || ProtocolError::Missing("the carries of places");
    let mut carries: Vec<Option<D::Values>> = Vec::new();
    for bits in runs {
        let below = carries.last().cloned().flatten();
        carries.push(if *bits == 0 {
            below
        } else {
            let [less, equal] = told.next().ok_or_else(missing)?;
            Some(match below {
                None => less,
                Some(below) => {
                    let through = only(driver.bit_products(equal, vec![below])?)?;
                    less.zip_map(&through, |less, through| less ^ through)
                }
            })
        });
    }
    Ok(carries)
}
