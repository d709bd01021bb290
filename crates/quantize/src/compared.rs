//! An input that is compared as it is: integers that count a step of its samples keep every number on its side of a threshold.

use lanner_graph::pass::Draft;
use lanner_graph::{FloatExecutor, cores};
use lanner_network::CompileError;

use super::item::{Action, Item};
use super::trace::refuse;

/// The most doublings between a step and the largest sample that an input keeps apart: those of whole numbers that floats hold.
const MOST_BITS: i32 = 24;

/// The doublings between the unit and the largest sample where there is no such step.
const USUAL_BITS: i32 = 20;

/// What comparisons ask of the input's unit.
#[derive(Clone, Debug)]
pub(super) struct Compared {
    /// The largest unit that the input may have.
    pub(super) unit: f64,
    /// What all its elements that are compared are multiples of, in the samples. Units are half of it, so that thresholds between two multiples are none.
    step: Option<f64>,
    /// For each value that holds elements of the input, or sums or the largest of some, times a power of two: that factor.
    factors: Vec<Option<f64>>,
}

impl Compared {
    /// What is asked for by items that compare the input, or what is moved or added up of it; none if there are no such items.
    ///
    /// # Errors
    /// [`CompileError`] if the graph does not run on a sample.
    pub(super) fn of(
        items: &[Item<'_>],
        draft: &Draft,
        samples: &[&[f32]],
    ) -> Result<Option<Self>, CompileError> {
        let factors = factors(items);
        let compared = compared(items, &factors);
        if compared.is_empty() {
            return Ok(None);
        }
        let executor = FloatExecutor::new(&draft.graph, &draft.tensors)?;
        let numbered: Vec<_> = samples.iter().enumerate().collect();
        let seen = cores::map(&numbered, |(number, sample)| {
            let values = executor.run_all(sample).map_err(|error| refuse(*number, &error))?;
            Ok(compared
                .iter()
                .filter_map(|&(value, factor)| Digits::of(&values[value], factor))
                .reduce(Digits::with))
        });
        let seen = seen.into_iter().collect::<Result<Vec<_>, CompileError>>()?;
        let Some(seen) = seen.into_iter().flatten().reduce(Digits::with) else { return Ok(None) };
        let Digits { last, first, are_whole } = seen;
        let [step, usual] = [last, first - USUAL_BITS].map(|exponent| f64::from(exponent).exp2());
        if first - last <= MOST_BITS {
            return Ok(Some(Self { unit: step / 2.0, step: Some(step), factors }));
        }
        if are_whole {
            let reason =
                format!("the network compares whole numbers above 2^{MOST_BITS}, which would be rounded");
            let fix = "subtract a constant from these inputs, or divide them, before they reach the model"
                .to_owned();
            return Err(CompileError::Calibration { reason, fix });
        }
        Ok(is_compared_alone(items).then_some(Self { unit: usual, step: None, factors }))
    }

    /// How many units of a value are a step of it, where those are a whole number.
    pub(super) fn units_of_step(&self, value: usize, unit: f64) -> Option<f64> {
        let units = self.step? * self.factors[value]? / unit;
        let whole = units.round();
        ((units - whole).abs() <= f64::from(f32::EPSILON) * whole && whole >= 2.0).then_some(whole)
    }
}

/// The number of units that a constant is nearest to, but for multiples of a step that it is none of.
pub(super) fn beside_steps(exact: f64, units_of_step: f64) -> f64 {
    let nearest = exact.round_ties_even();
    let off = exact - nearest;
    let is_between = off.abs() > exact.abs() * f64::from(f32::EPSILON);
    if is_between && nearest % units_of_step == 0.0 { nearest + off.signum() } else { nearest }
}

/// Where the digits of numbers other than 0 lie: exponents of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Digits {
    /// Of the last bit of any; of whole numbers at most 0.
    last: i32,
    /// Above the first bit of all.
    first: i32,
    /// Whether all are whole numbers where they are compared.
    are_whole: bool,
}

impl Digits {
    /// Of values that are the input's times a power of two, as the input has them.
    fn of(values: &[f32], factor: f64) -> Option<Self> {
        let down = factor.log2().round() as i32;
        let others = values.iter().copied().filter(|x| *x != 0.0 && x.is_finite());
        let found = others.map(|x| {
            let (last, first) = (last_bit(x), f64::from(x.abs()).log2().ceil() as i32);
            Self { last: last.min(0) - down, first: first - down, are_whole: last >= 0 }
        });
        found.reduce(Self::with)
    }

    fn with(self, other: Self) -> Self {
        Self {
            last: self.last.min(other.last),
            first: self.first.max(other.first),
            are_whole: self.are_whole && other.are_whole,
        }
    }
}

/// See [`Compared::factors`].
fn factors(items: &[Item<'_>]) -> Vec<Option<f64>> {
    let mut factors = vec![Some(1.0)];
    for item in items {
        let first = factors[item.inputs[0]];
        let factor = match item.action {
            Action::Move(_) | Action::Add | Action::Max(_) => {
                first.filter(|_| item.inputs.iter().all(|&input| factors[input] == first))
            }
            Action::Factor(factor) => {
                first.filter(|_| factor.abs().log2().fract() == 0.0).map(|first: f64| first * factor.abs())
            }
            _ => None,
        };
        factors.push(factor);
    }
    factors
}

/// The values with such a factor that are compared as they are, or with constants or one another.
fn compared(items: &[Item<'_>], factors: &[Option<f64>]) -> Vec<(usize, f64)> {
    let mut is_compared = vec![false; factors.len()];
    let mut found = Vec::new();
    for value in (0..factors.len()).rev() {
        if let (true, Some(factor)) = (is_compared[value], factors[value]) {
            found.push((value, factor));
            continue;
        }
        let Some(item) = value.checked_sub(1).map(|index| &items[index]) else { continue };
        let goes_on = is_compared[value] && !item.action.takes_few_bits();
        if goes_on || item.action.compares() {
            item.inputs.iter().for_each(|&input| is_compared[input] = true);
        }
    }
    found
}

/// Whether what a layer, a product or a function computes is compared, so that its error decides on which side of a threshold a value is.
pub(super) fn compares_computed(items: &[Item<'_>]) -> bool {
    let mut is_compared = vec![false; items.len() + 1];
    for (index, item) in items.iter().enumerate().rev() {
        let compares = item.action.compares();
        if is_compared[index + 1] && !compares && item.action.takes_few_bits() {
            return true;
        }
        // What comparisons make is exact.
        if compares || is_compared[index + 1] && !item.action.takes_few_bits() {
            item.inputs.iter().for_each(|&input| is_compared[input] = true);
        }
    }
    false
}

/// Whether the item of that name follows from comparisons alone, as votes do: sums, layers and choices of truth values.
pub(super) fn counts_comparisons(items: &[Item<'_>], name: &str) -> bool {
    let mut is_needed = vec![false; items.len() + 1];
    let Some(last) = items.iter().position(|item| item.name == name) else { return false };
    is_needed[last + 1] = true;
    for (index, item) in items.iter().enumerate().rev() {
        if !is_needed[index + 1] || item.action.compares() {
            continue;
        }
        if item.action.is_product() || item.action.is_square() || item.action.chooses_scale() {
            return false;
        }
        item.inputs.iter().for_each(|&input| is_needed[input] = true);
    }
    !is_needed[0]
}

/// Whether nothing takes what is added up or moved of the input that costs by its bits: layers, functions, and products of two such values.
fn is_compared_alone(items: &[Item<'_>]) -> bool {
    let mut carries = vec![true];
    items.iter().all(|item| {
        let mut reads = item.inputs.iter().map(|&input| carries[input]);
        let (any, all) = (reads.clone().any(|reads| reads), reads.all(|reads| reads));
        let is_product = matches!(item.action, Action::Mul);
        carries.push(any && (is_product || !item.action.takes_few_bits()));
        item.action.compares() || !item.action.takes_few_bits() || !if is_product { all } else { any }
    })
}

/// The exponent of the last bit of a finite number other than 0.
fn last_bit(x: f32) -> i32 {
    let bits = x.to_bits();
    let (exponent, fraction) = ((bits >> 23 & 0xff) as i32, bits & 0x7f_ffff);
    // Without the leading bit a number is below all others.
    let (exponent, whole) = if exponent == 0 { (1, fraction) } else { (exponent, fraction | 0x80_0000) };
    exponent - 150 + whole.trailing_zeros() as i32
}

#[cfg(test)]
mod tests {
    use super::{Digits, beside_steps, last_bit};

    #[test]
    fn the_last_bit_of_a_number_is_found() {
        for (x, exponent) in [
            (1.0, 0),
            (-3.0, 0),
            (6.0, 1),
            (0.75, -2),
            (-255.0, 0),
            (1024.0, 10),
            (f32::MIN_POSITIVE, -126),
            (1e-45, -149),
        ] {
            assert_eq!(last_bit(x), exponent, "{x}");
        }
        assert!(last_bit(0.1) < -20);
    }

    #[test]
    fn digits_are_those_of_all_numbers_and_of_ones() {
        assert_eq!(
            Digits::of(&[0.0, 2.0, -1024.0], 1.0),
            Some(Digits { last: 0, first: 10, are_whole: true })
        );
        assert_eq!(Digits::of(&[0.25, 3.0], 1.0), Some(Digits { last: -2, first: 2, are_whole: false }));
        assert_eq!(Digits::of(&[0.25, 3.0], 8.0), Some(Digits { last: -5, first: -1, are_whole: false }));
        assert_eq!(Digits::of(&[0.0], 1.0), None);
    }

    #[test]
    fn thresholds_stay_between_the_steps_that_they_are_between() {
        for (exact, nearest) in [(4.0, 4.0), (4.1, 5.0), (5.9, 5.0), (-0.1, -1.0), (0.1, 1.0), (7.0, 7.0)] {
            assert_eq!(beside_steps(exact, 2.0).to_bits(), f64::to_bits(nearest), "{exact}");
        }
        assert_eq!(beside_steps(17.4, 8.0).to_bits(), 17.0_f64.to_bits());
    }
}
