//! The grids that scales lie on: the input's own, and those of what leads to the output.

use lanner_network::grid::GridFactor;
use lanner_network::{InputScale, grid};

use super::Source;
use crate::calibrate::Range;
use crate::item::{Action, Item};

/// The input's scale and the integers accepted; none for a range without width.
pub(super) fn of_input(source: &Source<'_>, levels: f64) -> Option<(InputScale, [i64; 2])> {
    let Range { low, high } = source.input;
    if let Some(coding) = source.coding.filter(|coding| coding.has_units()) {
        return coding.scale(source.input, levels);
    }
    if source.options.input_range.is_some() {
        let steps = source.compared.map_or(levels, |asked| at_most(levels, (high - low) / asked.unit));
        let scale = InputScale::Stated { low, high, steps: steps as u32 };
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
