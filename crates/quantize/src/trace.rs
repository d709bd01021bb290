//! What fixed-point networks make of calibration samples. The search for bits asks for it again and again, of one network after the other;
//! samples have nothing to do with each other, so that several machines can share them.

use std::sync::OnceLock;

use lanner_graph::cores;
use lanner_network::{CompileError, FixedExecutor, InputError, Integers, Network, Stage, alike};

/// Calibration samples, who traces networks over them, and who hears of it.
#[derive(Clone, Copy)]
pub struct Calibration<'c> {
    /// Samples of the graph's input, one after the other, row-major.
    pub samples: &'c [f32],
    /// What traces networks over them.
    pub tracer: &'c dyn Tracer,
    /// Hears what is tried, as it begins.
    pub tell: &'c (dyn Fn(&str) + Sync),
}

/// For those who want to hear nothing.
const fn silent(_: &str) {}

impl<'c, S: AsRef<[f32]> + ?Sized> From<&'c S> for Calibration<'c> {
    /// Samples that this machine traces networks over.
    fn from(samples: &'c S) -> Self {
        Self { samples: samples.as_ref(), tracer: &OwnCores, tell: &silent }
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

impl Trace {
    /// The number of values in 8 bytes, the ends of each, and the scores, 16 bytes each; little-endian.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let integers = self.ends.iter().flatten().chain(&self.scores);
        let count = (self.ends.len() as u64).to_le_bytes();
        count.into_iter().chain(integers.flat_map(|integer| integer.to_le_bytes())).collect()
    }

    /// Reads what [`Self::to_bytes`] gave; none if it cannot have.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (count, rest) = bytes.split_first_chunk()?;
        let (integers, []) = rest.as_chunks() else { return None };
        let values = usize::try_from(u64::from_le_bytes(*count)).ok()?;
        let (ends, scores) = integers.split_at_checked(values.checked_mul(2)?)?;
        let integer = |bytes: &[u8; 16]| i128::from_le_bytes(*bytes);
        let ends = ends.as_chunks().0.iter().map(|[low, high]| [integer(low), integer(high)]).collect();
        Some(Self { ends, scores: scores.iter().map(integer).collect() })
    }
}

/// Traces networks over samples.
pub trait Tracer: Sync {
    /// What a network makes of each sample, in order. With a sample comes its number among all of the calibration.
    ///
    /// # Errors
    /// [`CompileError::Calibration`] naming a sample that the network does not take; [`CompileError::Tracing`] if traces are not to be had.
    fn traces(&self, network: &Network, samples: &[(usize, &[f32])]) -> Result<Vec<Trace>, CompileError>;

    /// The same after an earlier network, which may begin alike: what is known from there need not be found again.
    ///
    /// # Errors
    /// As [`Self::traces`].
    fn traces_after(
        &self,
        _earlier: &mut Earlier,
        network: &Network,
        samples: &[(usize, &[f32])],
    ) -> Result<Vec<Trace>, CompileError> {
        self.traces(network, samples)
    }
}

/// A network, what it made of samples, and where runs of it may begin again.
#[derive(Debug, Default)]
pub struct Earlier {
    network: Option<Network>,
    /// The numbers of the samples.
    numbers: Vec<usize>,
    /// Of each sample.
    runs: Vec<(Trace, Vec<Stage>)>,
}

impl Earlier {
    /// For each sample where a run of this network begins, and what its first values are there; nothing where the networks begin otherwise.
    fn begin(&self, executor: &FixedExecutor<'_>, network: &Network, samples: &[(usize, &[f32])]) -> usize {
        let numbers = samples.iter().map(|(number, _)| number);
        let Some(earlier) = self.network.as_ref().filter(|_| self.numbers.iter().eq(numbers)) else {
            return 0;
        };
        let Some((_, stages)) = self.runs.first() else { return 0 };
        let alike = alike(earlier, network);
        let last = stages.iter().rev().find(|stage| executor.begins_at(stage, alike));
        last.map_or(0, Stage::nodes)
    }
}

/// All cores of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct OwnCores;

/// One core of this machine, for those who share samples out themselves.
#[derive(Clone, Copy, Debug, Default)]
pub struct OneCore;

impl Tracer for OwnCores {
    fn traces(&self, network: &Network, samples: &[(usize, &[f32])]) -> Result<Vec<Trace>, CompileError> {
        let executor = FixedExecutor::new(network)?;
        let each = cores::map(samples, |(number, sample)| traced(network, &executor, *number, sample));
        each.into_iter().collect()
    }

    fn traces_after(
        &self,
        earlier: &mut Earlier,
        network: &Network,
        samples: &[(usize, &[f32])],
    ) -> Result<Vec<Trace>, CompileError> {
        let executor = FixedExecutor::new(network)?;
        let begin = earlier.begin(&executor, network, samples);
        let mut stages = executor.stages(MOST_KEPT / samples.len().max(1));
        stages.retain(|nodes| *nodes > begin);
        let mut before = std::mem::take(&mut earlier.runs);
        for (_, stages) in &mut before {
            stages.retain(|stage| stage.nodes() <= begin);
        }
        let numbered: Vec<_> = samples.iter().enumerate().collect();
        let runs = cores::map(&numbered, |(place, (number, sample))| {
            let before = before.get(*place).filter(|_| begin > 0);
            let stage = before.and_then(|(_, stages)| stages.last());
            let known = before.zip(stage).map(|((trace, _), stage)| (trace, stage));
            staged(network, &executor, *number, sample, known, &stages)
        });
        before.resize_with(samples.len(), Default::default);
        let runs = runs.into_iter().collect::<Result<Vec<_>, CompileError>>()?;
        let joined = before.into_iter().zip(runs).map(|((_, mut kept), (trace, more))| {
            kept.extend(more);
            (trace, kept)
        });
        earlier.runs = joined.collect();
        earlier.network = Some(network.clone());
        earlier.numbers = samples.iter().map(|(number, _)| *number).collect();
        Ok(earlier.runs.iter().map(|(trace, _)| trace.clone()).collect())
    }
}

/// Elements that are kept of all samples: 128 megabytes.
const MOST_KEPT: usize = 1 << 24;

impl Tracer for OneCore {
    fn traces(&self, network: &Network, samples: &[(usize, &[f32])]) -> Result<Vec<Trace>, CompileError> {
        let executor = FixedExecutor::new(network)?;
        samples.iter().map(|(number, sample)| traced(network, &executor, *number, sample)).collect()
    }
}

/// What a network makes of a sample.
fn traced(
    network: &Network,
    executor: &FixedExecutor<'_>,
    number: usize,
    sample: &[f32],
) -> Result<Trace, CompileError> {
    Ok(staged(network, executor, number, sample, None, &[])?.0)
}

/// The same from a stage of an earlier network's run on, whose trace says what is before it; and the stages behind these numbers of nodes.
fn staged(
    network: &Network,
    executor: &FixedExecutor<'_>,
    number: usize,
    sample: &[f32],
    known: Option<(&Trace, &Stage)>,
    stages: &[usize],
) -> Result<(Trace, Vec<Stage>), CompileError> {
    let refuse = |error: InputError| refuse(number, &error);
    let integers = network.public().input().quantize(sample).map_err(refuse)?;
    let last = network.public().nodes().len();
    let mut trace = Trace { ends: vec![[0; 2]; last + 1], scores: Vec::new() };
    if let Some((before, stage)) = known {
        let first = ..=stage.nodes();
        trace.ends[first].copy_from_slice(&before.ends[first]);
    }
    let visit = |value: usize, integers: Integers<'_>| {
        trace.ends[value] = integers.ends();
        if value == last {
            trace.scores = integers.to_vec();
        }
    };
    let made =
        executor.trace_from(&integers, known.map(|(_, stage)| stage), stages, visit).map_err(refuse)?;
    Ok((trace, made))
}

pub(super) fn refuse(number: usize, error: &InputError) -> CompileError {
    CompileError::Calibration { reason: format!("sample {number}: {error}"), fix: error.fix().to_owned() }
}

/// A tracer whose traces are looked at, and whose first failure is kept. A search takes errors for a lack of room and goes on with fewer
/// bits: what it finds after a failure is not what was asked for.
pub(super) struct Watched<'c> {
    tracer: &'c dyn Tracer,
    failure: OnceLock<String>,
}

impl<'c> Watched<'c> {
    pub(super) const fn new(tracer: &'c dyn Tracer) -> Self {
        Self { tracer, failure: OnceLock::new() }
    }

    /// What was found, if nothing has failed meanwhile.
    pub(super) fn unless_failed<T>(&self, found: Result<T, CompileError>) -> Result<T, CompileError> {
        self.check()?;
        found
    }

    fn check(&self) -> Result<(), CompileError> {
        self.failure.get().map_or(Ok(()), |reason| Err(CompileError::Tracing { reason: reason.clone() }))
    }
}

impl Tracer for Watched<'_> {
    fn traces(&self, network: &Network, samples: &[(usize, &[f32])]) -> Result<Vec<Trace>, CompileError> {
        self.traces_after(&mut Earlier::default(), network, samples)
    }

    fn traces_after(
        &self,
        earlier: &mut Earlier,
        network: &Network,
        samples: &[(usize, &[f32])],
    ) -> Result<Vec<Trace>, CompileError> {
        self.check()?;
        match self.tracer.traces_after(earlier, network, samples) {
            Ok(traces) if are_of(&traces, network, samples.len()) => return Ok(traces),
            Ok(_) => {
                let reason = "the traces are of another network or of other samples".to_owned();
                self.failure.get_or_init(|| reason);
            }
            Err(CompileError::Tracing { reason }) => {
                self.failure.get_or_init(|| reason);
            }
            Err(error) => return Err(error),
        }
        self.check().map(|()| Vec::new())
    }
}

/// Whether traces can be a network's, of so many samples.
fn are_of(traces: &[Trace], network: &Network, samples: usize) -> bool {
    let (values, scores) = (network.values().len(), network.public().output_len());
    let is_sound = |[low, high]: &[i128; 2]| low <= high && *low >= -LARGEST && *high <= LARGEST;
    let fits = |trace: &Trace| {
        trace.ends.len() == values && trace.scores.len() == scores && trace.ends.iter().all(is_sound)
    };
    traces.len() == samples && traces.iter().all(fits)
}

/// Beyond what any network makes of a sample, and far enough from the ends of the type to be doubled.
const LARGEST: i128 = 1 << 120;
