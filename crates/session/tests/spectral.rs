//! Networks of sums and products on ciphertexts: every output integer as computed in the clear, what is predicted is what is sent, and a prediction is
//! one request and one response.
#![allow(clippy::unwrap_used)]

mod common;

use lanner_graph::{FixedExecutor, Network, Policy, QuantizationOptions};
use lanner_plan::{Mode, Plan, PlanError, plan};
use lanner_protocol::step::Outcome;
use lanner_session::executor::Phase;

use common::{network, session};

const JSON: &str = r#"{"format_version":2,"inputs":[{"name":"x","shape":[1,12,12]}],"nodes":[
    {"name":"conv","op":{"Conv":{"weight":"w1","bias":"b1","strides":[2,2],"pads":[1,1,0,0],"dilations":[1,1],"groups":1}},"inputs":["x"]},
    {"name":"square1","op":"Square","inputs":["conv"]},
    {"name":"flat","op":"Flatten","inputs":["square1"]},
    {"name":"fc1","op":{"MatMul":{"weight":"w2","bias":"b2"}},"inputs":["flat"]},
    {"name":"square2","op":"Square","inputs":["fc1"]},
    {"name":"fc2","op":{"MatMul":{"weight":"w3","bias":"b3"}},"inputs":["square2"]}],"output":"fc2"}"#;
const SHAPES: [(&str, &[usize]); 6] =
    [("w1", &[3, 1, 5, 5]), ("b1", &[3]), ("w2", &[75, 12]), ("b2", &[12]), ("w3", &[12, 5]), ("b3", &[5])];

/// The network with so many bits for activations and weights.
fn squares(bits: u32) -> (Network, Vec<Vec<f32>>) {
    let options = QuantizationOptions {
        activation_bits: bits,
        min_weight_bits: bits,
        max_weight_bits: bits,
        ..QuantizationOptions::without_rescales()
    };
    network(JSON, &SHAPES, 144, &options)
}

fn planned(network: &Network) -> Plan {
    plan(network.public(), Policy::Logits, Mode::Spectral).unwrap()
}

#[test]
fn a_network_is_computed_on_ciphertexts() {
    for bits in [4, 7] {
        let (network, samples) = squares(bits);
        let plan = planned(&network);
        let executor = FixedExecutor::new(&network).unwrap();
        for sample in &samples[..2] {
            let input = network.public().input().quantize(sample).unwrap();
            let truth = executor.run(&input).unwrap();
            assert_eq!(truth.overflow_count(), 0);
            let (_, outcome, costs) = session(&network, &plan, &input, |channel| channel);
            assert_eq!(outcome, Outcome::Logits(truth.output), "{bits} bits");
            let cost = plan.build().unwrap().cost().unwrap();
            let predicted = std::iter::once(&cost.setup).chain(&cost.offline).chain(&cost.online);
            let predicted = predicted.map(|cost| (cost.client_bytes(), cost.server_bytes(), cost.rounds()));
            let sent =
                costs.iter().map(|step| (step.traffic.sent, step.traffic.received, step.traffic.rounds));
            assert_eq!(sent.collect::<Vec<_>>(), predicted.collect::<Vec<_>>());
            let rounds = |phase| {
                costs.iter().filter(|step| step.phase == phase).map(|step| step.traffic.rounds).sum::<u64>()
            };
            assert_eq!((rounds(Phase::Offline), rounds(Phase::Online)), (0, 1));
        }
    }
}

#[test]
fn what_the_mode_does_not_compute_is_said() {
    let (network, _) = squares(5);
    for policy in [Policy::Label, Policy::TopK { k: 2 }, Policy::Probability { digits: 2 }] {
        let error = plan(network.public(), policy, Mode::Spectral).unwrap_err();
        assert!(matches!(error, PlanError::Policy { .. }), "{error}");
        assert!(error.fix().contains("logits"), "{}", error.fix());
    }
}

/// A layer alone, and squares of its sums.
#[test]
fn networks_of_one_layer_are_computed() {
    for behind in ["", r#",{"name":"square","op":"Square","inputs":["fc"]}"#] {
        let output = if behind.is_empty() { "fc" } else { "square" };
        let json = format!(
            r#"{{"format_version":2,"inputs":[{{"name":"x","shape":[20]}}],"nodes":[
            {{"name":"fc","op":{{"MatMul":{{"weight":"w1","bias":"b1"}}}},"inputs":["x"]}}{behind}],"output":"{output}"}}"#
        );
        let options = QuantizationOptions::without_rescales();
        let (network, samples) = network(&json, &[("w1", &[20, 3]), ("b1", &[3])], 20, &options);
        let input = network.public().input().quantize(&samples[0]).unwrap();
        let truth = FixedExecutor::new(&network).unwrap().run(&input).unwrap();
        let (_, outcome, _) = session(&network, &planned(&network), &input, |channel| channel);
        assert_eq!(outcome, Outcome::Logits(truth.output), "{output}");
    }
}
