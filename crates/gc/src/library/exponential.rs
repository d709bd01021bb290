//! Powers of two of shared exponents, by polynomials whose coefficients are looked up inside a circuit.

use crate::GcError;
use crate::circuit::{CircuitBuilder, Wire};

/// A function T of integers d below `2^width`, near `2^(fraction - rate d)` for a public rate: what a circuit computes, bit for bit, and
/// [`Self::term`] in the clear.
///
/// With `z = floor(factor d / 2^cut)` as `h 2^j + f`, f below `2^j`, `T(d) = floor(M(f) / 2^h)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exponential {
    width: u32,
    factor: u64,
    cut: u32,
    mantissa: Mantissa,
}

/// A function M of integers f below `2^j`, near `2^(fraction - f / 2^j)`: polynomials on equal segments.
///
/// With `f = a 2^rest + e`, e below `2^rest`, `M(f) = floor((c_0 - c_1 e + c_2 e^2) / 2^drop)` of the coefficients c of segment a.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mantissa {
    /// The coefficients' absolute values, the constant first: of each segment as many, 1 to 3.
    pub segments: Vec<Vec<u64>>,
    /// Bits of the place in a segment.
    pub rest: u32,
    /// Bits that are dropped of the sum.
    pub drop: u32,
    /// Bits behind the point of M.
    pub fraction: u32,
}

impl Mantissa {
    /// Whether widths and coefficients are such that no sum is below zero or too large for 64 bits, and M is `2^fraction` at 0 and nowhere more.
    fn is_sound(&self) -> bool {
        let Some(sum_bits) = self.sum_bits() else { return false };
        let one = 1_u64 << self.fraction;
        let coefficients = self.segments.first().map_or(0, Vec::len);
        let last = (1_u64 << self.rest) - 1;
        // Where the linear term is no more than the constant one and the square no more than the linear, neither difference is negative.
        let decreases = |of: &Vec<u64>| {
            let [c0, c1, c2] = [0, 1, 2].map(|power| of.get(power).copied().map_or(0, u128::from));
            let last = u128::from(last);
            c0 >> sum_bits == 0 && c0 >> self.drop <= u128::from(one) && c1 * last <= c0 && c2 * last <= c1
        };
        self.segments.len().is_power_of_two()
            && (1..=3).contains(&coefficients)
            && self.segments.iter().all(|of| of.len() == coefficients && decreases(of))
            && self.segments[0][0] >> self.drop == one
    }

    /// Bits of a sum, if there are neither too few nor too many of anything.
    fn sum_bits(&self) -> Option<u32> {
        let sum_bits = self.fraction.checked_add(self.drop)?.checked_add(1)?;
        ((1..=60).contains(&self.fraction) && self.rest <= 31 && sum_bits <= 63).then_some(sum_bits)
    }

    /// j: bits of f.
    #[must_use]
    pub fn halving(&self) -> u32 {
        self.rest + self.segments.len().ilog2()
    }

    /// M(f), of the low bits of `z`.
    fn of(&self, z: u64) -> u64 {
        let e = z & ((1 << self.rest) - 1);
        let segment = &self.segments[(z >> self.rest) as usize & (self.segments.len() - 1)];
        let sum = segment.iter().rev().fold(0, |sum, c| c - sum * e);
        sum >> self.drop
    }

    /// M of a word of j bits, as `fraction + 1` bits.
    fn circuit(&self, gates: &mut CircuitBuilder, f: &[Wire]) -> Vec<Wire> {
        let (e, segment) = f.split_at(self.rest as usize);
        let hot = one_hot(gates, segment);
        let mut sum = Vec::new();
        for power in (0..self.segments[0].len()).rev() {
            let column: Vec<u64> = self.segments.iter().map(|of| of[power]).collect();
            let bits = u64::BITS - column.iter().fold(0, |all, c| all | c).leading_zeros();
            let mut below = times(gates, &sum, e);
            let coefficient = look_up(gates, &hot, &column, bits as usize);
            below.resize(coefficient.len(), Wire::ZERO);
            sum = gates.subtract(&coefficient, &below).0;
        }
        sum.drain(..self.drop as usize);
        sum.resize(self.fraction as usize + 1, Wire::ZERO);
        sum
    }
}

impl Exponential {
    /// The function with this mantissa.
    ///
    /// # Errors
    /// [`GcError::Parameters`] unless there are 1 to 64 bits of d and of the fraction's 1 to 60, `cut` is at most 127, and the mantissa's
    /// coefficients, of a power of two of segments, make sums from 0 to `2^(fraction + drop)`, to which that at 0 is rounded down, and of at most 63 bits.
    pub fn new(width: u32, factor: u64, cut: u32, mantissa: Mantissa) -> Result<Self, GcError> {
        if (1..=64).contains(&width) && cut <= 127 && mantissa.is_sound() {
            Ok(Self { width, factor, cut, mantissa })
        } else {
            Err(GcError::Parameters("the widths or the coefficients of an exponential"))
        }
    }

    /// Bits of d.
    #[must_use]
    pub const fn width(&self) -> u32 {
        self.width
    }

    /// What a d is multiplied with, and the bits that the product then loses.
    #[must_use]
    pub const fn rate(&self) -> (u64, u32) {
        (self.factor, self.cut)
    }

    /// M.
    #[must_use]
    pub const fn mantissa(&self) -> &Mantissa {
        &self.mantissa
    }

    /// Bits behind the point of T.
    #[must_use]
    pub const fn fraction(&self) -> u32 {
        self.mantissa.fraction
    }

    /// T(d), at most `2^fraction`, which is T(0). A d that is larger counts as the largest.
    #[must_use]
    pub fn term(&self, d: u64) -> u64 {
        let largest = u64::MAX >> (64 - self.width);
        let z = (u128::from(d.min(largest)) * u128::from(self.factor)) >> self.cut;
        let halvings = z >> self.mantissa.halving();
        if halvings < 64 { self.mantissa.of(z as u64) >> halvings } else { 0 }
    }

    /// T of a word of [`Self::width`] bits, as `fraction + 1` bits.
    ///
    /// AND gates, with w bits of d, of which the factor has n signed digits, and coefficients of b_0, b_1 and b_2 bits: fewer than `n (w + 2)` for z;
    /// for M `2^k - 2` for the k bits of a segment's number, `b_i` for each difference and `2 b_i` for each bit of a product; `fraction + 1`
    /// for each bit of h.
    pub(super) fn circuit(&self, gates: &mut CircuitBuilder, d: &[Wire]) -> Vec<Wire> {
        let halving = self.mantissa.halving() as usize;
        let mut z = product(gates, d, self.factor);
        z.drain(..z.len().min(self.cut as usize));
        z.resize(z.len().max(halving), Wire::ZERO);
        let halvings = z.split_off(halving);
        let mantissa = self.mantissa.circuit(gates, &z);
        halved(gates, mantissa, &halvings)
    }
}

/// The signed digits of a number, no two beside each other: places, and whether the digit is -1.
fn signed_digits(number: u64) -> Vec<(usize, bool)> {
    let (mut rest, mut digits) = (u128::from(number), Vec::new());
    for place in 0.. {
        if rest == 0 {
            break;
        }
        if rest & 1 == 1 {
            let negative = rest & 2 == 2;
            digits.push((place, negative));
            rest = if negative { rest + 1 } else { rest - 1 };
        }
        rest >>= 1;
    }
    digits
}

/// A word times a public factor, as many bits as it may have. Each digit adds above the bits that those before it have settled.
fn product(gates: &mut CircuitBuilder, word: &[Wire], factor: u64) -> Vec<Wire> {
    // The partial sum above a place is less than twice the word, of either sign.
    let mut term = word.to_vec();
    term.extend([Wire::ZERO; 2]);
    let mut product = Vec::new();
    for (place, negative) in signed_digits(factor) {
        let sign = product.last().copied().unwrap_or(Wire::ZERO);
        product.resize(place + term.len(), sign);
        let settled = product.split_off(place);
        product.extend(if negative { gates.subtract(&settled, &term).0 } else { gates.add(&settled, &term) });
    }
    let largest = ((1_u128 << word.len()) - 1) * u128::from(factor);
    product.truncate((u128::BITS - largest.leading_zeros()) as usize);
    product
}

/// A wire for each value that a word may have, of which one is set.
fn one_hot(gates: &mut CircuitBuilder, word: &[Wire]) -> Vec<Wire> {
    let mut hot = vec![Wire::ONE];
    for bit in word {
        let high: Vec<_> = hot.iter().map(|wire| gates.and(*wire, *bit)).collect();
        for (low, high) in hot.iter_mut().zip(&high) {
            *low = gates.xor(*low, *high);
        }
        hot.extend(high);
    }
    hot
}

/// The entry of a public table whose wire is set, without a gate.
fn look_up(gates: &mut CircuitBuilder, hot: &[Wire], table: &[u64], width: usize) -> Vec<Wire> {
    let bit = |place: usize| {
        let ones = table.iter().filter(|entry| *entry >> place & 1 == 1).count();
        // As one wire is set, the others of a bit tell it too.
        let inverted = 2 * ones > table.len();
        let named = hot.iter().zip(table).filter(|(_, entry)| (*entry >> place & 1 == 1) != inverted);
        named.fold(Wire::constant(inverted), |sum, (wire, _)| gates.xor(sum, *wire))
    };
    (0..width).map(bit).collect()
}

/// The product of two words: as many bits as both have, none of no word.
fn times(gates: &mut CircuitBuilder, word: &[Wire], by: &[Wire]) -> Vec<Wire> {
    let mut product = vec![Wire::ZERO; word.len()];
    for (place, bit) in by.iter().enumerate() {
        let part = gates.mask_word(*bit, word);
        let above = product.split_off(place);
        let (sum, carry) = gates.add_carry(&above, &part, Wire::ZERO);
        product.extend(sum);
        product.push(carry);
    }
    product
}

/// A word shifted down by a shared number of bits.
fn halved(gates: &mut CircuitBuilder, mut word: Vec<Wire>, halvings: &[Wire]) -> Vec<Wire> {
    for (level, bit) in halvings.iter().enumerate() {
        let distance = 1_usize.checked_shl(level as u32).unwrap_or(usize::MAX);
        let moved: Vec<_> = (0..word.len())
            .map(|i| word.get(i.saturating_add(distance)).copied().unwrap_or(Wire::ZERO))
            .collect();
        word = gates.mux_word(*bit, &moved, &word);
    }
    word
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Chords of a power of two, or what goes through its middle as well, on `2^place` segments of `2^rest`.
    fn mantissa(place: u32, rest: u32, coefficients: usize, drop: u32, fraction: u32) -> Mantissa {
        let one = f64::exp2(f64::from(fraction + drop));
        let (count, ends) = (f64::exp2(f64::from(place)), f64::exp2(f64::from(rest)));
        let power = |a: f64| f64::exp2(-a / count);
        let segment = |a: u32| {
            let [start, middle, end] = [0.0, 0.5, 1.0].map(|part| power(f64::from(a) + part));
            let all = match coefficients {
                1 => vec![start],
                2 => vec![start, (start - end) / ends],
                _ => vec![
                    start,
                    (3.0 * start - 4.0 * middle + end) / ends,
                    2.0 * (start - 2.0 * middle + end) / ends / ends,
                ],
            };
            all.iter().map(|c| (c * one).round() as u64).collect()
        };
        Mantissa { segments: (0..1 << place).map(segment).collect(), rest, drop, fraction }
    }

    fn exponential(width: u32, factor: u64, cut: u32, mantissa: Mantissa) -> Exponential {
        Exponential::new(width, factor, cut, mantissa).unwrap()
    }

    /// Wide and narrow ones: halvings beyond the fraction, none at all, factors of one digit and of many, above and below one.
    fn exponentials() -> [Exponential; 8] {
        [
            exponential(11, 0x5bd1, 8, mantissa(7, 0, 1, 0, 14)),
            exponential(12, 45, 5, mantissa(6, 4, 2, 4, 20)),
            exponential(9, 1, 0, mantissa(3, 4, 3, 7, 12)),
            exponential(7, 3000, 4, mantissa(4, 0, 1, 0, 9)),
            exponential(10, 7, 13, mantissa(0, 6, 2, 6, 11)),
            exponential(6, 0, 0, mantissa(0, 2, 3, 4, 5)),
            exponential(1, u64::MAX, 58, mantissa(4, 3, 2, 0, 30)),
            exponential(12, 0x3_9a7b, 6, mantissa(5, 11, 3, 21, 24)),
        ]
    }

    #[test]
    fn circuits_equal_their_functions_everywhere() {
        for exponential in exponentials() {
            let mut gates = CircuitBuilder::new();
            let d = gates.evaluator_word(exponential.width());
            let outputs = exponential.circuit(&mut gates, &d);
            let circuit = gates.build(&outputs).unwrap();
            assert_eq!(circuit.outputs(), exponential.fraction() as usize + 1);
            for d in 0..1_u64 << exponential.width() {
                let inputs: Vec<bool> = (0..exponential.width()).map(|i| d >> i & 1 == 1).collect();
                let output = circuit.evaluate_clear(&inputs, &[]).unwrap();
                let term = output.iter().rev().fold(0, |term, bit| term << 1 | u64::from(*bit));
                assert_eq!(term, exponential.term(d), "{d} of {exponential:?}");
            }
        }
    }

    /// Off by how far the polynomials are from powers, by half a unit for each coefficient at the segment's end, and one where bits are dropped, twice.
    #[test]
    fn terms_are_near_the_powers() {
        for exponential in exponentials() {
            let Mantissa { segments, rest, drop, fraction } = exponential.mantissa();
            let (halving, one) = (exponential.mantissa.halving(), f64::exp2(f64::from(*fraction)));
            let segment = std::f64::consts::LN_2 / segments.len() as f64;
            let (off, weights) = match segments[0].len() {
                1 => (0.0, 1.0),
                2 => (segment.powi(2) / 8.0, f64::exp2(f64::from(*rest)) + 1.0),
                _ => (segment.powi(3) / 124.0, f64::exp2(2.0 * f64::from(*rest)) * 2.0),
            };
            let bound = off * one + 0.51 * weights / f64::exp2(f64::from(*drop)) + 2.0;
            for d in 0..1 << exponential.width() {
                let z = ((u128::from(exponential.factor) * d) >> exponential.cut) as f64;
                let power = f64::exp2(f64::from(*fraction) - z / f64::exp2(f64::from(halving)));
                let error = exponential.term(d as u64) as f64 - power;
                assert!(error.abs() <= bound, "{d}: {error}, {bound}");
            }
            assert_eq!(exponential.term(0), 1 << fraction);
            let beyond = (1 << exponential.width()) - 1;
            assert_eq!(exponential.term(u64::MAX), exponential.term(beyond));
        }
    }

    #[test]
    fn mantissas_that_are_none_are_refused() {
        let good = mantissa(3, 2, 3, 3, 10);
        let accepted = |width, cut, change: fn(&mut Mantissa)| {
            let mut mantissa = good.clone();
            change(&mut mantissa);
            Exponential::new(width, 3, cut, mantissa).is_ok()
        };
        assert!(accepted(8, 4, |_| ()));
        assert!(!accepted(0, 4, |_| ()) && !accepted(65, 4, |_| ()) && !accepted(8, 128, |_| ()));
        let changes: [fn(&mut Mantissa); 11] = [
            |m| m.fraction = 61,
            |m| m.fraction = 9,
            |m| m.fraction = u32::MAX,
            |m| m.drop = 60,
            |m| m.rest = 32,
            |m| m.segments.clear(),
            |m| m.segments.truncate(7),
            |m| m.segments[3].clear(),
            |m| m.segments[0][0] += 8,
            // Sums below zero.
            |m| m.segments[2][1] = m.segments[2][0],
            |m| m.segments[2][2] = m.segments[2][1],
        ];
        assert!(changes.into_iter().all(|change| !accepted(8, 4, change)));
        assert!(!accepted(8, 4, |m| m.segments.swap(0, 1)));
    }

    #[test]
    fn digits_add_up_to_their_number() {
        for number in (0..5000).chain([u64::MAX, u64::MAX / 3, 1 << 63]) {
            let digits = signed_digits(number);
            let sum: i128 =
                digits.iter().map(|(place, negative)| (1 - 2 * i128::from(*negative)) << place).sum();
            assert_eq!(sum, i128::from(number));
            assert!(digits.windows(2).all(|pair| pair[0].0 + 1 < pair[1].0));
        }
    }
}
