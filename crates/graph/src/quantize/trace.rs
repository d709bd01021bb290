//! What fixed-point networks make of calibration samples. The search for bits asks for it again and again, of one network after the other,
//! and it is nearly all that the search takes: other machines can do it, since samples have nothing to do with each other.

use crate::network::Network;
use crate::{CompileError, FixedExecutor, InputError, Integers, cores};

/// Calibration samples, and who traces networks over them.
#[derive(Clone, Copy)]
pub struct Calibration<'c> {
    /// Samples of the graph's input, one after the other, row-major.
    pub samples: &'c [f32],
    /// What traces networks over them.
    pub tracer: &'c dyn Tracer,
}

impl<'c, S: AsRef<[f32]> + ?Sized> From<&'c S> for Calibration<'c> {
    /// Samples that this machine traces networks over.
    fn from(samples: &'c S) -> Self {
        Self { samples: samples.as_ref(), tracer: &OwnCores }
    }
}

/// What a network makes of a sample.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// The smallest and the largest integer of every value: the input's, then each node's.
    pub ends: Vec<[i128; 2]>,
    /// The integers of the last node.
    pub scores: Vec<i128>,
}

/// Traces networks over samples.
pub trait Tracer: Sync {
    /// What a network makes of each sample, in order. With a sample comes its number among all of the calibration.
    ///
    /// # Errors
    /// [`CompileError::Calibration`] naming a sample that the network does not take; [`CompileError::Tracing`] if traces are not to be had.
    fn traces(&self, network: &Network, samples: &[(usize, &[f32])]) -> Result<Vec<Trace>, CompileError>;
}

/// This machine's cores.
#[derive(Clone, Copy, Debug, Default)]
pub struct OwnCores;

impl Tracer for OwnCores {
    fn traces(&self, network: &Network, samples: &[(usize, &[f32])]) -> Result<Vec<Trace>, CompileError> {
        let executor = FixedExecutor::new(network)?;
        let (input, last) = (network.public().input(), network.public().nodes().len());
        let each = cores::map(samples, |(number, sample)| {
            let integers = input.quantize(sample).map_err(|error| refuse(*number, &error))?;
            let mut trace = Trace { ends: vec![[0; 2]; last + 1], scores: Vec::new() };
            let visit = |value: usize, integers: Integers<'_>| {
                trace.ends[value] = integers.ends();
                if value == last {
                    trace.scores = integers.to_vec();
                }
            };
            executor.trace(&integers, visit).map_err(|error| refuse(*number, &error))?;
            Ok(trace)
        });
        each.into_iter().collect()
    }
}

/// Checks that traces are those of so many samples.
pub(super) fn check(traces: &[Trace], network: &Network, samples: usize) -> Result<(), CompileError> {
    let (values, scores) = (network.values().len(), network.public().output_len());
    let fits = |trace: &Trace| trace.ends.len() == values && trace.scores.len() == scores;
    if traces.len() == samples && traces.iter().all(fits) {
        return Ok(());
    }
    Err(CompileError::Tracing { reason: "the traces are of another network or of other samples".to_owned() })
}

pub(super) fn refuse(number: usize, error: &InputError) -> CompileError {
    CompileError::Calibration { reason: format!("sample {number}: {error}"), fix: error.fix().to_owned() }
}
