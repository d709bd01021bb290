//! Inputs at the corners of what is accepted, whose activations saturate: the parties' result is the reference's all the same.

use lanner_graph::Graph;
use lanner_network::{FixedExecutor, Network, Policy};
use lanner_plan::{Mode, plan};
use lanner_quantize::{QuantizationOptions, compile};
use lanner_session::executor::Outcome;
use lanner_tabula as tabula;
use lanner_transfers::Rounding;

use crate::common::{session, tensors, value};

/// A pool in front of a rescale, a sum of two layers, and dense layers behind.
const JSON: &str = r#"{"format_version":2,"inputs":[{"name":"x","shape":[1,4,4]}],"nodes":[
    {"name":"conv","op":{"Conv":{"weight":"w1","bias":"b1","strides":[1,1],"pads":[1,1,1,1],"dilations":[1,1],"groups":1}},"inputs":["x"]},
    {"name":"pool","op":{"MaxPool":{"kernel":[2,2],"strides":[2,2],"pads":[0,0,0,0]}},"inputs":["conv"]},
    {"name":"relu","op":"Relu","inputs":["pool"]},
    {"name":"left","op":{"Conv":{"weight":"w2","bias":"b2","strides":[1,1],"pads":[1,1,1,1],"dilations":[1,1],"groups":1}},"inputs":["relu"]},
    {"name":"sum","op":"Add","inputs":["left","relu"]},
    {"name":"relu2","op":"Relu","inputs":["sum"]},
    {"name":"flat","op":"Flatten","inputs":["relu2"]},
    {"name":"fc1","op":{"MatMul":{"weight":"w3","bias":"b3"}},"inputs":["flat"]},
    {"name":"relu3","op":"Relu","inputs":["fc1"]},
    {"name":"fc2","op":{"MatMul":{"weight":"w4","bias":"b4"}},"inputs":["relu3"]}],"output":"fc2"}"#;
const SHAPES: [(&str, &[usize]); 8] = [
    ("w1", &[3, 1, 3, 3]),
    ("b1", &[3]),
    ("w2", &[3, 3, 3, 3]),
    ("b2", &[3]),
    ("w3", &[12, 6]),
    ("b3", &[6]),
    ("w4", &[6, 3]),
    ("b4", &[3]),
];

/// Calibrated on a part of what is accepted.
pub(crate) fn compiled(options: &QuantizationOptions) -> Network {
    // Faint samples, but for one element: most of what is accepted is far from them.
    let mut samples: Vec<f32> = (0..4 * 16).map(|index| 0.05 * value(index, 7).abs()).collect();
    samples[5] = 1.0;
    let network = compile(&Graph::from_json(JSON).unwrap(), &tensors(&SHAPES), &samples, options).unwrap();
    assert_eq!(network.unproved().count(), 0);
    network
}

/// Inputs at corners of what is accepted.
pub(crate) fn corners(network: &Network) -> Vec<Vec<i64>> {
    let high = network.public().input().high;
    let corner = |number: usize| -> Vec<i64> {
        (0..16).map(|element| if (number >> (element % 4)) & 1 == 1 { high } else { 0 }).collect()
    };
    (1..16).map(corner).collect()
}

fn check(mode: Mode, options: &QuantizationOptions) {
    let network = compiled(options);
    let executor = FixedExecutor::new(&network).unwrap();
    let plan = plan(network.public(), Policy::Logits, mode).unwrap();
    let truths = corners(&network).into_iter().map(|input| {
        let truth = executor.run(&input).unwrap();
        (input, truth)
    });
    let mut saturated: Vec<_> = truths.filter(|(_, truth)| truth.saturated_count() > 0).collect();
    saturated.sort_by_key(|(_, truth)| std::cmp::Reverse(truth.saturated_count()));
    assert!(!saturated.is_empty());
    for (input, truth) in saturated.into_iter().take(2) {
        assert_eq!(truth.overflow_count(), 0);
        let (_, outcome, _) = session(&network, &plan, &input, |channel| channel);
        assert_eq!(outcome, Outcome::Logits(truth.output), "{mode:?}");
    }
}

#[test]
fn saturated_results_over_primes_are_the_references() {
    for mode in [Mode::Gazelle, Mode::Falcon] {
        check(mode, &QuantizationOptions::default());
    }
}

#[test]
fn saturated_results_over_powers_of_two_are_the_references() {
    let options = QuantizationOptions { saturates: true, ..QuantizationOptions::powers_of_two() };
    check(Mode::Cheetah(Rounding::Exact), &options);
    check(Mode::Tabula(tabula::Rounding::Exact), &QuantizationOptions { narrow: true, ..options });
}
