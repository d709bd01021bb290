//! Units and centres by feature, for inputs whose features differ too much for one unit.
//!
//! What is published of a feature is coarse: its unit is a power of two, its centre a whole number of quarters of 2^a such units.

use lanner_graph::pass::{Coded, Draft, prepare, prepare_coded, strip, uniform};
use lanner_graph::{FloatExecutor, Graph, Node, Op};
use lanner_network::grid::{GridFactor, power_of_two};
use lanner_network::{
    CompileError, Features, Head, InputScale, MAX_CENTRE, MAX_EXPONENT, Preprocessing, Tensors, position,
};

use super::QuantizationOptions;
use super::calibrate::Range;

/// How much coarser one unit for all must be than features of their own, and how much larger the error of the scores that follows from it.
const MARKED: f64 = 4.0;

/// A centre is taken where it makes a feature's range so many times narrower than 0 and the range together are.
const OFF_ZERO: f64 = 2.0;

/// The samples on which errors of scores are compared.
const COMPARED: usize = 64;

/// The prepared graph, the input that it takes, and how a real input becomes that.
pub(super) struct CodedInput {
    pub(super) draft: Draft,
    pub(super) head: Head,
    /// The calibration samples as the draft takes them, one after the other, where it does not take them as they are.
    pub(super) samples: Option<Vec<f32>>,
    pub(super) coding: Option<Coding>,
}

/// What each feature's integers stand for.
#[derive(Clone, Debug)]
pub(super) struct Coding {
    axis: usize,
    /// Where there are units by feature.
    units: Option<Units>,
    preprocessing: Option<Preprocessing>,
}

/// Units by feature at so many bits.
#[derive(Clone, Debug)]
struct Units {
    bits: u32,
    /// Logarithms, to base two.
    exponents: Vec<i32>,
    /// The largest exponent, that of the unit that the others are told as parts of.
    most: i32,
    /// Of 2^(bits - 2) units.
    centres: Vec<i64>,
}

/// Prepares a graph for its calibration samples.
///
/// # Errors
/// [`CompileError`] as the passes have it, and [`CompileError::Preprocessing`].
pub(super) fn prepare_input(
    graph: &Graph,
    tensors: &Tensors,
    calibration: &[f32],
    options: &QuantizationOptions,
) -> Result<CodedInput, CompileError> {
    if options.public_preprocessing {
        let stripped = strip(graph, tensors)?;
        let shape = &graph.inputs[0].shape;
        let (axis, preprocessing) = (stripped.axis, stripped.preprocessing);
        let apply = |(index, &x): (usize, &f32)| {
            preprocessing.apply(position(shape, axis, index), f64::from(x)) as f32
        };
        let samples: Vec<f32> = calibration.iter().enumerate().map(apply).collect();
        let mut prepared = by_feature(&stripped.graph, &stripped.tensors, &samples, options, &[axis])?;
        let coding = prepared.coding.get_or_insert(Coding { axis, units: None, preprocessing: None });
        coding.preprocessing = Some(preprocessing);
        prepared.samples.get_or_insert(samples);
        return Ok(prepared);
    }
    let last = graph.inputs.first().map_or(0, |input| input.shape.len().saturating_sub(1));
    let axes = if last == 0 { &[0][..] } else { &[0, last] };
    by_feature(graph, tensors, calibration, options, axes)
}

/// Chooses units by feature where features along one of these axes differ markedly and the first layers can take what decodes them.
fn by_feature(
    graph: &Graph,
    tensors: &Tensors,
    calibration: &[f32],
    options: &QuantizationOptions,
    axes: &[usize],
) -> Result<CodedInput, CompileError> {
    let (draft, head) = prepare(graph, tensors)?;
    let shape = &draft.graph.inputs[0].shape;
    let usable = calibration.len() >= shape.iter().product() && calibration.iter().all(|x| x.is_finite());
    let axes = if usable && options.input_range.is_none() { axes } else { &[] };
    for &axis in axes {
        let ranges = ranges(calibration, shape, axis);
        let fit = |centred| {
            let units = Units::of(&ranges, options.activation_bits, centred)?;
            let (folded, _) = prepare_coded(graph, tensors, Some(&units.coded(axis))).ok()?;
            same_operators(&draft, &folded).then_some((units, folded))
        };
        let Some((units, folded)) = [true, false].into_iter().find_map(fit) else { continue };
        if helps(&draft, &units, &ranges, axis, calibration)? {
            let code = |(index, &x): (usize, &f32)| units.code(position(shape, axis, index), x);
            let samples = Some(calibration.iter().enumerate().map(code).collect());
            let coding = Some(Coding { axis, units: Some(units), preprocessing: None });
            return Ok(CodedInput { draft: folded, head, samples, coding });
        }
    }
    Ok(CodedInput { draft, head, samples: None, coding: None })
}

/// The range of each position of an axis, over samples of this shape; without 0, unless it is among the values.
fn ranges(samples: &[f32], shape: &[usize], axis: usize) -> Vec<Range> {
    let mut ranges = vec![Range { low: f64::INFINITY, high: f64::NEG_INFINITY }; shape[axis]];
    for (index, &x) in samples.iter().enumerate() {
        let range = &mut ranges[position(shape, axis, index)];
        *range = range.hull(Range { low: f64::from(x), high: f64::from(x) });
    }
    ranges
}

/// Whether the first layers took in all that decodes the input: nothing is left of it, and nothing else was made for it.
fn same_operators(draft: &Draft, folded: &Draft) -> bool {
    let operators = |draft: &Draft| -> Vec<(&'static str, Vec<usize>)> {
        draft.graph.nodes.iter().map(|node| (node.op.name(), draft.shapes[&node.name].clone())).collect()
    };
    let is_settled = |node: &Node| match &node.op {
        // What fixed point takes into a scale is one factor for all.
        Op::MulConstant { value } => {
            folded.tensors.get(value).is_some_and(|factors| uniform(factors.data()).is_some())
        }
        _ => true,
    };
    operators(draft) == operators(folded) && folded.graph.nodes.iter().all(is_settled)
}

/// Whether errors of half a unit make a markedly larger error of the scores with one unit for all than with these units.
///
/// That is what a feature's weight and its spread over the samples come to together, on their way through the whole network. The errors
/// are drawn rather than those of rounding the samples, which are none where values happen to be multiples of the one unit or the other.
fn helps(
    draft: &Draft,
    units: &Units,
    ranges: &[Range],
    axis: usize,
    calibration: &[f32],
) -> Result<bool, CompileError> {
    let executor = FloatExecutor::new(&draft.graph, &draft.tensors)?;
    let shape = &draft.graph.inputs[0].shape;
    let common = common_range(ranges).width() / (power_of_two(units.bits as i32) - 1.0);
    let Some(common) = GridFactor::above(common).map(GridFactor::value) else { return Ok(false) };
    let (mut lost, mut drawn) = ([0.0_f64; 2], 0);
    for sample in calibration.chunks_exact(executor.input_len()).take(COMPARED) {
        let mut inputs = [sample.to_vec(), sample.to_vec()];
        for (index, &x) in sample.iter().enumerate() {
            let error = draw(drawn) - 0.5;
            drawn += 1;
            for (input, unit) in inputs.iter_mut().zip([common, units.unit(position(shape, axis, index))]) {
                input[index] = (f64::from(x) + error * unit) as f32;
            }
        }
        let Ok(scores) = executor.run(sample) else { return Ok(false) };
        for (lost, input) in lost.iter_mut().zip(&inputs) {
            let Ok(found) = executor.run(input) else { return Ok(false) };
            let differences = scores.iter().zip(&found).map(|(score, found)| f64::from(score - found));
            *lost += differences.map(|difference| difference * difference).sum::<f64>();
        }
    }
    Ok(lost[0] > 0.0 && lost[0] >= MARKED * MARKED * lost[1])
}

/// The number `index` of a fixed sequence like one of uniform numbers in [0, 1): `SplitMix64`.
pub(super) fn draw(index: u64) -> f64 {
    let mut z = index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 * power_of_two(-53)
}

/// What one unit for all is spread over.
fn common_range(ranges: &[Range]) -> Range {
    ranges.iter().copied().fold(Range::default(), Range::hull)
}

impl Units {
    /// Units of which each feature's range, or where it is not centred that and 0, spans 2^bits to twice as many. None where one unit
    /// for all is not markedly coarser for any feature.
    fn of(ranges: &[Range], bits: u32, centred: bool) -> Option<Self> {
        let with_zero = |range: Range| range.hull(Range::default()).width();
        let middles: Vec<Option<f64>> = ranges
            .iter()
            .map(|range| {
                let is_off = centred && range.width() > 0.0 && with_zero(*range) > OFF_ZERO * range.width();
                is_off.then_some(0.5 * range.low + 0.5 * range.high)
            })
            .collect();
        let spans: Vec<f64> = ranges
            .iter()
            .zip(&middles)
            .map(|(range, middle)| if middle.is_some() { range.width() } else { with_zero(*range) })
            .collect();
        let narrowest = spans.iter().copied().filter(|span| *span > 0.0).fold(f64::INFINITY, f64::min);
        if common_range(ranges).width() < MARKED * narrowest {
            return None;
        }
        let exponents = spans.iter().zip(&middles).map(|(span, middle)| {
            // Beyond this many units from 0 an input's own digits end.
            let finest = middle.map_or(0.0, |middle| 4.0 * middle.abs() / MAX_CENTRE as f64);
            (*span > 0.0).then(|| exponent((span / power_of_two(bits as i32)).max(finest)))
        });
        let exponents: Vec<Option<i32>> = exponents.collect();
        let mut known: Vec<i32> = exponents.iter().copied().flatten().collect();
        known.sort_unstable();
        // A feature that is 0 in every sample gets a usual unit, since nothing is known of it.
        let (usual, most) = (*known.get(known.len() / 2)?, *known.last()?);
        let exponents: Vec<i32> =
            exponents.iter().map(|exponent| exponent.unwrap_or(usual).max(most - MAX_EXPONENT)).collect();
        let step = |exponent: i32| power_of_two(exponent + bits as i32 - 2);
        let centres = middles.iter().zip(&exponents).map(|(middle, &exponent)| {
            middle.map_or(0, |middle| (middle / step(exponent)).round_ties_even() as i64)
        });
        let (centres, most) = (centres.collect(), exponents.iter().copied().max()?);
        Some(Self { bits, exponents, most, centres })
    }

    /// By how many bits more than the units were chosen for a range of so many steps is told.
    fn finer(&self, levels: f64) -> i32 {
        (levels + 1.0).log2().round() as i32 - self.bits as i32
    }

    fn unit(&self, feature: usize) -> f64 {
        power_of_two(self.exponents[feature])
    }

    /// The real value of a feature's centre.
    fn centre(&self, feature: usize) -> f64 {
        self.centres[feature] as f64 * power_of_two(self.exponents[feature] + self.bits as i32 - 2)
    }

    /// How many of the coded input's reals make one of the feature's.
    fn factor(&self, feature: usize) -> f64 {
        power_of_two(self.exponents[feature] - self.most)
    }

    /// A real value as the folded graph takes it.
    fn code(&self, feature: usize, x: f32) -> f32 {
        ((f64::from(x) - self.centre(feature)) / self.factor(feature)) as f32
    }

    fn coded(&self, axis: usize) -> Coded {
        let of_all =
            |what: &dyn Fn(usize) -> f64| (0..self.exponents.len()).map(|j| what(j) as f32).collect();
        Coded { axis, factors: of_all(&|j| self.factor(j)), terms: of_all(&|j| self.centre(j)) }
    }
}

impl Coding {
    /// Where there are units by feature, the input's scale and the integers accepted: twice the coded range, rounded up to powers of two.
    pub(super) fn scale(&self, range: Range, levels: f64) -> Option<(InputScale, [i64; 2])> {
        let units = self.units.as_ref()?;
        let unit = GridFactor::power_of_two(units.most - units.finer(levels))?;
        let end = |end: f64| {
            let largest = power_of_two_above(2.0 * end.abs() / unit.value());
            if end == 0.0 { 0 } else { (largest * end.signum()) as i64 }
        };
        Some((InputScale::Grid(unit), [end(range.low), end(range.high)]))
    }

    /// Whether there are units by feature.
    pub(super) const fn has_units(&self) -> bool {
        self.units.is_some()
    }

    /// What both parties know of the features of an input of this shape.
    pub(super) fn features(&self, shape: &[usize], levels: f64) -> Features {
        let (exponents, centres) = match &self.units {
            None => (vec![0; shape[self.axis]], vec![0; shape[self.axis]]),
            Some(units) => {
                let quarter = (units.bits as i32 + units.finer(levels) - 2).max(0);
                (
                    units.exponents.iter().map(|exponent| exponent - units.most).collect(),
                    units.centres.iter().map(|centre| centre << quarter).collect(),
                )
            }
        };
        Features { axis: self.axis, exponents, centres, preprocessing: self.preprocessing.clone() }
    }
}

/// The exponent of the largest power of two that is not above `x`, which is positive.
fn exponent(x: f64) -> i32 {
    (x.to_bits() >> 52 & 0x7ff) as i32 - 1023
}

/// The smallest power of two that is not below `x`, which is positive.
fn power_of_two_above(x: f64) -> f64 {
    let below = power_of_two(exponent(x));
    if below < x { 2.0 * below } else { below }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_two_are_the_nearest_on_their_side() {
        for (x, below, above) in
            [(1.0, 0, 1.0), (1.5, 0, 2.0), (0.3, -2, 0.5), (1e-30, -100, 2.0_f64.powi(-99))]
        {
            assert_eq!(exponent(x), below);
            assert_eq!(power_of_two_above(x).to_bits(), above.to_bits());
        }
    }
}
