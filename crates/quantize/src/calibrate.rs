//! The ranges that values take on the calibration samples.

use lanner_graph::pass::Draft;
use lanner_graph::{FloatExecutor, cores};
use lanner_network::{Calibrated, CompileError, Network};

use super::outlier::typical;
use super::trace::{Earlier, OwnCores, Trace, Tracer, refuse};

/// The smallest and the largest real value; 0 always lies between them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Range {
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Range {
    /// The largest absolute value.
    pub(super) fn magnitude(self) -> f64 {
        self.high.max(-self.low)
    }

    /// The distance between the ends.
    pub(super) fn width(self) -> f64 {
        self.high - self.low
    }

    /// The smallest with 0 and what lies between these ends.
    fn over([low, high]: [f64; 2]) -> Self {
        Self { low: low.min(0.0), high: high.max(0.0) }
    }

    /// The smallest range with both.
    pub(super) fn hull(self, other: Self) -> Self {
        Self { low: self.low.min(other.low), high: self.high.max(other.high) }
    }

    /// The part within `largest` of 0.
    fn within(self, largest: f64) -> Self {
        Self { low: self.low.max(-largest), high: self.high.min(largest) }
    }
}

/// What the float graph did on the samples.
pub(super) struct Observed {
    /// For each sample the smallest and the largest of every value: the input's, then each node's.
    pub(super) ends: Vec<Vec<[f64; 2]>>,
    /// For each sample its scores; behind them those of inputs that were made.
    pub(super) scores: Vec<Vec<f32>>,
    /// As `ends`, for each input that was made.
    pub(super) made: Vec<Vec<[f64; 2]>>,
}

/// What is known of a value in the float graph.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Seen {
    /// Over all samples: what rings have room for.
    pub(super) range: Range,
    /// The smallest and the largest over all samples, whether or not 0 lies between them.
    pub(super) ends: [f64; 2],
    /// Without the few values that are far larger than those of most samples: what activation bits are spread over.
    pub(super) typical: Range,
}

impl Seen {
    /// What is known of two values that are quantised as one.
    pub(super) fn hull(self, other: Self) -> Self {
        let [low, high] = self.ends;
        Self {
            range: self.range.hull(other.range),
            ends: [low.min(other.ends[0]), high.max(other.ends[1])],
            typical: self.typical.hull(other.typical),
        }
    }
}

/// The samples of a calibration, each with its number.
pub(super) type Samples<'s> = Vec<(usize, &'s [f32])>;

/// Cuts calibration values into samples.
pub(super) fn samples<'s>(draft: &Draft, calibration: &'s [f32]) -> Result<Samples<'s>, CompileError> {
    let shape = &draft.graph.inputs[0].shape;
    let samples = calibration.chunks_exact(shape.iter().product());
    if samples.len() == 0 || !samples.remainder().is_empty() {
        let reason = format!(
            "found {} values; expected a multiple of {}, the values of a sample",
            calibration.len(),
            shape.iter().product::<usize>(),
        );
        let fix = format!("pass an array of shape [samples, {shape:?}]");
        return Err(CompileError::Calibration { reason, fix });
    }
    Ok(samples.enumerate().collect())
}

/// Runs the float graph on the samples.
pub(super) fn observe(draft: &Draft, samples: &Samples<'_>) -> Result<Observed, CompileError> {
    let each = observe_each(draft, samples)?.into_iter().collect::<Result<Vec<_>, CompileError>>()?;
    let (ends, scores) = each.into_iter().unzip();
    Ok(Observed { ends, scores, made: Vec::new() })
}

/// The ends of every value, and the scores.
pub(super) type OfSample = (Vec<[f64; 2]>, Vec<f32>);

/// Runs the float graph on each sample, whatever others make of it.
pub(super) fn observe_each(
    draft: &Draft,
    samples: &Samples<'_>,
) -> Result<Vec<Result<OfSample, CompileError>>, CompileError> {
    let executor = FloatExecutor::new(&draft.graph, &draft.tensors)?;
    Ok(cores::map(samples, |(number, sample)| {
        let values = executor.run_all(sample).map_err(|error| refuse(*number, &error))?;
        let ends = values.iter().enumerate().map(|(id, values)| {
            ends_of(values).ok_or_else(|| {
                let node = id.checked_sub(1).map_or("the input", |index| &draft.graph.nodes[index].name);
                let reason = format!("at sample {number}, `{node}` becomes infinite or NaN");
                CompileError::Calibration {
                    reason,
                    fix: "check this sample and the weights before this node".to_owned(),
                }
            })
        });
        Ok((ends.collect::<Result<_, _>>()?, values.last().cloned().unwrap_or_default()))
    }))
}

/// The smallest and the largest of finite values.
fn ends_of(values: &[f32]) -> Option<[f64; 2]> {
    let join = |[low, high]: [f32; 2], x: &f32| x.is_finite().then(|| [low.min(*x), high.max(*x)]);
    let ends = values.iter().try_fold([f32::INFINITY, f32::NEG_INFINITY], join)?;
    Some(ends.map(f64::from))
}

impl Observed {
    /// The largest absolute value of a value in each sample.
    pub(super) fn magnitudes(&self, value: usize) -> Vec<f64> {
        self.ends.iter().map(|sample| Range::over(sample[value]).magnitude()).collect()
    }

    /// What is known of every value from these samples and from what was made.
    pub(super) fn seen(&self, samples: &Samples<'_>) -> Vec<Seen> {
        let of_value = |value: usize| {
            let made = self.made.iter().map(|ends| halved(ends[value]));
            let ends = samples.iter().map(|(number, _)| self.ends[*number][value]).chain(made);
            let ends = ends.fold([f64::INFINITY, f64::NEG_INFINITY], |a, b| [a[0].min(b[0]), a[1].max(b[1])]);
            let range = Range::over(ends);
            Seen { range, ends, typical: range.within(typical(&self.magnitudes(value))) }
        };
        (0..self.ends.first().map_or(0, Vec::len)).map(of_value).collect()
    }
}

/// What doubling makes these ends of, or wider ones: inputs that are made lie at the ends of the range already, and are given no room beyond.
fn halved([low, high]: [f64; 2]) -> [f64; 2] {
    [if low < 0.0 { low / 2.0 } else { 2.0 * low }, if high > 0.0 { high / 2.0 } else { 2.0 * high }]
}

/// What a network makes of samples, in integers.
pub(super) struct Measured {
    /// Of every value, with the scale that the network holds.
    pub(super) ranges: Vec<Calibrated>,
    /// Of each sample, in order.
    pub(super) scores: Vec<Vec<i128>>,
    /// Of each input that was made.
    pub(super) made: Vec<Vec<i128>>,
}

/// The integer range of every value over the samples and, halved, over what was made; and the scores. `earlier` is what was traced before of the
/// same samples, and of what was made.
pub(super) fn integer_ranges(
    network: &Network,
    samples: &Samples<'_>,
    made: &Samples<'_>,
    tracer: &dyn Tracer,
    [earlier, earlier_made]: &mut [Earlier; 2],
) -> Result<Measured, CompileError> {
    let unseen = |value: &lanner_network::ValueReport| Calibrated {
        scale: value.scale,
        low: 0,
        high: 0,
        weight_error: value.weights.map(|weights| weights.error),
        function: value.function,
        saturates: value.saturates,
    };
    let mut ranges: Vec<Calibrated> = network.values().iter().map(unseen).collect();
    let mut all_scores = Vec::with_capacity(samples.len());
    for Trace { ends, scores } in tracer.traces_after(earlier, network, samples)? {
        for (range, [low, high]) in ranges.iter_mut().zip(ends) {
            range.low = range.low.min(low);
            range.high = range.high.max(high);
        }
        all_scores.push(scores);
    }
    let mut made_scores = Vec::with_capacity(made.len());
    // They are few, and others have the samples alone.
    for Trace { ends, scores } in OwnCores.traces_after(earlier_made, network, made)? {
        for (range, [low, high]) in ranges.iter_mut().zip(ends) {
            // Rounded away from 0.
            range.low = range.low.min(low.div_euclid(2));
            range.high = range.high.max((high + 1).div_euclid(2));
        }
        made_scores.push(scores);
    }
    Ok(Measured { ranges, scores: all_scores, made: made_scores })
}
