//! Networks traced elsewhere: the same network comes of it, and traces of anything else are refused.

use std::sync::atomic::{AtomicUsize, Ordering};

use lanner_network::{CompileError, Network, Precision};

use super::branches::residual;
use super::{Sketch, small_network};
use crate::{Aim, Calibration, OwnCores, QuantizationOptions, Told, Trace, Tracer, compile_to};

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
    let calibration = Calibration { samples: &samples, tracer };
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
