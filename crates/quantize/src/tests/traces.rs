//! Networks traced elsewhere: the same network comes of it, and traces of anything else are refused.

use std::sync::atomic::{AtomicUsize, Ordering};

use lanner_network::{CompileError, FixedExecutor, Network, Precision, Stage, alike};

use super::branches::residual;
use super::{Sketch, small_network};
use crate::{
    Aim, Calibration, Earlier, OwnCores, QuantizationOptions, Told, Trace, Tracer, compile, compile_to,
};

/// Where networks arrive as files, and samples in parts.
struct Elsewhere {
    /// What becomes of the traces on the way back.
    then: fn(&mut Vec<Trace>),
    /// In which call, from 0; in all where it is none.
    call: Option<usize>,
    asked: AtomicUsize,
}

impl Elsewhere {
    const fn new(then: fn(&mut Vec<Trace>)) -> Self {
        Self { then, call: None, asked: AtomicUsize::new(0) }
    }
}

impl Tracer for Elsewhere {
    fn traces(&self, network: &Network, samples: &[(usize, &[f32])]) -> Result<Vec<Trace>, CompileError> {
        let call = self.asked.fetch_add(1, Ordering::Relaxed);
        let (manifest, weights) = network.to_parts()?;
        let read = Network::from_parts(manifest, &weights)?;
        let mut traces = Vec::new();
        for part in samples.chunks(5) {
            traces.extend(OwnCores.traces(&read, part)?);
        }
        if self.call.is_none_or(|then| then == call) {
            (self.then)(&mut traces);
        }
        Ok(traces)
    }
}

fn compiled(
    mut sketch: Sketch,
    options: &QuantizationOptions,
    tracer: &dyn Tracer,
) -> Result<Network, CompileError> {
    let samples = sketch.samples(23, 0.0, 1.0);
    let aim = Aim { precision: Precision::Error(0.01), demanded: false, told: Told::Scores };
    let calibration = Calibration { tracer, ..(&samples).into() };
    compile_to(&sketch.graph, &sketch.tensors, calibration, options, aim, &|network| {
        Ok(network.nodes().iter().map(|node| u64::from(node.accumulator.bits())).sum())
    })
}

#[test]
fn a_search_elsewhere_finds_the_same_network() {
    let narrow =
        QuantizationOptions { narrow: true, kept_bits: Some(9), ..QuantizationOptions::powers_of_two() };
    for options in [QuantizationOptions::default(), QuantizationOptions::powers_of_two(), narrow] {
        for sketch in [|| small_network(1), || residual(31)] {
            let elsewhere = Elsewhere::new(|_| ());
            let found = compiled(sketch(), &options, &elsewhere).unwrap();
            assert_eq!(found, compiled(sketch(), &options, &OwnCores).unwrap());
            assert!(elsewhere.asked.into_inner() > 3);
        }
    }
}

#[test]
fn what_fails_once_ends_the_search() {
    let options = QuantizationOptions::default();
    let whole = Elsewhere::new(|_| ());
    compiled(small_network(1), &options, &whole).unwrap();
    let wrong: [fn(&mut Vec<Trace>); 5] = [
        Vec::clear,
        |traces| traces.push(Trace::default()),
        |traces| traces[0].ends.truncate(1),
        |traces| traces[0].scores.push(0),
        |traces| traces[0].ends[1] = [1, i128::MAX],
    ];
    for call in 0..whole.asked.into_inner() {
        for then in wrong {
            let elsewhere = Elsewhere { call: Some(call), ..Elsewhere::new(then) };
            let error = compiled(small_network(1), &options, &elsewhere);
            assert!(matches!(error, Err(CompileError::Tracing { .. })), "{error:?}");
            assert_eq!(elsewhere.asked.into_inner(), call + 1);
        }
    }
}

#[test]
fn runs_that_begin_at_a_stage_are_the_same_from_there_on() {
    let mut sketch = residual(31);
    let sample = sketch.samples(1, 0.0, 1.0);
    let network = compiled(sketch, &QuantizationOptions::powers_of_two(), &OwnCores).unwrap();
    let executor = FixedExecutor::new(&network).unwrap();
    let input = network.public().input().quantize(&sample).unwrap();
    let mut all = Vec::new();
    executor.trace(&input, |value, integers| all.push((value, integers.to_vec()))).unwrap();
    let numbers = executor.stages(1 << 20);
    let stages = executor.trace_from(&input, None, &numbers, |_, _| ()).unwrap();
    assert!(numbers.len() > 3 && numbers.is_sorted());
    assert_eq!(stages.iter().map(Stage::nodes).collect::<Vec<_>>(), numbers);
    for stage in &stages {
        let mut later = Vec::new();
        let visit = |value, integers: lanner_network::Integers<'_>| later.push((value, integers.to_vec()));
        executor.trace_from(&input, Some(stage), &[], visit).unwrap();
        assert_eq!(later, all[stage.nodes() + 1..]);
        assert!(executor.begins_at(stage, stage.nodes()) && !executor.begins_at(stage, stage.nodes() - 1));
    }
    assert!(executor.stages(0).is_empty());
}

/// Networks that differ in nothing, in late nodes, in everything; and other samples.
#[test]
fn traces_after_those_of_another_network_are_as_without() {
    let samples = residual(31).samples(5, 0.0, 1.0);
    let each: Vec<(usize, &[f32])> = samples.chunks(samples.len() / 5).enumerate().collect();
    let network = |outputs: usize, bits: u32| {
        let mut sketch = residual(31);
        sketch.graph.nodes.pop();
        "f".clone_into(&mut sketch.graph.output);
        let Sketch { graph, tensors, .. } = sketch.dense("last", outputs);
        let options = QuantizationOptions { activation_bits: bits, ..QuantizationOptions::powers_of_two() };
        compile(&graph, &tensors, &samples, &options).unwrap()
    };
    let networks = [network(10, 8), network(10, 8), network(12, 8), network(12, 9), network(10, 8)];
    let nodes = networks[0].public().nodes().len();
    assert_eq!(alike(&networks[0], &networks[1]), nodes);
    assert!((nodes / 2..nodes).contains(&alike(&networks[1], &networks[2])));
    assert_eq!(alike(&networks[2], &networks[3]), 0);
    let mut earlier = Earlier::default();
    for network in &networks {
        for some in [&each[..], &each[..], &each[1..]] {
            let traces = OwnCores.traces_after(&mut earlier, network, some).unwrap();
            assert_eq!(traces, OwnCores.traces(network, some).unwrap());
        }
    }
}

#[test]
fn traces_cross_as_bytes() {
    let trace = Trace { ends: vec![[i128::MIN, 7], [-3, i128::MAX]], scores: vec![-1, 0, 1 << 100] };
    let bytes = trace.to_bytes();
    assert_eq!(Trace::from_bytes(&bytes), Some(trace));
    for cut in (0..bytes.len()).filter(|cut| cut % 16 != 8) {
        assert_eq!(Trace::from_bytes(&bytes[..cut]), None);
    }
    assert_eq!(Trace::from_bytes(&[[255; 8].as_slice(), &bytes[8..]].concat()), None);
    assert_eq!(Trace::from_bytes(&[[5, 0, 0, 0, 0, 0, 0, 0].as_slice(), &bytes[8..]].concat()), None);
}
