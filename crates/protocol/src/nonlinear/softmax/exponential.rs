//! Powers of two with integers alone, in constant time: what each party computes on its own exponents.

use super::Precision;

/// The factors of a term, for exponents in units of a [`Precision`].
pub(super) struct Exponential {
    /// The rate in units of `2^-96`.
    rate: u128,
    width: u32,
    factor_bits: u32,
    fraction: u32,
    sum_bits: u32,
}

/// `mantissa 2^-(63 + halvings)`; the mantissa is above `2^62` and below `2^63`.
#[derive(Clone, Copy)]
pub(super) struct Factor {
    mantissa: u64,
    halvings: u64,
}

impl Exponential {
    pub(super) fn new(precision: &Precision) -> Self {
        // A double times a power of two, of less than 102 bits.
        let rate = (precision.rate() * (1_u128 << POINT) as f64) as u128;
        let [width, factor_bits] = [precision.width(), precision.factor_bits()];
        Self { rate, width, factor_bits, fraction: precision.fraction(), sum_bits: precision.sum_bits() }
    }

    /// The client's factors for its masked exponent: `2^-(rate (D - masked))` for a sum that does not wrap, and `2^-(rate (D + 2^w - masked))`.
    pub(super) fn client(&self, masked: u64) -> [Factor; 2] {
        let most = (1 << self.width) - 1;
        [most - masked, 2 * most + 1 - masked].map(|units| {
            let halved = self.rate * u128::from(units);
            Factor::new((halved >> POINT) as u64, (halved >> (POINT - u64::BITS)) as u64)
        })
    }

    /// Bit `place` of a factor, whose weight is `2^(place - n)`.
    pub(super) fn bit(&self, factor: Factor, place: u32) -> bool {
        let index =
            u64::from(place + 63).wrapping_sub(u64::from(self.factor_bits)).wrapping_add(factor.halvings);
        // One shift by what the machine takes of the index, and a mask for the rest of it.
        let inside = (index >> 6).wrapping_sub(1) >> 63;
        (factor.mantissa >> (index & 63)) & inside == 1
    }

    /// The server's factor for its mask r, times the weight of each bit of the client's: `round(2^(F + i - n) 2^(rate r))` for i below n, modulo the ring of
    /// the sum. What is larger than `2^F` meets a zero bit of the client's and is not computed.
    pub(super) fn server(&self, mask: u64) -> impl Iterator<Item = u64> + use<> {
        let doubled = self.rate * u128::from(mask);
        // 2^z = 2^ceil(z) 2^-(ceil(z) - z).
        let ceiling = (doubled + ((1 << POINT) - 1)) >> POINT;
        let rest = (ceiling << POINT) - doubled;
        let Factor { mantissa, halvings } = Factor::new(0, (rest >> (POINT - u64::BITS)) as u64);
        let ring = u64::MAX >> (u64::BITS - self.sum_bits);
        let [n, fraction] = [self.factor_bits, self.fraction].map(u64::from);
        (0..n).map(move |place| {
            // Bits of the mantissa behind the point, less one: rounding halves once more.
            let shift = (62 + n + halvings).wrapping_sub(fraction + place).wrapping_sub(ceiling as u64);
            let inside = (shift >> 6).wrapping_sub(1) >> 63;
            (((mantissa >> (shift & 63)) + 1) >> 1) & inside.wrapping_neg() & ring
        })
    }
}

impl Factor {
    /// `2^-(halvings + fraction / 2^64)`, with a relative error below `2^-50`.
    fn new(halvings: u64, fraction: u64) -> Self {
        // e^-y for y = fraction ln 2, by Horner's rule on the Taylor series: 1 - y (1 - y/2 (1 - y/3 (...))), in units of 2^-63.
        let y = high_product(fraction, LN_2);
        let series = INVERSES
            .iter()
            .rev()
            .fold(ONE, |rest, over_n| ONE - high_product(high_product(y, rest), *over_n));
        // One itself becomes the largest number below.
        Self { mantissa: series - (series >> 63), halvings }
    }

    /// The first, or the second if `second`, without a branch.
    pub(super) fn select(pair: [Self; 2], second: bool) -> Self {
        let mask = u64::from(second).wrapping_neg();
        let pick = |a: u64, b: u64| a ^ ((a ^ b) & mask);
        Self {
            mantissa: pick(pair[0].mantissa, pair[1].mantissa),
            halvings: pick(pair[0].halvings, pair[1].halvings),
        }
    }
}

/// `floor(a b / 2^64)`.
const fn high_product(a: u64, b: u64) -> u64 {
    ((a as u128 * b as u128) >> 64) as u64
}

/// Bits of a rate behind the point.
const POINT: u32 = 96;
const ONE: u64 = 1 << 63;
/// `ln(2)` in units of `2^-64`, so that `y` is, too.
const LN_2: u64 = 0xb172_17f7_d1cf_79ab;
/// `1/n` in units of `2^-64`, for n from 1 to 16: a division takes a time of its operands. `(ln 2)^17 / 17!` is below `2^-57`.
const INVERSES: [u64; 16] = {
    let mut inverses = [u64::MAX; 16];
    let mut n = 1;
    while n < 16 {
        inverses[n] = u64::MAX / (n as u64 + 1);
        n += 1;
    }
    inverses
};

#[cfg(test)]
mod tests {
    use super::*;

    fn precision() -> Precision {
        Precision::new(1000, 6, 1e-3, 30).unwrap()
    }

    #[test]
    fn mantissas_are_powers_of_two() {
        for fraction in [0, 1, 1 << 40, 1 << 62, 1 << 63, 3 << 62, 0x1234_5678_9abc_def0, u64::MAX] {
            let Factor { mantissa, halvings } = Factor::new(5, fraction);
            let truth = f64::exp2(-(fraction as f64) / f64::exp2(64.0));
            let error = mantissa as f64 / f64::exp2(63.0) / truth - 1.0;
            assert!(error.abs() < 1e-15 && halvings == 5, "{fraction}: {error}");
            assert!(mantissa < 1 << 63);
        }
    }

    #[test]
    fn factors_multiply_to_the_exponential_whether_the_sum_wraps_or_not() {
        let precision = precision();
        let exponential = Exponential::new(&precision);
        let (w, n) = (precision.width(), precision.factor_bits());
        let most = (1_u64 << w) - 1;
        let ring = u64::MAX >> (64 - precision.sum_bits());
        for exponent in [0, 1, most / 3, most - 1000, most - 1, most] {
            for mask in [0, 1, 77, most / 2, most - 1, most] {
                let masked = exponent.wrapping_sub(mask) & most;
                let wrap = masked + mask > most;
                let factor = Factor::select(exponential.client(masked), wrap);
                let bits = (0..n).map(|place| exponential.bit(factor, place));
                let products = exponential.server(mask).zip(bits);
                let term = products.fold(0, |sum: u64, (c, bit)| sum.wrapping_add(c * u64::from(bit)) & ring);
                let term = term as f64 / f64::exp2(f64::from(precision.fraction()));
                let truth = f64::exp2(-precision.rate() * (most - exponent) as f64);
                // A part of the budget in the error's table, for one class.
                assert!((term - truth).abs() < 1e-10, "{exponent} {mask}: {term} {truth}");
            }
        }
    }

    #[test]
    fn selection_follows_its_bit() {
        let pair = [Factor::new(3, 1 << 60), Factor::new(90, 1 << 61)];
        for (second, factor) in [(false, pair[0]), (true, pair[1])] {
            let chosen = Factor::select(pair, second);
            assert_eq!((chosen.mantissa, chosen.halvings), (factor.mantissa, factor.halvings));
        }
    }
}
