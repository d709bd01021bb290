//! The ranges that values take on the calibration samples.

use crate::float::FloatExecutor;
use crate::network::{Calibrated, Network};
use crate::pass::Draft;
use crate::{CompileError, FixedExecutor, InputError};

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
}

/// The float range of every value over the samples: the input, then each node's.
pub(super) fn float_ranges(draft: &Draft, calibration: &[f32]) -> Result<Vec<Range>, CompileError> {
    let executor = FloatExecutor::new(&draft.graph, &draft.tensors)?;
    let samples = calibration.chunks_exact(executor.input_len());
    if samples.len() == 0 || !samples.remainder().is_empty() {
        let reason = format!(
            "{} values are not a whole number of samples of {} values; pass an array of shape [samples, {:?}]",
            calibration.len(),
            executor.input_len(),
            draft.graph.inputs[0].shape
        );
        return Err(CompileError::Calibration { reason });
    }
    let mut ranges = vec![Range::default(); draft.graph.nodes.len() + 1];
    for (number, sample) in samples.enumerate() {
        let values = executor.run_all(sample).map_err(|error| refuse(number, &error))?;
        for (id, (range, values)) in ranges.iter_mut().zip(&values).enumerate() {
            for &value in values {
                if !value.is_finite() {
                    let node = id.checked_sub(1).map_or("the input", |index| &draft.graph.nodes[index].name);
                    let reason = format!(
                        "sample {number} makes `{node}` infinite or NaN; check the weights and the sample"
                    );
                    return Err(CompileError::Calibration { reason });
                }
                range.low = range.low.min(f64::from(value));
                range.high = range.high.max(f64::from(value));
            }
        }
    }
    Ok(ranges)
}

/// The integer range of every value over the samples, with the scales that the network holds.
pub(super) fn integer_ranges(
    network: &Network,
    calibration: &[f32],
) -> Result<Vec<Calibrated>, CompileError> {
    let executor = FixedExecutor::new(network)?;
    let unseen = |value: &crate::network::ValueReport| Calibrated {
        scale: value.scale,
        low: 0,
        high: 0,
        weight_error: value.weights.map(|weights| weights.error),
    };
    let mut ranges: Vec<Calibrated> = network.values().iter().map(unseen).collect();
    let input = network.public().input();
    for (number, sample) in calibration.chunks_exact(input.len()).enumerate() {
        let integers = input.quantize(sample).map_err(|error| refuse(number, &error))?;
        let visit = |value: usize, integers: &[i64]| {
            let range = &mut ranges[value];
            range.low = integers.iter().copied().fold(range.low, i64::min);
            range.high = integers.iter().copied().fold(range.high, i64::max);
        };
        executor.trace(&integers, visit).map_err(|error| refuse(number, &error))?;
    }
    Ok(ranges)
}

fn refuse(number: usize, error: &InputError) -> CompileError {
    CompileError::Calibration { reason: format!("sample {number}: {error}") }
}
