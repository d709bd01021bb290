//! Bits by layer where nothing is rescaled: how the room that a ring has is shared out.
//!
//! A value's unit is the product of the units of all that it is made of, each as often as squares have multiplied it: with two squares in
//! between, a bit of the input or of the first layer's weights costs the scores four bits, one of the second layer's two. What rounding
//! each of them alone costs the scores is measured on the float graph. Rounding errors of different layers have nothing to do with each
//! other, so that the squares of what they cost add up, and the bits are chosen for which that sum is the smallest in the room there is.

use lanner_network::CompileError;

use super::QuantizationOptions;
use super::bits::{LayerBits, MOST_FEWEST_WEIGHT_BITS};
use super::calibrate::Samples;
use super::closeness::Closeness;
use super::item::{Action, Item};
use super::layer::half_range;
use super::prepared::Part;

/// The bits of weights that are measured; each one more halves the error.
const MEASURED_BITS: std::ops::RangeInclusive<u32> = 2..=9;

/// The doublings of the input's steps that are measured, in quarters, and the most there are.
const MEASURED_QUARTERS: std::ops::RangeInclusive<u32> = 4..=32;
const MOST_DOUBLINGS: u32 = 16;

/// What may be rounded, with what rounding it costs.
pub(super) struct Allotment {
    /// The input, then the layers.
    rounded: Vec<Rounded>,
    values: Vec<Reach>,
    uniform: LayerBits,
}

/// The input, or a layer's weights.
struct Rounded {
    /// The layer's item.
    layer: Option<usize>,
    /// The coarsest first; each costs less than those before it.
    choices: Vec<Choice>,
}

/// A way to round.
#[derive(Clone, Copy)]
struct Choice {
    /// Bits of weights, or steps between the input's ends.
    fineness: f64,
    /// The logarithm of the unit.
    unit: f64,
    /// The mean square of the scores' error, of what errors are relative to.
    loss: f64,
}

/// How large a value's integers are: its peak over its unit, the product of these powers of all units. Logarithms to base two.
#[derive(Clone)]
struct Reach {
    peak: f64,
    powers: Vec<f64>,
}

/// The bits that a room is shared out in.
pub(super) struct Allotted {
    pub(super) layers: LayerBits,
    /// The root of the mean square that the scores' error is foretold to have.
    pub(super) error: f64,
    /// The item with the fewest bits of weights, and how many these are.
    pub(super) fewest: (usize, u32),
}

impl Allotment {
    /// How many times each sample is run to measure.
    pub(super) fn runs(part: &Part<'_>) -> usize {
        MEASURED_QUARTERS.count() + part.layers().count() * MEASURED_BITS.count()
    }

    /// Measures on these samples. None where values are joined: there units must be related.
    pub(super) fn measure(
        part: &Part<'_>,
        options: &QuantizationOptions,
        closeness: &Closeness<'_>,
        samples: &Samples<'_>,
    ) -> Result<Option<Self>, CompileError> {
        if part.items.iter().any(|item| item.action.joins()) {
            return Ok(None);
        }
        let uniform = LayerBits::uniform(&part.items, options);
        let loss = |node, unit: f64| -> Result<f64, CompileError> {
            Ok(closeness.mean_square(samples, &part.with_rounded(node, unit, samples)?))
        };
        let mut inputs = Vec::new();
        let source = part.source(options, &uniform);
        for quarters in MEASURED_QUARTERS {
            let fineness = (f64::from(quarters) / 4.0).exp2();
            if let Some(unit) = source.input_unit(fineness) {
                inputs.push(Choice { fineness, unit: unit.log2(), loss: loss(None, unit)? });
            }
        }
        extrapolate(&mut inputs, MOST_DOUBLINGS - MEASURED_QUARTERS.end() / 4, |fineness| 2.0 * fineness);
        let mut rounded = vec![Rounded { layer: None, choices: worthwhile(inputs) }];
        for layer in part.layers() {
            let (index, node, largest) = layer?;
            let largest = if largest > 0.0 { largest } else { 1.0 };
            let mut choices = Vec::new();
            for bits in MEASURED_BITS {
                let unit = largest / half_range(bits) as f64;
                let loss = loss(Some(node), unit)?;
                choices.push(Choice { fineness: f64::from(bits), unit: unit.log2(), loss });
            }
            extrapolate(&mut choices, MOST_FEWEST_WEIGHT_BITS - MEASURED_BITS.end(), |bits| bits + 1.0);
            rounded.push(Rounded { layer: Some(index), choices: worthwhile(choices) });
        }
        let values = reaches(&part.items, rounded.len());
        let has_choice = rounded.iter().all(|rounded| !rounded.choices.is_empty());
        Ok(has_choice.then_some(Self { rounded, values, uniform }))
    }

    /// The bits that cost the least, where every value's largest calibrated integer has at most so many bits without its sign. None where not
    /// even the coarsest have room.
    pub(super) fn finest(&self, room: f64) -> Option<Allotted> {
        let mut best = self.filled(vec![0; self.rounded.len()], room)?;
        loop {
            let others = (0..best.len())
                .flat_map(|which| (0..self.rounded[which].choices.len()).map(move |choice| (which, choice)));
            let moved = others.filter_map(|(which, choice)| {
                let mut chosen = best.clone();
                chosen[which] = choice;
                self.refilled(chosen, which, room)
            });
            let better = moved.min_by(|a, b| self.loss(a).total_cmp(&self.loss(b)));
            match better.filter(|better| self.loss(better) < self.loss(&best)) {
                Some(better) => best = better,
                None => break,
            }
        }
        Some(self.allotted(&best))
    }

    /// The same with one held where it is and the others as fine as there is room for again.
    fn refilled(&self, mut chosen: Vec<usize>, held: usize, room: f64) -> Option<Vec<usize>> {
        while !self.fits(&chosen, room) {
            let coarser = (0..chosen.len()).filter(|&which| which != held && chosen[which] > 0);
            let of = |which: &usize| {
                let [coarse, fine] =
                    [0, 1].map(|step| self.rounded[*which].choices[chosen[*which] - 1 + step]);
                (coarse.loss - fine.loss) / ((coarse.unit - fine.unit) * self.powers_of(*which))
            };
            let next = coarser.min_by(|a, b| of(a).total_cmp(&of(b)))?;
            chosen[next] -= 1;
        }
        self.filled(chosen, room)
    }

    /// The same, made finer where that helps most for the room it takes, until there is none left.
    fn filled(&self, mut chosen: Vec<usize>, room: f64) -> Option<Vec<usize>> {
        if !self.fits(&chosen, room) {
            return None;
        }
        loop {
            let gain = |which: usize, to: usize| {
                let (now, then) =
                    (self.rounded[which].choices[chosen[which]], self.rounded[which].choices[to]);
                (now.loss - then.loss) / ((now.unit - then.unit) * self.powers_of(which))
            };
            let finer = (0..chosen.len()).flat_map(|which| {
                (chosen[which] + 1..self.rounded[which].choices.len()).map(move |to| (which, to))
            });
            let fitting = finer.filter(|&(which, to)| {
                let mut finer = chosen.clone();
                finer[which] = to;
                self.fits(&finer, room)
            });
            match fitting.max_by(|a, b| gain(a.0, a.1).total_cmp(&gain(b.0, b.1))) {
                Some((which, to)) => chosen[which] = to,
                None => return Some(chosen),
            }
        }
    }

    /// How often a unit is multiplied in the value where that is the most.
    fn powers_of(&self, which: usize) -> f64 {
        self.values.iter().map(|value| value.powers[which]).fold(1.0, f64::max)
    }

    fn fits(&self, chosen: &[usize], room: f64) -> bool {
        let units: Vec<f64> = self.chosen(chosen).map(|choice| choice.unit).collect();
        self.values.iter().all(|value| {
            let unit: f64 = value.powers.iter().zip(&units).map(|(power, unit)| power * unit).sum();
            value.peak - unit <= room
        })
    }

    fn loss(&self, chosen: &[usize]) -> f64 {
        self.chosen(chosen).map(|choice| choice.loss).sum()
    }

    fn chosen<'s>(&'s self, chosen: &'s [usize]) -> impl Iterator<Item = &'s Choice> {
        self.rounded.iter().zip(chosen).map(|(rounded, &choice)| &rounded.choices[choice])
    }

    fn allotted(&self, chosen: &[usize]) -> Allotted {
        let mut layers = self.uniform.clone();
        let mut fewest = (0, u32::MAX);
        for (rounded, choice) in self.rounded.iter().zip(self.chosen(chosen)) {
            let Some(layer) = rounded.layer else {
                layers.input = Some(choice.fineness);
                continue;
            };
            layers.weights[layer] = choice.fineness as u32;
            fewest = std::cmp::min_by_key(fewest, (layer, choice.fineness as u32), |(_, bits)| *bits);
        }
        Allotted { layers, error: self.loss(chosen).sqrt(), fewest }
    }
}

/// Adds finer choices, each of which halves the unit and the error.
fn extrapolate(choices: &mut Vec<Choice>, more: u32, finer: impl Fn(f64) -> f64) {
    for _ in 0..more {
        if let Some(&Choice { fineness, unit, loss }) = choices.last() {
            choices.push(Choice { fineness: finer(fineness), unit: unit - 1.0, loss: loss / 4.0 });
        }
    }
}

/// Those that no coarser one equals.
fn worthwhile(mut choices: Vec<Choice>) -> Vec<Choice> {
    let mut least = f64::INFINITY;
    choices.retain(|choice| {
        let is_better = choice.loss < least;
        least = least.min(choice.loss);
        is_better
    });
    choices
}

/// Of every value, for so many things that are rounded: the input, then the layers in the order of the items.
fn reaches(items: &[Item<'_>], count: usize) -> Vec<Reach> {
    let mut input = vec![0.0; count];
    input[0] = 1.0;
    // What a factor or a mean takes into the unit is no power of any.
    let mut units = vec![(input, 0.0)];
    let mut layers = 0;
    for item in items {
        let (mut powers, mut unit) = units[item.inputs[0]].clone();
        match &item.action {
            Action::Layer { .. } => {
                layers += 1;
                powers[layers] += 1.0;
            }
            action if action.is_square() => {
                powers = powers.iter().map(|power| 2.0 * power).collect();
                unit *= 2.0;
            }
            action => unit += action.unit().log2(),
        }
        units.push((powers, unit));
    }
    let of_value = |(item, (powers, unit)): (&Item<'_>, &(Vec<f64>, f64))| Reach {
        peak: item.seen.range.magnitude().log2() - unit,
        powers: powers.clone(),
    };
    items.iter().zip(&units[1..]).map(of_value).collect()
}
