//! Networks of sums and products on ciphertexts: every output integer as computed in the clear, what is predicted is what is sent, and a prediction is
//! one request and one response.

use lanner_network::{FixedExecutor, Network, Policy};
use lanner_plan::{Choices, Limits, Mode, Plan, PlanError, Samples, plan, plan_within};
use lanner_protocol::Protocol;
use lanner_quantize::QuantizationOptions;
use lanner_session::executor::Phase;
use lanner_spectral::Layout;
use lanner_step::Outcome;

use crate::common::{network, session};

const JSON: &str = r#"{"format_version":2,"inputs":[{"name":"x","shape":[1,12,12]}],"nodes":[
    {"name":"conv","op":{"Conv":{"weight":"w1","bias":"b1","strides":[2,2],"pads":[1,1,0,0],"dilations":[1,1],"groups":1}},"inputs":["x"]},
    {"name":"square1","op":"Square","inputs":["conv"]},
    {"name":"flat","op":"Flatten","inputs":["square1"]},
    {"name":"fc1","op":{"MatMul":{"weight":"w2","bias":"b2"}},"inputs":["flat"]},
    {"name":"square2","op":"Square","inputs":["fc1"]},
    {"name":"fc2","op":{"MatMul":{"weight":"w3","bias":"b3"}},"inputs":["square2"]}],"output":"fc2"}"#;
const SHAPES: [(&str, &[usize]); 6] =
    [("w1", &[3, 1, 5, 5]), ("b1", &[3]), ("w2", &[75, 12]), ("b2", &[12]), ("w3", &[12, 5]), ("b3", &[5])];

/// Two convolutions.
const TWO_CONVOLUTIONS: &str = r#"{"format_version":2,"inputs":[{"name":"x","shape":[2,20,20]}],"nodes":[
    {"name":"conv1","op":{"Conv":{"weight":"w1","bias":"b1","strides":[1,1],"pads":[1,1,1,1],"dilations":[1,1],"groups":1}},"inputs":["x"]},
    {"name":"square1","op":"Square","inputs":["conv1"]},
    {"name":"conv2","op":{"Conv":{"weight":"w2","bias":"b2","strides":[2,2],"pads":[0,0,0,0],"dilations":[1,1],"groups":1}},"inputs":["square1"]},
    {"name":"square2","op":"Square","inputs":["conv2"]},
    {"name":"flat","op":"Flatten","inputs":["square2"]},
    {"name":"fc","op":{"MatMul":{"weight":"w3","bias":"b3"}},"inputs":["flat"]}],"output":"fc"}"#;
const TWO_SHAPES: [(&str, &[usize]); 6] = [
    ("w1", &[30, 2, 3, 3]),
    ("b1", &[30]),
    ("w2", &[20, 30, 4, 4]),
    ("b2", &[20]),
    ("w3", &[1620, 5]),
    ("b3", &[5]),
];

/// The network with so many bits for activations and weights.
fn squares(number: u32) -> (Network, Vec<Vec<f32>>) {
    network(JSON, &SHAPES, 144, &bits(number))
}

/// So many bits for activations and weights.
fn bits(number: u32) -> QuantizationOptions {
    QuantizationOptions {
        activation_bits: number,
        min_weight_bits: number,
        max_weight_bits: number,
        ..QuantizationOptions::without_rescales()
    }
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
        for sample in &samples[..1] {
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

/// Two convolutions, whose image lies position by position in between, in several ciphertexts.
#[test]
fn convolutions_behind_each_other_are_computed_on_grids() {
    let (network, samples) = network(TWO_CONVOLUTIONS, &TWO_SHAPES, 800, &bits(5));
    let plan = planned(&network);
    let layouts: Vec<_> = plan
        .steps()
        .filter_map(|step| match &step.protocol {
            Protocol::SpectralLinear(layer) => Some((layer.from().clone(), layer.to().clone())),
            _ => None,
        })
        .collect();
    assert!(matches!(
        &layouts[..],
        [(Layout::Taps(_), Layout::Grid(_)), (Layout::Grid(between), Layout::Grid(_)), _] if between.phases == [2, 2]
    ));
    let input = network.public().input().quantize(&samples[0]).unwrap();
    let truth = FixedExecutor::new(&network).unwrap().run(&input).unwrap();
    let (_, outcome, _) = session(&network, &plan, &input, |channel| channel);
    assert_eq!(outcome, Outcome::Logits(truth.output));
}

/// Samples side by side in one request, each with scores of its own; and places without a sample.
fn check_batches(json: &str, shapes: &[(&str, &[usize])], length: usize, count: usize) {
    let (network, drawn) = network(json, shapes, length, &bits(5));
    let executor = FixedExecutor::new(&network).unwrap();
    let limits = Limits::default();
    let samples = Samples::try_from(count).unwrap();
    let choices = Choices { samples, ..Mode::Spectral.into() };
    let plan = plan_within(network.public(), Policy::Logits, &choices, &limits).unwrap();
    let (mut inputs, mut truth) = (Vec::new(), Vec::new());
    for sample in drawn.iter().cycle().take(count - 1) {
        let input = network.public().input().quantize(sample).unwrap();
        truth.extend(executor.run(&input).unwrap().output);
        inputs.extend(input);
    }
    inputs.resize(count * length, 0);
    truth.extend(executor.run(&vec![0; length]).unwrap().output);
    let (_, outcome, _) = session(&network, &plan, &inputs, |channel| channel);
    assert_eq!(outcome, Outcome::Logits(truth), "{count} samples");
}

#[test]
fn samples_of_one_request_keep_apart() {
    check_batches(JSON, &SHAPES, 144, 2);
}

#[test]
#[ignore = "takes ten seconds"]
fn many_samples_of_one_request_keep_apart() {
    check_batches(JSON, &SHAPES, 144, 16);
    check_batches(TWO_CONVOLUTIONS, &TWO_SHAPES, 800, 2);
    check_batches(TWO_CONVOLUTIONS, &TWO_SHAPES, 800, 4);
}

#[test]
fn a_request_that_holds_no_so_many_samples_is_refused() {
    let (network, _) = squares(5);
    for (mode, count) in
        [(Mode::Spectral, 1 << 10), (Mode::Spectral, 1 << 40), (Mode::Gazelle, 128), (Mode::Falcon, 2)]
    {
        let samples = Samples::try_from(count).unwrap();
        let choices = Choices { samples, ..mode.into() };
        let error = plan_within(network.public(), Policy::Logits, &choices, &Limits::default());
        assert!(matches!(error.unwrap_err(), PlanError::Samples { .. }), "{count}");
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
