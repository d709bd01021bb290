//! Plans whose nodes follow several designs: results equal the reference, whichever design each node follows.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::common::{network, session};
use lanner_network::{FixedExecutor, Network, Policy};
use lanner_plan::{
    Choices, Designs, Kernels, Limits, Link, Mode, NodeDesign, Objective, PlanError, Prices, Samples, choose,
    plan_within,
};
use lanner_quantize::QuantizationOptions;
use lanner_session::executor::Outcome;

/// A pool in front of a rescale, a sum of two layers, a slope below zero, a bound, and a function.
const JSON: &str = r#"{"format_version":2,"inputs":[{"name":"x","shape":[1,4,4]}],"nodes":[
    {"name":"conv","op":{"Conv":{"weight":"w1","bias":"b1","strides":[1,1],"pads":[1,1,1,1],"dilations":[1,1],"groups":1}},"inputs":["x"]},
    {"name":"pool","op":{"MaxPool":{"kernel":[2,2],"strides":[2,2],"pads":[0,0,0,0]}},"inputs":["conv"]},
    {"name":"relu","op":"Relu","inputs":["pool"]},
    {"name":"left","op":{"Conv":{"weight":"w2","bias":"b2","strides":[1,1],"pads":[1,1,1,1],"dilations":[1,1],"groups":1}},"inputs":["relu"]},
    {"name":"sum","op":"Add","inputs":["left","relu"]},
    {"name":"relu2","op":"Relu","inputs":["sum"]},
    {"name":"flat","op":"Flatten","inputs":["relu2"]},
    {"name":"fc1","op":{"MatMul":{"weight":"w3","bias":"b3"}},"inputs":["flat"]},
    {"name":"leaky","op":{"LeakyRelu":{"alpha":0.1}},"inputs":["fc1"]},
    {"name":"fc2","op":{"MatMul":{"weight":"w4","bias":"b4"}},"inputs":["leaky"]},
    {"name":"relu3","op":"Relu","inputs":["fc2"]},
    {"name":"clip","op":{"Clip":{"min":0.0,"max":0.25}},"inputs":["relu3"]},
    {"name":"fc3","op":{"MatMul":{"weight":"w5","bias":"b5"}},"inputs":["clip"]}],"output":"fc3"}"#;
const SHAPES: [(&str, &[usize]); 10] = [
    ("w1", &[3, 1, 3, 3]),
    ("b1", &[3]),
    ("w2", &[3, 3, 3, 3]),
    ("b2", &[3]),
    ("w3", &[12, 6]),
    ("b3", &[6]),
    ("w4", &[6, 5]),
    ("b4", &[5]),
    ("w5", &[5, 3]),
    ("b5", &[3]),
];

/// The network in wide rings, and with lookups in rings of their own.
fn networks() -> [(Network, Vec<Vec<f32>>); 2] {
    let narrow =
        QuantizationOptions { narrow: true, kept_bits: Some(7), ..QuantizationOptions::powers_of_two() };
    [QuantizationOptions::powers_of_two(), narrow].map(|options| network(JSON, &SHAPES, 16, &options))
}

fn choices(designs: Designs) -> Choices {
    Choices { designs, ..Mode::Auto.into() }
}

/// For each node one of the designs, by a number that says which.
fn drawn(network: &Network, seed: usize) -> Designs {
    let of = [Some(NodeDesign::Gazelle), Some(NodeDesign::Tabula), None];
    let design = |(index, name): (usize, &str)| {
        let mixed = (seed + 1).wrapping_mul(2_654_435_761).wrapping_add(index * 40_503) >> 7;
        of[mixed % 3].map(|design| (name.to_owned(), design))
    };
    let names = network.public().nodes().iter().map(|node| node.name.as_str()).chain(["output"]);
    names.enumerate().filter_map(design).collect()
}

/// Runs the networks with each of these draws of designs.
fn check_draws(seeds: Range<usize>) {
    let mut protocols = BTreeSet::new();
    for (network, samples) in networks() {
        let executor = FixedExecutor::new(&network).unwrap();
        for seed in seeds.clone() {
            let choices = choices(drawn(&network, seed));
            let plan = plan_within(network.public(), Policy::Logits, &choices, &Limits::default()).unwrap();
            protocols.extend(plan.steps().map(|step| step.protocol.name()));
            let input = network.public().input().quantize(&samples[seed % 8]).unwrap();
            let (_, outcome, _) = session(&network, &plan, &input, |channel| channel);
            let truth = executor.run(&input).unwrap();
            assert_eq!(truth.overflow_count(), 0);
            assert_eq!(outcome, Outcome::Logits(truth.output), "{choices:?}");
        }
    }
    for name in ["cheetah.conv", "delphi.conv", "ot.activation", "tabula.lookup", "yao.activation"] {
        assert!(protocols.contains(name), "{name} is not among {protocols:?}");
    }
}

#[test]
fn results_are_the_references_whichever_design_a_node_follows() {
    check_draws(0..4);
}

#[test]
#[ignore = "a minute of the same with other draws"]
fn results_are_the_references_whichever_design_a_node_follows_in_many_draws() {
    check_draws(4..24);
}

#[test]
fn the_result_may_be_told_by_either_design() {
    let (network, samples) = &networks()[0];
    let policy = Policy::Probability { digits: 2 };
    let input = network.public().input().quantize(&samples[0]).unwrap();
    let mut outcomes = Vec::new();
    for designs in [Designs::new(), Designs::from([("output".to_owned(), NodeDesign::Gazelle)])] {
        let plan = plan_within(network.public(), policy, &choices(designs), &Limits::default()).unwrap();
        outcomes.push(session(network, &plan, &input, |channel| channel).1);
    }
    assert_eq!(outcomes[0], outcomes[1]);
}

#[test]
fn designs_of_nothing_are_refused() {
    let (network, _) = &networks()[0];
    let named = |name: &str, design| Designs::from([(name.to_owned(), design)]);
    let relu = &network.public().nodes()[2].name;
    let refused = |mode: Mode, designs| {
        let choices = Choices { designs, ..mode.into() };
        let planned = plan_within(network.public(), Policy::Logits, &choices, &Limits::default());
        matches!(planned, Err(PlanError::Design { .. }))
    };
    assert!(!refused(Mode::Auto, named(relu, NodeDesign::Gazelle)));
    assert!(refused(Mode::Auto, named("another", NodeDesign::Gazelle)));
    // What goes without saying is not said, so that there is one document for a plan.
    assert!(refused(Mode::Auto, named(relu, NodeDesign::Cheetah)));
    assert!(refused(Mode::Gazelle, named(relu, NodeDesign::Gazelle)));
}

#[test]
fn a_choice_is_worth_as_much_as_the_best_of_one_design() {
    let links = [(0.0, 0.0), (8e-9, 6e-4), (8e-8, 4e-2), (8e-8, 2.0)];
    let (mut mixed, mut modes) = (0, BTreeSet::new());
    for (network, _) in networks() {
        let public = network.public();
        for (seconds_per_byte, round_trip_seconds) in links {
            for objective in [Objective::Latency, Objective::Online, Objective::Bytes, Objective::Memory] {
                let link = Link { seconds_per_byte, round_trip_seconds };
                let prices = Prices { kernels: Kernels::shipped(), link, objective };
                let policy = Policy::Probability { digits: 2 };
                let (plan, estimate) =
                    choose(public, policy, Samples::ONE, &Limits::default(), &prices).unwrap();
                let again = plan_within(public, policy, &plan.choices(), &Limits::default()).unwrap();
                assert_eq!(again, plan);
                for mode in [
                    Mode::Cheetah(lanner_transfers::Rounding::Exact),
                    Mode::Tabula(lanner_tabula::Rounding::Exact),
                ] {
                    let single = plan_within(public, policy, &mode.into(), &Limits::default()).unwrap();
                    let single = single.build().unwrap().estimate(&prices.kernels, link).unwrap();
                    assert!(objective.price(&estimate)[0] <= objective.price(&single)[0]);
                }
                mixed += usize::from(plan.mode == Mode::Auto);
                modes.insert(plan.mode.name());
            }
        }
    }
    assert!(mixed > 0, "{modes:?}");
}
