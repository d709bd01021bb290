//! Comparisons of values that are about to lose their low bits: one tree over all bits gives the carry of those on its way to the sign.

use lanner_primitives::Ring;
use lanner_step::{ProtocolError, Result};

use super::comparison::{carry, compare};
use super::driver::{Driver, Part, Task, only, unwrap, xor};
use super::lanes::{Lanes, mask};
use super::moves::LEAF_BITS;

/// How values that are shared modulo `2^from` are read: as `floor(x / 2^shift)`, modulo `2^(from - shift)`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    pub(super) from: u32,
    pub(super) shift: u32,
}

/// For each of some bounds, in words.
struct Reached<V> {
    /// Whether it is reached.
    reached: Vec<V>,
    /// The carry of the dropped bits, where it is reached; nothing where no bits are dropped.
    carried: Vec<V>,
}

impl Scale {
    /// Bits that are left.
    pub(super) const fn left(self) -> u32 {
        self.from - self.shift
    }

    /// The scaled values but for the carry of the dropped bits.
    fn high<V: Lanes>(self, x: &V) -> V {
        x.map(|x| x >> self.shift)
    }

    fn low<V: Lanes>(self, x: &V) -> Part<V> {
        Part { numbers: vec![x.map(|x| x & mask(self.shift))], bits: self.shift, equality: false }
    }

    /// The bits above the dropped ones in which all bounds are zero, so that values less any of them have the values' own: none of few, and at most all
    /// but one below the top.
    fn shared(self, bounds: &[i64]) -> u32 {
        let zeros = bounds.iter().filter(|bound| **bound > 0).map(|bound| bound.trailing_zeros()).min();
        zeros.filter(|zeros| *zeros >= LEAST_SHARED).map_or(0, |zeros| zeros.min(self.left() - 2))
    }

    /// Whether scaled values reach each of at most two public bounds: the differences are not negative in the ring that is left.
    ///
    /// The sign of `x - bound` is the sum of both parties' top bits and the carry of all others: `less_h xor (equal_h and c)` with the
    /// carry `c` of the dropped bits, which the bounds leave as it is, as they do with the bits above these in which they are all zero. Only who
    /// answers takes the bounds off, so that one choice serves all.
    fn reach<D: Driver>(self, driver: &mut D, x: &D::Values, bounds: &[i64]) -> Result<Reached<D::Values>> {
        let (ring, shared) = (Ring::Pow2(self.from), self.shared(bounds));
        let (start, bits) = (self.shift + shared, self.left() - 1 - shared);
        let second = driver.is_second();
        let less_bound = |bound: &i64| {
            let bound = if second { ring.embed(bound << self.shift) } else { 0 };
            x.map(|x| ring.sub(x, bound))
        };
        let moved: Vec<D::Values> = bounds.iter().map(less_bound).collect();
        let numbers = moved.iter().map(|x| x.map(|x| x >> start & mask(bits))).collect();
        let high = Part { numbers, bits, equality: start > 0 };
        let low = (self.shift > 0).then(|| self.low(x));
        let middle = (shared > 0).then(|| Part {
            numbers: vec![x.map(|x| x >> self.shift & mask(shared))],
            bits: shared,
            equality: self.shift > 0,
        });
        let mut compared = compare(driver, low.into_iter().chain(middle).chain([high]).collect())?;
        let mut of_bounds = compared.split_off(compared.len() - bounds.len());
        if shared > 0
            && let Some(middle) = compared.pop()
        {
            of_bounds = above(driver, of_bounds, &middle, self.shift > 0)?;
        }
        let without_carry = |([less, _], x): (&[D::Values; 2], &D::Values)| {
            let top = x.map(|x| x >> (self.from - 1)).words();
            driver.complement(&less.zip_map(&top, xor))
        };
        let reached: Vec<D::Values> = of_bounds.iter().zip(&moved).map(without_carry).collect();
        let Some([carry, _]) = compared.pop() else { return Ok(Reached { reached, carried: Vec::new() }) };
        // c and reached is c and (reached without a carry xor equal): one bit, multiplied with all others.
        let others =
            of_bounds.iter().zip(&reached).flat_map(|([_, equal], r)| [equal.clone(), r.zip_map(equal, xor)]);
        let products = driver.bit_products(carry, others.collect())?;
        let (reached, carried) = reached
            .iter()
            .zip(products.chunks_exact(2))
            .map(|(reached, products)| (reached.zip_map(&products[0], xor), products[1].clone()))
            .unzip();
        Ok(Reached { reached, carried })
    }

    /// Whether values that lose no bits are not negative, in words.
    pub(super) fn not_negative<D: Driver>(self, driver: &mut D, x: &D::Values) -> Result<D::Values> {
        only(self.reach(driver, x, &[0])?.reached)
    }

    /// The scaled values but for the carry where shared bits, in words, say so, else 0; and other shared bits, one a lane, as values modulo powers of two.
    fn select_beside<D: Driver>(
        self,
        driver: &mut D,
        choices: D::Values,
        x: &D::Values,
        others: &[(D::Values, u32)],
    ) -> Result<(D::Values, Vec<D::Values>)> {
        let mux = Task::Mux { choices, values: self.high(x), bits: self.left() };
        let to_values = others.iter().map(|(bits, to)| driver.to_values(bits, *to));
        let tasks = [mux].into_iter().chain(to_values).collect();
        let mut done = driver.turn(tasks)?.into_iter().map(only);
        let selected = done.next().ok_or(ProtocolError::Missing("the results of a move"))??;
        let value = |((bits, to), product): (&(D::Values, u32), Result<D::Values, _>)| {
            Ok(driver.values_of(bits, &product?, *to))
        };
        let values = others.iter().zip(done).map(value).collect::<Result<_>>()?;
        Ok((selected, values))
    }

    /// The positive part of scaled values, modulo `2^(from - shift)`.
    pub(super) fn positive_part<D: Driver>(self, driver: &mut D, x: &D::Values) -> Result<D::Values> {
        self.low_of_positive_part(driver, x, self.left())
    }

    /// The low bits of the positive part, so many.
    pub(super) fn low_of_positive_part<D: Driver>(
        self,
        driver: &mut D,
        x: &D::Values,
        bits: u32,
    ) -> Result<D::Values> {
        let Reached { reached, carried } = self.reach(driver, x, &[0])?;
        let carried = carried.first().map(|carried| (carried.bits(x.count()), bits));
        let (low, x) = self.low_bits(x, bits);
        let (selected, carried) = low.select_beside(driver, only(reached)?, &x, carried.as_slice())?;
        Ok(low.with_carry(&selected, carried.first()))
    }

    /// Values that are not negative and lose no bits, or `2^bits - 1` where that is less, modulo `2^bits`.
    pub(super) fn at_most<D: Driver>(self, driver: &mut D, x: &D::Values, bits: u32) -> Result<D::Values> {
        let beyond = only(self.reach(driver, x, &[1 << bits])?.reached)?;
        let (low, x) = self.low_bits(x, bits);
        let others = [(beyond.bits(x.count()), bits)];
        let (selected, ones) = low.select_beside(driver, driver.complement(&beyond), &x, &others)?;
        // All bits are ones less one beyond them.
        Ok(selected.zip_map(&ones[0], |kept, one| Ring::Pow2(bits).sub(kept, one)))
    }

    /// How no more than the low bits of scaled values are read, and the shares of these.
    fn low_bits<V: Lanes>(self, x: &V, bits: u32) -> (Self, V) {
        let from = self.shift + bits;
        (Self { from, ..self }, x.map(|x| x & mask(from)))
    }

    /// Scaled values from 0 to a bound, else the bound or 0, modulo `2^(from - shift)`.
    ///
    /// The bound counts only where a value is not negative: their difference may be too small for the ring. So what comes out is never
    /// negative, whatever the value is.
    pub(super) fn clip<D: Driver>(self, driver: &mut D, x: &D::Values, high: i64) -> Result<D::Values> {
        let (count, ring) = (x.count(), Ring::Pow2(self.left()));
        let Reached { reached, carried } = self.reach(driver, x, &[0, high])?;
        let others = [reached[1].clone()].into_iter().chain(carried.get(1).cloned()).collect();
        let beyond = driver.bit_products(reached[0].clone(), others)?;
        let inside = reached[0].zip_map(&beyond[0], xor);
        // The carry of the dropped bits counts where the value is inside.
        let carried = carried.first().map(|carried| carried.zip_map(&beyond[1], xor));
        // Of a bound's multiples by a bit only those bits of it count that the ring has.
        let to = self.left() - (high.trailing_zeros().min(self.left() - 1));
        let others: Vec<(D::Values, u32)> = [(beyond[0].bits(count), to)]
            .into_iter()
            .chain(carried.map(|carried| (carried.bits(count), self.left())))
            .collect();
        let (selected, values) = self.select_beside(driver, inside, x, &others)?;
        let bounds = values[0].map(|bit| ring.embed((bit as i64).wrapping_mul(high)));
        let clipped = selected.zip_map(&bounds, |kept, bound| ring.add(kept, bound));
        Ok(self.with_carry(&clipped, values.get(1)))
    }

    /// Scaled values in the ring modulo `2^to`. Every value of the ring that is left keeps its sign, also one beyond what numbers should be: it
    /// is moved up by half of that ring, so that the shares' sum wraps where all bits of both carry.
    pub(super) fn extend<D: Driver>(self, driver: &mut D, x: &D::Values, to: u32) -> Result<D::Values> {
        let (count, left, ring) = (x.count(), self.left(), Ring::Pow2(to));
        if to <= left {
            let carried = match self.shift {
                0 => None,
                // One bit of each party carries where both are set: their product.
                1 => Some(driver.product(x.map(|x| x & 1), 1, to)?),
                shift => {
                    let carry = carry(driver, x.map(|x| x & mask(shift)), shift)?.bits(count);
                    Some(driver.bits_to_values(&carry, to)?)
                }
            };
            return Ok(Self { from: self.shift + to, ..self }.with_carry(&self.high(x), carried.as_ref()));
        }
        let half = driver.public(1 << (self.from - 1));
        let x = x.map(|x| Ring::Pow2(self.from).add(x, half));
        let all = |equality| Part { numbers: vec![self.high(&x)], bits: left, equality };
        let (wraps, carried) = if self.shift == 0 {
            let [less, _] = only(compare(driver, vec![all(false)])?)?;
            (less, None)
        } else {
            let compared = compare(driver, vec![self.low(&x), all(true)])?;
            let ([carry, _], [less, equal]) = (&compared[0], &compared[1]);
            let bits = carry.bits(count);
            let tasks = vec![Task::Bits(carry.clone(), vec![equal.clone()]), driver.to_values(&bits, to)];
            let mut done = driver.turn(tasks)?;
            let product = only(done.pop().unwrap_or_default())?;
            let carried = driver.values_of(&bits, &product, to);
            (less.zip_map(&only(only(done)?)?, xor), Some(carried))
        };
        let wraps = driver.bits_to_values(&wraps.bits(count), to - left)?;
        let extended = unwrap(&self.high(&x), &wraps, left, ring);
        let half = ring.embed(driver.public(1 << (left - 1)) as i64);
        Ok(Self { from: self.shift + to, ..self }
            .with_carry(&extended, carried.as_ref())
            .map(|y| ring.sub(y, half)))
    }

    /// Scaled values with the carry of the dropped bits, where there are any.
    fn with_carry<V: Lanes>(self, scaled: &V, carried: Option<&V>) -> V {
        let ring = Ring::Pow2(self.left());
        match carried {
            Some(carried) => scaled.zip_map(carried, |x, carry| ring.add(x, carry)),
            None => scaled.map(|x| ring.embed(x as i64)),
        }
    }
}

/// The fewest bits that are compared by themselves where all bounds are zero in them: more than one leaf has.
const LEAST_SHARED: u32 = LEAF_BITS + 1;

/// What is told of numbers that have the same bits below them, given what is told of those.
fn above<D: Driver>(
    driver: &mut D,
    high: Vec<[D::Values; 2]>,
    [less, equal]: &[D::Values; 2],
    equality: bool,
) -> Result<Vec<[D::Values; 2]>> {
    let (ways, words) = (high.len(), less.count());
    let for_all = |bits: &D::Values| D::Values::concat(&vec![bits; ways]);
    let others = [less].into_iter().chain(equality.then_some(equal)).map(for_all).collect();
    let equal_high = D::Values::concat(&high.iter().map(|[_, equal]| equal).collect::<Vec<_>>());
    let products = driver.bit_products(equal_high, others)?;
    let joined = high.into_iter().enumerate().map(|(way, [less, _])| {
        let product = |of: &D::Values| of.range(way * words..(way + 1) * words);
        let less = less.zip_map(&product(&products[0]), xor);
        let equal = products.get(1).map_or_else(|| less.clone(), product);
        [less, equal]
    });
    Ok(joined.collect())
}
