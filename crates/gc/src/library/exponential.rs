//! Powers of two of shared exponents, by tables that are looked up inside a circuit.

use crate::GcError;
use crate::circuit::{CircuitBuilder, Wire};

/// A function T of integers d below `2^width`, near `2^(fraction - rate d)` for a public rate: what a circuit computes, bit for bit, and
/// [`Self::term`] in the clear.
///
/// With `z = floor(factor d / 2^cut)` as `h 2^j + f`, f below `2^j`, `T(d) = floor(M(f) / 2^h)`. The j bits of f are cut into pieces, one
/// for each table, the highest first; a piece is an index of its table. The first table holds values V of M itself, each further one
/// values U of what is lost: `M <- M - sum of floor(M / 2^(fraction - i))` over the bits i of U, which is M (1 - U / 2^fraction) up to one unit a bit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exponential {
    width: u32,
    factor: u64,
    cut: u32,
    tables: Vec<Vec<u64>>,
    fraction: u32,
}

impl Exponential {
    /// The function with these tables.
    ///
    /// # Errors
    /// [`GcError::Parameters`] unless there are 1 to 64 bits of d and of the fraction's 1 to 60, `cut` is at most 127, and there are
    /// tables, each of a power of two of entries up to `2^fraction`, of which the first has `2^fraction` and the others 0 at 0.
    pub fn new(
        width: u32,
        factor: u64,
        cut: u32,
        tables: Vec<Vec<u64>>,
        fraction: u32,
    ) -> Result<Self, GcError> {
        let widths = (1..=64).contains(&width) && (1..=60).contains(&fraction) && cut <= 127;
        let one = 1_u64.checked_shl(fraction).unwrap_or(0);
        let fits =
            |table: &Vec<u64>| table.len().is_power_of_two() && table.iter().all(|entry| *entry <= one);
        let begins =
            |(number, table): (usize, &Vec<u64>)| table.first() == Some(if number == 0 { &one } else { &0 });
        let pieces = !tables.is_empty() && tables.iter().all(fits) && tables.iter().enumerate().all(begins);
        if widths && pieces {
            Ok(Self { width, factor, cut, tables, fraction })
        } else {
            Err(GcError::Parameters("the widths or the tables of an exponential"))
        }
    }

    /// Bits of d.
    #[must_use]
    pub const fn width(&self) -> u32 {
        self.width
    }

    /// Bits behind the point of T.
    #[must_use]
    pub const fn fraction(&self) -> u32 {
        self.fraction
    }

    /// T(d), at most `2^fraction`, which is T(0). A d that is larger counts as the largest.
    #[must_use]
    pub fn term(&self, d: u64) -> u64 {
        let largest = u64::MAX >> (64 - self.width);
        let z = (u128::from(d.min(largest)) * u128::from(self.factor)) >> self.cut;
        let mut low = self.halving();
        let mut pieces = self.tables.iter().map(|table| {
            low -= table.len().ilog2();
            table[(z >> low) as usize & (table.len() - 1)]
        });
        let first = pieces.next().unwrap_or(0);
        let lost = |m: u64, u: u64| -> u64 { bits(u).map(|i| m >> (self.fraction - i)).sum() };
        let mantissa = pieces.fold(first, |m, u| m - lost(m, u));
        let halvings = z >> self.halving();
        if halvings < 64 { mantissa >> halvings } else { 0 }
    }

    /// j: bits of f.
    fn halving(&self) -> u32 {
        self.tables.iter().map(|table| table.len().ilog2()).sum()
    }

    /// T of a word of [`Self::width`] bits, as `fraction + 1` bits.
    ///
    /// AND gates, with w bits of d, of which the factor has n signed digits, and g bits of the largest U of a table: fewer than
    /// `n (w + 2)` for z; for a table of k bits `2^k - 2`, and `g^2 + fraction + 1` where it is not the first; `fraction + 1` for each bit of h.
    pub(super) fn circuit(&self, gates: &mut CircuitBuilder, d: &[Wire]) -> Vec<Wire> {
        let halving = self.halving() as usize;
        let mut z = product(gates, d, self.factor);
        z.drain(..z.len().min(self.cut as usize));
        z.resize(z.len().max(halving), Wire::ZERO);
        let halvings = z.split_off(halving);
        let mut mantissa = Vec::new();
        for table in &self.tables {
            let piece = z.split_off(z.len() - table.len().ilog2() as usize);
            let hot = one_hot(gates, &piece);
            let found = look_up(gates, &hot, table, self.fraction as usize + 1);
            mantissa = if mantissa.is_empty() { found } else { lessened(gates, &mantissa, &found) };
        }
        halved(gates, mantissa, &halvings)
    }
}

/// The places of the ones of a number.
fn bits(number: u64) -> impl Iterator<Item = u32> {
    (0..u64::BITS).filter(move |place| number >> place & 1 == 1)
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

/// M less the sum of `floor(M / 2^(fraction - i))` over the bits i of U; M is at most `2^fraction`.
fn lessened(gates: &mut CircuitBuilder, m: &[Wire], u: &[Wire]) -> Vec<Wire> {
    let mut sum = Vec::with_capacity(m.len());
    for (i, bit) in u[..m.len() - 1].iter().enumerate() {
        // Up to here the sum is below 2^i, and what is added at most 2^i.
        sum.push(Wire::ZERO);
        let part = gates.mask_word(*bit, &m[m.len() - 1 - i..]);
        sum = gates.add(&sum, &part);
    }
    sum.push(Wire::ZERO);
    gates.subtract(m, &sum).0
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

    /// Tables for pieces of a given number of bits, the highest first.
    fn tables(pieces: &[u32], fraction: u32) -> Vec<Vec<u64>> {
        let one = f64::exp2(f64::from(fraction));
        let mut above = 0;
        let table = |bits: &u32| {
            above += bits;
            let power =
                |i: u32| (one * f64::exp2(-f64::from(i) / f64::exp2(f64::from(above)))).round() as u64;
            let lost = |i: u32| one as u64 - power(i);
            (0..1 << bits).map(|i| if above == *bits { power(i) } else { lost(i) }).collect()
        };
        pieces.iter().map(table).collect()
    }

    fn exponential(width: u32, factor: u64, cut: u32, pieces: &[u32], fraction: u32) -> Exponential {
        Exponential::new(width, factor, cut, tables(pieces, fraction), fraction).unwrap()
    }

    /// Wide and narrow ones: halvings beyond the fraction, none at all, factors of one digit and of many, above and below one.
    fn exponentials() -> [Exponential; 7] {
        [
            exponential(11, 0x5bd1, 8, &[7], 14),
            exponential(12, 45, 5, &[5, 5], 20),
            exponential(9, 1, 0, &[3, 2, 2], 12),
            exponential(7, 3000, 4, &[4], 9),
            exponential(10, 7, 13, &[6], 11),
            exponential(6, 0, 0, &[2], 5),
            exponential(1, u64::MAX, 58, &[4, 3], 30),
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

    /// Half a unit for each table, one for each bit of a loss, and one where the halvings cut off.
    #[test]
    fn terms_are_near_the_powers() {
        for exponential in exponentials() {
            let (halving, fraction) = (exponential.halving(), exponential.fraction());
            let losses =
                exponential.tables[1..].iter().map(|table| 64 - table.iter().max().unwrap().leading_zeros());
            let bound = f64::from(2 * losses.sum::<u32>() + exponential.tables.len() as u32 + 2) / 2.0;
            for d in 0..1 << exponential.width() {
                let z = ((u128::from(exponential.factor) * d) >> exponential.cut) as f64;
                let power = f64::exp2(f64::from(fraction) - z / f64::exp2(f64::from(halving)));
                let error = exponential.term(d as u64) as f64 - power;
                assert!(error.abs() <= bound, "{d}: {error}, {bound}");
            }
            assert_eq!(exponential.term(0), 1 << fraction);
            let beyond = (1 << exponential.width()) - 1;
            assert_eq!(exponential.term(u64::MAX), exponential.term(beyond));
        }
    }

    #[test]
    fn tables_that_are_none_are_refused() {
        let good = tables(&[3, 2], 10);
        let refused = |width, cut, tables: &[Vec<u64>], fraction| {
            Exponential::new(width, 3, cut, tables.to_vec(), fraction).is_err()
        };
        assert!(!refused(8, 4, &good, 10));
        assert!(refused(0, 4, &good, 10) && refused(65, 4, &good, 10));
        assert!(refused(8, 128, &good, 10) && refused(8, 4, &good, 61) && refused(8, 4, &good, 9));
        assert!(refused(8, 4, &[], 10) && refused(8, 4, &[good[0][..7].to_vec()], 10));
        assert!(
            refused(8, 4, &[good[1].clone()], 10) && refused(8, 4, &[good[0].clone(), good[0].clone()], 10)
        );
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
