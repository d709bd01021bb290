//! Samples that cover little of a stated range: inputs of the compiler's own making join them.

use lanner_graph::FloatExecutor;
use lanner_network::{
    Accumulator, CompileError, FixedExecutor, Network, NetworkManifest, Precision, PublicNetwork,
};

use super::Sketch;
use crate::beside::softmax;
use crate::{Aim, QuantizationOptions, Told, compile_to};

const RANGE: [f64; 2] = [-4.0, 4.0];

fn net() -> Sketch {
    Sketch::new(&[8], 3).dense("a", 12).relu("r").dense("b", 3)
}

fn options(powers: bool) -> QuantizationOptions {
    let base = if powers { QuantizationOptions::powers_of_two() } else { QuantizationOptions::default() };
    QuantizationOptions { input_range: Some(RANGE), ..base }
}

fn compiled(
    sketch: &Sketch,
    samples: &[f32],
    options: &QuantizationOptions,
) -> Result<Network, CompileError> {
    let aim = Aim { precision: Precision::Error(0.005), demanded: true, told: Told::Scores };
    let cost = |network: &PublicNetwork| Ok(network.nodes().len() as u64);
    compile_to(&sketch.graph, &sketch.tensors, samples, options, aim, &cost)
}

/// The largest error of a score relative to the range of all, and the overflows, on inputs from all of the range.
fn on_others(sketch: &mut Sketch, network: &Network) -> (f64, usize) {
    let inputs = sketch.samples(64, -4.0, 4.0);
    let (float, fixed) =
        (FloatExecutor::new(&sketch.graph, &sketch.tensors).unwrap(), FixedExecutor::new(network).unwrap());
    let (mut exact, mut found, mut overflows) = (Vec::new(), Vec::new(), 0);
    for input in inputs.chunks_exact(8) {
        let run = fixed.run_real(input).unwrap();
        overflows += run.overflow_count();
        exact.extend(float.run(input).unwrap().into_iter().map(f64::from));
        found.extend(run.output.iter().map(|y| *y as f64 * network.output_scale()));
    }
    let largest = exact.iter().fold(f64::NEG_INFINITY, |a, b| a.max(*b));
    let smallest = exact.iter().fold(f64::INFINITY, |a, b| a.min(*b));
    let errors = exact.iter().zip(&found).map(|(a, b)| (a - b).abs());
    (errors.fold(0.0, f64::max) / (largest - smallest), overflows)
}

#[test]
fn inputs_unlike_the_few_given_ones_are_right() {
    for powers in [false, true] {
        let mut sketch = net();
        let one = sketch.samples(1, -0.5, 0.5);
        let close: Vec<f32> =
            (0..40).flat_map(|shift| one.iter().map(move |x| x + 1e-3 * shift as f32)).collect();
        for samples in [one, close, vec![0.0; 8]] {
            let network = compiled(&sketch, &samples, &options(powers)).unwrap();
            assert!(network.made() >= 8);
            let (error, overflows) = on_others(&mut sketch, &network);
            assert!(error < 0.01 && overflows == 0, "{error}, {overflows}");
            // The samples themselves are what precision is told of.
            assert_eq!(network.reached().unwrap().samples, samples.len() / 8);
        }
    }
}

#[test]
fn nothing_is_made_where_samples_cover_the_range_or_none_is_stated() {
    let mut sketch = net();
    let wide = sketch.samples(40, -3.0, 3.0);
    let network = compiled(&sketch, &wide, &options(true)).unwrap();
    assert_eq!(network.made(), 0);
    let unstated = QuantizationOptions { input_range: None, ..options(true) };
    assert_eq!(compiled(&sketch, &wide[..8], &unstated).unwrap().made(), 0);
    // A file says nothing of what was not made, and keeps what was.
    let (manifest, _) = network.to_parts().unwrap();
    assert!(!manifest.to_json().unwrap().contains("\"made\""));
    let (manifest, weights) = compiled(&sketch, &wide[..8], &options(true)).unwrap().to_parts().unwrap();
    let manifest = NetworkManifest::from_json(&manifest.to_json().unwrap()).unwrap();
    assert!(Network::from_parts(manifest, &weights).unwrap().made() > 0);
}

#[test]
fn the_same_samples_give_the_same_network() {
    let mut sketch = net();
    let one = sketch.samples(1, -0.5, 0.5);
    let network = || compiled(&sketch, &one, &options(true)).unwrap();
    assert_eq!(network(), network());
}

#[test]
fn what_has_no_room_for_made_inputs_is_compiled_from_the_samples_alone() {
    let mut sketch = net();
    // Sums of inputs at the ends of the range are some twenty times as large.
    let samples = sketch.samples(40, -0.2, 0.2);
    let with_rings = |most: u32| {
        let accumulators: Vec<_> = Accumulator::powers_of_two().filter(|ring| ring.bits() <= most).collect();
        compiled(&sketch, &samples, &QuantizationOptions { accumulators, ..options(true) })
    };
    let most = (18..=41).find(|most| with_rings(*most).is_ok()).unwrap();
    let network = with_rings(most).unwrap();
    assert!(network.made() == 0 && network.reached().unwrap().is_met());
    assert!(with_rings(41).unwrap().made() > 0);
    // Where neither has room the remedy for tables is named.
    let refused = with_rings(most - 1).unwrap_err();
    assert!(refused.fix().contains("omit ⟦input_range⟧"), "{refused}; {}", refused.fix());
}

/// Scores whose softmax is all but certain on every sample: samples of two kinds, far from where one is as likely as the other.
fn certain(sketch: &mut Sketch) -> Vec<f32> {
    let drawn = sketch.samples(400, -3.0, 3.0);
    let float = FloatExecutor::new(&sketch.graph, &sketch.tensors).unwrap();
    let is_certain = |sample: &&[f32]| {
        let scores = float.run(sample).unwrap();
        let mut sorted = scores;
        sorted.sort_by(f32::total_cmp);
        sorted[2] - sorted[1] > 7.0
    };
    drawn.chunks_exact(8).filter(is_certain).flatten().copied().collect()
}

/// The largest error of the likeliest class's probability over inputs between samples.
fn of_probabilities(sketch: &Sketch, network: &Network, samples: &[f32]) -> f64 {
    let (float, fixed) =
        (FloatExecutor::new(&sketch.graph, &sketch.tensors).unwrap(), FixedExecutor::new(network).unwrap());
    let rows: Vec<&[f32]> = samples.chunks_exact(8).collect();
    let mut most = 0.0_f64;
    for (number, a) in rows.iter().enumerate() {
        let b = rows[(7 * number + 3) % rows.len()];
        for part in 0..64 {
            let input: Vec<f32> = a.iter().zip(b).map(|(a, b)| a + part as f32 / 64.0 * (b - a)).collect();
            let exact = softmax(float.run(&input).unwrap().into_iter().map(f64::from));
            let run = fixed.run_real(&input).unwrap();
            let found = softmax(run.output.iter().map(|y| *y as f64 * network.output_scale()));
            most = exact.iter().zip(&found).map(|(a, b)| (a - b).abs()).fold(most, f64::max);
        }
    }
    most
}

#[test]
fn probabilities_are_precise_between_samples_of_which_all_are_certain() {
    let mut sketch =
        Sketch::new(&[8], 3).dense("a", 12).relu("r").mul_constant("steep", &[12], 6.0).dense("b", 3);
    let samples = certain(&mut sketch);
    assert!(samples.len() >= 8 * 40);
    let options = QuantizationOptions { input_range: None, ..options(true) };
    let told = |told: Told| {
        let aim = Aim { precision: Precision::Error(0.005), demanded: true, told };
        let cost = |network: &PublicNetwork| Ok(network.nodes().len() as u64);
        compile_to(&sketch.graph, &sketch.tensors, &samples[..], &options, aim, &cost).unwrap()
    };
    let (likely, ordered) = (told(Told::Probability), told(Told::Order));
    assert!(likely.made() > 16 && likely.given_up() == 0 && ordered.made() == 0);
    let error = |network: &Network| of_probabilities(&sketch, network, &samples);
    assert!(error(&likely) < 0.01, "{}", error(&likely));
    // The order of scores says nothing of that.
    assert!(error(&ordered) > 0.02, "{}", error(&ordered));
    // Where rings have room for the samples' precision alone it is said.
    let with_rings = |most: u32| {
        let accumulators: Vec<_> = Accumulator::powers_of_two().filter(|ring| ring.bits() <= most).collect();
        let narrow = QuantizationOptions { accumulators, ..options.clone() };
        let aim = Aim { precision: Precision::Error(0.005), demanded: true, told: Told::Probability };
        let cost = |network: &PublicNetwork| Ok(network.nodes().len() as u64);
        compile_to(&sketch.graph, &sketch.tensors, &samples[..], &narrow, aim, &cost).ok()
    };
    let network = (16..=41).filter_map(with_rings).find(|network| network.given_up() > 16).unwrap();
    assert!(network.made() == 0 && network.reached().unwrap().is_met());
    let (manifest, weights) = network.to_parts().unwrap();
    let manifest = NetworkManifest::from_json(&manifest.to_json().unwrap()).unwrap();
    assert_eq!(Network::from_parts(manifest, &weights).unwrap().given_up(), network.given_up());
}
