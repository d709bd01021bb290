//! The grids that scales lie on: the input's own, and those of what leads to the output.

use lanner_network::grid::GridFactor;
use lanner_network::{InputScale, grid};

use super::Source;
use crate::calibrate::Range;
use crate::item::{Action, Item};

/// The input's scale and the integers accepted; none for a range without width.
pub(super) fn of_input(source: &Source<'_>, levels: f64) -> Option<(InputScale, [i64; 2])> {
    let (scale, ends) = usual_input(source, levels)?;
    let is_stated = matches!(scale, InputScale::Stated { .. });
    Some((scale, if source.options.commits && !is_stated { to_bits(ends) } else { ends }))
}

/// A range of a power of two of integers: nothing that was accepted is not but, where that is one integer more, the largest.
fn to_bits([low, high]: [i64; 2]) -> [i64; 2] {
    let steps = high.abs_diff(low);
    if (steps + 1).is_power_of_two() {
        return [low, high];
    }
    if steps.is_power_of_two() && high > 0 {
        return [low, high - 1];
    }
    let more = (steps + 1).next_power_of_two() - 1 - steps;
    // As much on either side as there is of it.
    let below = u128::from(more) * u128::from(low.unsigned_abs()) / u128::from(steps.max(1));
    [low - below as i64, high + (more as i64 - below as i64)]
}

fn usual_input(source: &Source<'_>, levels: f64) -> Option<(InputScale, [i64; 2])> {
    let Range { low, high } = source.input;
    if let Some(coding) = source.coding.filter(|coding| coding.has_units()) {
        return coding.scale(source.input, levels);
    }
    if source.options.input_range.is_some() {
        let steps = source.compared.map_or(levels, |asked| at_most(levels, (high - low) / asked.unit));
        // So that the integers are a power of two.
        let all = |steps: u32| steps.checked_add(1).and_then(u32::checked_next_power_of_two);
        let steps = if source.options.commits {
            all(steps as u32).map_or(steps as u32, |all| all - 1)
        } else {
            steps as u32
        };
        let scale = InputScale::Stated { low, high, steps };
        return Some((scale, [low, high].map(|end| scale.nearest(end))));
    }
    let least = source.input.width() / levels;
    let least = source.compared.map_or(least, |asked| least.min(asked.unit));
    // Functions have powers of two, and the input may be joined with what is made of them.
    let chooses = source.items.iter().any(|item| item.action.chooses_scale());
    let unit = if chooses { GridFactor::nearest_power_of_two(least) } else { GridFactor::above(least) }?;
    let end = |end: f64| match end {
        0.0 => 0,
        _ => ((grid::above(2.0 * end.abs(), 1.0) / unit.value()).round() * end.signum()) as i64,
    };
    Some((InputScale::Grid(unit), [end(low), end(high)]))
}

/// At least so many levels, and as many for each of so many units: a whole number, where those are.
fn at_most(levels: f64, units: f64) -> f64 {
    if units > MOST_LEVELS { levels } else { (levels / units).ceil().max(1.0) * units }.ceil()
}

/// More levels than inputs have.
const MOST_LEVELS: f64 = (1_u32 << 26) as f64;

/// For each value, [`super::Builder`]'s origins; `unit` is the input's.
pub(super) fn origins(items: &[Item], unit: f64) -> Vec<Option<f64>> {
    let mut origins = vec![None; items.len() + 1];
    origins[items.len()] = Some(unit);
    for (index, item) in items.iter().enumerate().rev() {
        let before = match &item.action {
            Action::Layer { .. } => None,
            action if action.chooses_scale() => None,
            action if action.is_product() => origins[index + 1].map(f64::sqrt),
            action if action.is_square() => origins[index + 1].map(f64::sqrt),
            // A join brings its inputs to its own scale by whole factors.
            action => origins[index + 1].map(|origin: f64| origin / action.unit()),
        };
        for &input in item.inputs.iter().filter(|_| before.is_some()) {
            origins[input] = before;
        }
    }
    origins
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_bits_hold_what_was_accepted() {
        let cases = [
            ([0, 1], [0, 1]),
            ([0, 255], [0, 255]),
            ([-128, 127], [-128, 127]),
            // One integer more than a power of two.
            ([-128, 128], [-128, 127]),
            ([0, 256], [0, 255]),
            ([-256, 0], [-511, 0]),
            ([0, 200], [0, 255]),
            ([-33, 222], [-33, 222]),
            ([-100, 50], [-170, 85]),
            ([-1, 3], [-1, 2]),
        ];
        for (ends, wanted) in cases {
            let found = to_bits(ends);
            assert_eq!(found, wanted, "{ends:?}");
            assert!((found[0].abs_diff(found[1]) + 1).is_power_of_two());
        }
    }
}
