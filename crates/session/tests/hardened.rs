//! Networks whose client is checked as a whole: every output integer as computed in the clear, what is predicted is what is sent, and what is refused.

use lanner_network::{Accumulator, FixedExecutor, Network, Policy};
use lanner_plan::{
    Choices, Kernels, Limits, Link, Mode, Plan, PlanError, Samples, check_sums, plan, plan_within,
};
use lanner_quantize::QuantizationOptions;
use lanner_session::executor::ServedModel;
use lanner_step::Outcome;
use lanner_yao::softmax::likeliest;

use crate::common::{network, session};

const JSON: &str = r#"{"format_version":2,"inputs":[{"name":"x","shape":[1,10,10]}],"nodes":[
    {"name":"conv","op":{"Conv":{"weight":"w1","bias":"b1","strides":[1,1],"pads":[1,1,1,1],"dilations":[1,1],"groups":1}},"inputs":["x"]},
    {"name":"relu1","op":"Relu","inputs":["conv"]},
    {"name":"pool","op":{"MaxPool":{"kernel":[2,2],"strides":[2,2],"pads":[0,0,0,0]}},"inputs":["relu1"]},
    {"name":"mean","op":{"AveragePool":{"kernel":[2,2],"strides":[1,1],"pads":[0,0,0,0],"count_include_pad":false}},"inputs":["pool"]},
    {"name":"flat","op":"Flatten","inputs":["mean"]},
    {"name":"fc1","op":{"MatMul":{"weight":"w2","bias":"b2"}},"inputs":["flat"]},
    {"name":"relu2","op":"Relu","inputs":["fc1"]},
    {"name":"fc2","op":{"MatMul":{"weight":"w3","bias":"b3"}},"inputs":["relu2"]}],"output":"fc2"}"#;
const SHAPES: [(&str, &[usize]); 6] =
    [("w1", &[3, 1, 3, 3]), ("b1", &[3]), ("w2", &[48, 12]), ("b2", &[12]), ("w3", &[12, 5]), ("b3", &[5])];

/// Values from 0 to 255 are accepted.
pub(crate) fn options() -> QuantizationOptions {
    QuantizationOptions { input_range: Some([0.0, 1.0]), ..QuantizationOptions::one_prime() }
}

fn digits() -> (Network, Vec<Vec<f32>>) {
    network(JSON, &SHAPES, 100, &options())
}

fn planned(network: &Network, policy: Policy) -> Plan {
    plan(network.public(), policy, Mode::Hardened).unwrap()
}

#[test]
fn a_network_has_the_reference_s_result_for_what_is_predicted() {
    let (network, samples) = digits();
    let executor = FixedExecutor::new(&network).unwrap();
    let policies = [Policy::Label, Policy::Logits, Policy::TopK { k: 2 }, Policy::Probability { digits: 3 }];
    for (policy, sample) in policies.into_iter().zip(&samples) {
        let plan = planned(&network, policy);
        assert_eq!(serde_json::from_str::<Plan>(&serde_json::to_string(&plan).unwrap()).unwrap(), plan);
        let input = network.public().input().quantize(sample).unwrap();
        let truth = executor.run(&input).unwrap();
        assert_eq!(truth.overflow_count(), 0);
        let (_, outcome, costs) = session(&network, &plan, &input, |channel| channel);
        let mut best: Vec<usize> = (0..5).collect();
        best.sort_by_key(|class| std::cmp::Reverse(truth.output[*class]));
        let expected = match policy {
            Policy::Label => Outcome::Label(best[0]),
            Policy::Logits => Outcome::Logits(truth.output),
            Policy::Probability { digits } => {
                let scale = network.output_scale();
                let bits = network.public().nodes().last().unwrap().accumulator.bits();
                Outcome::Probability(likeliest(&truth.output, digits, scale, bits).unwrap())
            }
            _ => Outcome::TopK(best[..2].to_vec()),
        };
        assert_eq!(outcome, expected);
        let cost = plan.build().unwrap().cost().unwrap();
        let predicted = std::iter::once(&cost.setup).chain(&cost.offline).chain(&cost.online);
        let predicted = predicted.map(|cost| (cost.client_bytes(), cost.server_bytes(), cost.rounds()));
        let sent = costs.iter().map(|step| (step.traffic.sent, step.traffic.received, step.traffic.rounds));
        assert_eq!(sent.collect::<Vec<_>>(), predicted.collect::<Vec<_>>());
    }
}

#[test]
fn the_table_of_the_package_has_times_of_it() {
    let (network, _) = digits();
    let built = planned(&network, Policy::Label).build().unwrap();
    let estimate = built.estimate(&Kernels::shipped(), Link::LOOPBACK).unwrap();
    assert!(estimate.steps.iter().all(|step| step.is_timed));
    // The key's proof and 128 checks take a tenth of a second whatever the network is.
    assert!((0.1..1.0).contains(&estimate.offline().seconds), "{:?}", estimate.offline());
    assert!((1e-3..0.1).contains(&estimate.online().seconds), "{:?}", estimate.online());
}

#[test]
fn what_the_mode_does_not_take_is_refused() {
    let (network, _) = digits();
    let refused = |policy, samples| {
        let choices = Choices { samples, ..Mode::Hardened.into() };
        plan_within(network.public(), policy, &choices, &Limits::default()).unwrap_err()
    };
    let two = Samples::try_from(2).unwrap();
    assert!(matches!(refused(Policy::Label, two), PlanError::Samples { .. }));

    // Products of values.
    let (json, shapes, input, node) = SQUARES;
    let (squares, _) = crate::common::network(json, shapes, input, &options());
    let error = plan(squares.public(), Policy::Logits, Mode::Hardened).unwrap_err();
    assert!(matches!(&error, PlanError::Unsupported { node: at, .. } if at == node), "{error}");

    // Rings of another kind, and inputs of as many integers as are no power of two.
    let said = |options: &QuantizationOptions| {
        let (network, _) = crate::common::network(JSON, &SHAPES, 100, options);
        plan(network.public(), Policy::Label, Mode::Hardened).unwrap_err().to_string()
    };
    let odd = QuantizationOptions { commits: false, activation_bits: 7, input_range: None, ..options() };
    assert!(said(&odd).contains("power of two"), "{}", said(&odd));
    assert!(said(&QuantizationOptions::powers_of_two()).contains("prime"));
}

/// What a network is that is refused: its graph, its weights, elements of its input, and the node that is named.
type Refused = (&'static str, &'static [(&'static str, &'static [usize])], usize, &'static str);

const SQUARES: Refused = (
    r#"{"format_version":2,"inputs":[{"name":"x","shape":[8]}],"nodes":[
    {"name":"fc1","op":{"MatMul":{"weight":"w1","bias":null}},"inputs":["x"]},
    {"name":"square","op":"Square","inputs":["fc1"]},
    {"name":"fc2","op":{"MatMul":{"weight":"w2","bias":null}},"inputs":["square"]}],"output":"fc2"}"#,
    &[("w1", &[8, 8]), ("w2", &[8, 3])],
    8,
    "square",
);
/// Sums are proved, and servers look: where another limit held, values are beyond what circuits read alike.
#[test]
fn sums_keep_away_from_the_ends_of_the_ring() {
    let inputs = [None, Some([-0.3, 1.1]), Some([0.0, 1.0])];
    for input_range in inputs {
        let (network, _) = network(JSON, &SHAPES, 100, &QuantizationOptions { input_range, ..options() });
        let input = network.public().input();
        assert!((input.high.abs_diff(input.low) + 1).is_power_of_two(), "{input:?}");
        check_sums(&network, &planned(&network, Policy::Label)).unwrap();
    }
    let accumulators = Accumulator::PRIMES.into_iter().filter(|ring| ring.bits() == 20).collect();
    let loose = QuantizationOptions { accumulators, proves: false, saturates: false, ..options() };
    let (loose, _) = network(JSON, &SHAPES, 100, &loose);
    let plan = planned(&loose, Policy::Label);
    assert!(check_sums(&loose, &plan).unwrap_err().to_string().contains("proved"));
    assert!(ServedModel::new(&loose, &plan).is_err());
}

/// Two convolutions of sixteen channels with pools, and two fully connected layers, for digits of 28 by 28 pixels.
const DIGITS: &str = r#"{"format_version":2,"inputs":[{"name":"x","shape":[1,28,28]}],"nodes":[
    {"name":"conv1","op":{"Conv":{"weight":"w1","bias":"b1","strides":[1,1],"pads":[0,0,0,0],"dilations":[1,1],"groups":1}},"inputs":["x"]},
    {"name":"relu1","op":"Relu","inputs":["conv1"]},
    {"name":"pool1","op":{"MaxPool":{"kernel":[2,2],"strides":[2,2],"pads":[0,0,0,0]}},"inputs":["relu1"]},
    {"name":"conv2","op":{"Conv":{"weight":"w2","bias":"b2","strides":[1,1],"pads":[0,0,0,0],"dilations":[1,1],"groups":1}},"inputs":["pool1"]},
    {"name":"relu2","op":"Relu","inputs":["conv2"]},
    {"name":"pool2","op":{"MaxPool":{"kernel":[2,2],"strides":[2,2],"pads":[0,0,0,0]}},"inputs":["relu2"]},
    {"name":"flat","op":"Flatten","inputs":["pool2"]},
    {"name":"fc1","op":{"MatMul":{"weight":"w3","bias":"b3"}},"inputs":["flat"]},
    {"name":"relu3","op":"Relu","inputs":["fc1"]},
    {"name":"fc2","op":{"MatMul":{"weight":"w4","bias":"b4"}},"inputs":["relu3"]}],"output":"fc2"}"#;
const DIGITS_SHAPES: [(&str, &[usize]); 8] = [
    ("w1", &[16, 1, 5, 5]),
    ("b1", &[16]),
    ("w2", &[16, 16, 5, 5]),
    ("b2", &[16]),
    ("w3", &[256, 100]),
    ("b3", &[100]),
    ("w4", &[100, 10]),
    ("b4", &[10]),
];

#[test]
#[ignore = "takes ten seconds"]
fn digits_have_the_reference_s_label() {
    let (network, samples) = network(DIGITS, &DIGITS_SHAPES, 784, &options());
    let executor = FixedExecutor::new(&network).unwrap();
    let plan = planned(&network, Policy::Label);
    let cost = plan.build().unwrap().cost().unwrap();
    // Keys, checks and second halves, tables; then labels and first halves.
    let megabytes = [cost.offline_total(), cost.online_total()].map(|cost| cost.bytes() / 1_000_000);
    assert!(megabytes[0] < 60 && megabytes[1] < 20, "{megabytes:?}");
    let input = network.public().input().quantize(&samples[1]).unwrap();
    let truth = executor.run(&input).unwrap().output;
    let largest = (0..10).rev().max_by_key(|class| truth[*class]).unwrap();
    let (_, outcome, _) = session(&network, &plan, &input, |channel| channel);
    assert_eq!(outcome, Outcome::Label(largest));
}
