//! Networks with sums whose client is checked as a whole: every output integer as computed in the clear, and what is predicted is what is sent.

use lanner_hardened::Item;
use lanner_network::{FixedExecutor, Network, Policy};
use lanner_plan::{Mode, Plan, PlanError, check_sums, plan};
use lanner_protocol::Protocol;
use lanner_quantize::QuantizationOptions;
use lanner_session::executor::ServedModel;
use lanner_step::{Function, Outcome};

use crate::common::{Digested, network, session};
use crate::hardened::options;

/// A graph, its weights, and elements of its input.
type Example = (&'static str, &'static [(&'static str, &'static [usize])], usize);

/// Blocks as a residual network has them: one adds what it reads, one halves the image by a layer, one by leaving out pixels and adding channels of zeros.
const BLOCKS: Example = (
    r#"{"format_version":2,"inputs":[{"name":"x","shape":[1,8,8]}],"nodes":[
    {"name":"stem","op":{"Conv":{"weight":"w0","bias":"b0","strides":[1,1],"pads":[1,1,1,1],"dilations":[1,1],"groups":1}},"inputs":["x"]},
    {"name":"relu0","op":"Relu","inputs":["stem"]},
    {"name":"conv1","op":{"Conv":{"weight":"w1","bias":"b0","strides":[1,1],"pads":[1,1,1,1],"dilations":[1,1],"groups":1}},"inputs":["relu0"]},
    {"name":"relu1","op":"Relu","inputs":["conv1"]},
    {"name":"conv2","op":{"Conv":{"weight":"w2","bias":null,"strides":[1,1],"pads":[1,1,1,1],"dilations":[1,1],"groups":1}},"inputs":["relu1"]},
    {"name":"sum2","op":"Add","inputs":["conv2","relu0"]},
    {"name":"relu2","op":"Relu","inputs":["sum2"]},
    {"name":"short","op":{"Conv":{"weight":"w3","bias":null,"strides":[2,2],"pads":[0,0,0,0],"dilations":[1,1],"groups":1}},"inputs":["relu2"]},
    {"name":"conv3","op":{"Conv":{"weight":"w4","bias":null,"strides":[2,2],"pads":[1,1,1,1],"dilations":[1,1],"groups":1}},"inputs":["relu2"]},
    {"name":"relu3","op":"Relu","inputs":["conv3"]},
    {"name":"conv4","op":{"Conv":{"weight":"w5","bias":null,"strides":[1,1],"pads":[1,1,1,1],"dilations":[1,1],"groups":1}},"inputs":["relu3"]},
    {"name":"sum4","op":"Add","inputs":["short","conv4"]},
    {"name":"relu4","op":"Relu","inputs":["sum4"]},
    {"name":"half","op":{"Slice":{"starts":[0,0,0],"sizes":[4,2,2],"steps":[1,2,2]}},"inputs":["relu4"]},
    {"name":"more","op":{"Pad":{"before":[1,0,0],"after":[1,0,0]}},"inputs":["half"]},
    {"name":"conv5","op":{"Conv":{"weight":"w6","bias":null,"strides":[2,2],"pads":[1,1,1,1],"dilations":[1,1],"groups":1}},"inputs":["relu4"]},
    {"name":"sum5","op":"Add","inputs":["conv5","more"]},
    {"name":"relu5","op":"Relu","inputs":["sum5"]},
    {"name":"mean","op":"GlobalAveragePool","inputs":["relu5"]},
    {"name":"flat","op":"Flatten","inputs":["mean"]},
    {"name":"fc","op":{"MatMul":{"weight":"w7","bias":"b7"}},"inputs":["flat"]}],"output":"fc"}"#,
    &[
        ("w0", &[3, 1, 3, 3]),
        ("b0", &[3]),
        ("w1", &[3, 3, 3, 3]),
        ("w2", &[3, 3, 3, 3]),
        ("w3", &[4, 3, 1, 1]),
        ("w4", &[4, 3, 3, 3]),
        ("w5", &[4, 4, 3, 3]),
        ("w6", &[6, 4, 3, 3]),
        ("w7", &[6, 5]),
        ("b7", &[5]),
    ],
    64,
);

/// Sums of sums, whose circuits are not behind them: each is read as it is by the next, and by an activation. The result is a sum, too.
const NESTED: Example = (
    r#"{"format_version":2,"inputs":[{"name":"x","shape":[8]}],"nodes":[
    {"name":"fc0","op":{"MatMul":{"weight":"w0","bias":"b0"}},"inputs":["x"]},
    {"name":"relu0","op":"Relu","inputs":["fc0"]},
    {"name":"fc1","op":{"MatMul":{"weight":"w1","bias":null}},"inputs":["relu0"]},
    {"name":"sum1","op":"Add","inputs":["fc0","fc1"]},
    {"name":"relu1","op":"Relu","inputs":["sum1"]},
    {"name":"fc2","op":{"MatMul":{"weight":"w2","bias":null}},"inputs":["relu1"]},
    {"name":"sum2","op":"Add","inputs":["fc2","sum1"]},
    {"name":"relu2","op":"Relu","inputs":["sum2"]},
    {"name":"fc3","op":{"MatMul":{"weight":"w3","bias":null}},"inputs":["relu2"]},
    {"name":"sum3","op":"Add","inputs":["fc3","relu2"]}],"output":"sum3"}"#,
    &[("w0", &[8, 6]), ("b0", &[6]), ("w1", &[6, 6]), ("w2", &[6, 6]), ("w3", &[6, 6])],
    8,
);

/// A sum with the input, two activations' sum that a layer reads, and another whose window maxima are taken.
const INPUT: Example = (
    r#"{"format_version":2,"inputs":[{"name":"x","shape":[1,4,4]}],"nodes":[
    {"name":"conv1","op":{"Conv":{"weight":"w1","bias":"b1","strides":[1,1],"pads":[1,1,1,1],"dilations":[1,1],"groups":1}},"inputs":["x"]},
    {"name":"sum1","op":"Add","inputs":["conv1","x"]},
    {"name":"relu1","op":"Relu","inputs":["sum1"]},
    {"name":"conv2","op":{"Conv":{"weight":"w2","bias":null,"strides":[1,1],"pads":[1,1,1,1],"dilations":[1,1],"groups":1}},"inputs":["relu1"]},
    {"name":"relu2","op":"Relu","inputs":["conv2"]},
    {"name":"sum2","op":"Add","inputs":["relu1","relu2"]},
    {"name":"conv3","op":{"Conv":{"weight":"w3","bias":null,"strides":[1,1],"pads":[1,1,1,1],"dilations":[1,1],"groups":1}},"inputs":["sum2"]},
    {"name":"sum3","op":"Add","inputs":["conv3","sum2"]},
    {"name":"relu3","op":"Relu","inputs":["sum3"]},
    {"name":"pool","op":{"MaxPool":{"kernel":[2,2],"strides":[2,2],"pads":[0,0,0,0]}},"inputs":["relu3"]},
    {"name":"flat","op":"Flatten","inputs":["pool"]},
    {"name":"fc","op":{"MatMul":{"weight":"w4","bias":null}},"inputs":["flat"]}],"output":"fc"}"#,
    &[("w1", &[1, 1, 3, 3]), ("b1", &[1]), ("w2", &[1, 1, 3, 3]), ("w3", &[1, 1, 3, 3]), ("w4", &[4, 3])],
    16,
);

/// Pools of a layer's outputs and of a sum, in front of an activation and of a layer; joined and turned values that layers read.
const MOVED: Example = (
    r#"{"format_version":2,"inputs":[{"name":"x","shape":[2,4,4]}],"nodes":[
    {"name":"conv1","op":{"Conv":{"weight":"w1","bias":null,"strides":[1,1],"pads":[1,1,1,1],"dilations":[1,1],"groups":1}},"inputs":["x"]},
    {"name":"mean1","op":{"AveragePool":{"kernel":[2,2],"strides":[1,1],"pads":[0,0,1,1],"count_include_pad":true}},"inputs":["conv1"]},
    {"name":"relu1","op":"Relu","inputs":["mean1"]},
    {"name":"half","op":{"Slice":{"starts":[0,0,0],"sizes":[3,2,2],"steps":[1,2,2]}},"inputs":["relu1"]},
    {"name":"conv2","op":{"Conv":{"weight":"w2","bias":null,"strides":[2,2],"pads":[0,0,1,1],"dilations":[1,1],"groups":1}},"inputs":["relu1"]},
    {"name":"sum2","op":"Add","inputs":["conv2","half"]},
    {"name":"mean2","op":{"AveragePool":{"kernel":[2,1],"strides":[1,1],"pads":[0,0,0,0],"count_include_pad":false}},"inputs":["sum2"]},
    {"name":"relu2","op":"Relu","inputs":["mean2"]},
    {"name":"row","op":{"Slice":{"starts":[0,1,0],"sizes":[3,1,2],"steps":[1,1,1]}},"inputs":["half"]},
    {"name":"join","op":{"Concat":{"axis":0}},"inputs":["row","relu2"]},
    {"name":"turn","op":{"Transpose":{"axes":[1,2,0]}},"inputs":["join"]},
    {"name":"flat","op":"Flatten","inputs":["turn"]},
    {"name":"fc","op":{"MatMul":{"weight":"w3","bias":null}},"inputs":["flat"]}],"output":"fc"}"#,
    &[("w1", &[3, 2, 3, 3]), ("w2", &[3, 3, 3, 3]), ("w3", &[12, 5])],
    32,
);

/// Layers that read a layer, a sum of layers, and window sums of it, with nothing between; the sum is added behind as well.
const OPEN: Example = (
    r#"{"format_version":2,"inputs":[{"name":"x","shape":[1,4,4]}],"nodes":[
    {"name":"conv0","op":{"Conv":{"weight":"w0","bias":"b0","strides":[1,1],"pads":[1,1,1,1],"dilations":[1,1],"groups":1}},"inputs":["x"]},
    {"name":"conv1","op":{"Conv":{"weight":"w1","bias":null,"strides":[1,1],"pads":[1,1,1,1],"dilations":[1,1],"groups":1}},"inputs":["conv0"]},
    {"name":"sum1","op":"Add","inputs":["conv0","conv1"]},
    {"name":"conv2","op":{"Conv":{"weight":"w2","bias":null,"strides":[1,1],"pads":[1,1,1,1],"dilations":[1,1],"groups":1}},"inputs":["sum1"]},
    {"name":"sum2","op":"Add","inputs":["conv2","sum1"]},
    {"name":"mean","op":{"AveragePool":{"kernel":[2,2],"strides":[2,2],"pads":[0,0,0,0],"count_include_pad":false}},"inputs":["sum2"]},
    {"name":"flat","op":"Flatten","inputs":["mean"]},
    {"name":"fc","op":{"MatMul":{"weight":"w3","bias":null}},"inputs":["flat"]}],"output":"fc"}"#,
    &[("w0", &[2, 1, 3, 3]), ("b0", &[2]), ("w1", &[2, 2, 3, 3]), ("w2", &[2, 2, 3, 3]), ("w3", &[8, 3])],
    16,
);

/// It ends with an activation, of which each class is told.
const ENDING: Example = (
    r#"{"format_version":2,"inputs":[{"name":"x","shape":[8]}],"nodes":[
    {"name":"fc1","op":{"MatMul":{"weight":"w1","bias":null}},"inputs":["x"]},
    {"name":"relu1","op":"Relu","inputs":["fc1"]},
    {"name":"fc2","op":{"MatMul":{"weight":"w2","bias":null}},"inputs":["relu1"]},
    {"name":"relu2","op":"Relu","inputs":["fc2"]}],"output":"relu2"}"#,
    &[("w1", &[8, 8]), ("w2", &[8, 3])],
    8,
);

fn example((json, shapes, input): Example) -> (Network, Vec<Vec<f32>>) {
    network(json, shapes, input, &options())
}

/// Plans a network, runs a prediction, and compares its result with the reference, and what was sent with what is predicted.
fn checked(of: Example, policy: Policy) -> Plan {
    let (network, samples) = example(of);
    checked_network(&network, &samples, policy)
}

fn checked_network(network: &Network, samples: &[Vec<f32>], policy: Policy) -> Plan {
    let plan = plan(network.public(), policy, Mode::Hardened).unwrap();
    check_sums(network, &plan).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&serde_json::to_string(&plan).unwrap()).unwrap(), plan);
    let input = network.public().input().quantize(&samples[1]).unwrap();
    let truth = FixedExecutor::new(network).unwrap().run(&input).unwrap();
    assert_eq!(truth.overflow_count(), 0);
    let (_, outcome, costs) = session(network, &plan, &input, |channel| channel);
    let largest = (0..truth.output.len()).rev().max_by_key(|class| truth.output[*class]).unwrap();
    let expected =
        if policy == Policy::Label { Outcome::Label(largest) } else { Outcome::Logits(truth.output) };
    assert_eq!(outcome, expected);
    let cost = plan.build().unwrap().cost().unwrap();
    let predicted = std::iter::once(&cost.setup).chain(&cost.offline).chain(&cost.online);
    let predicted = predicted.map(|cost| (cost.client_bytes(), cost.server_bytes(), cost.rounds()));
    let sent = costs.iter().map(|step| (step.traffic.sent, step.traffic.received, step.traffic.rounds));
    assert_eq!(sent.collect::<Vec<_>>(), predicted.collect::<Vec<_>>());
    plan
}

#[test]
fn residual_blocks_have_the_reference_s_scores_for_what_is_predicted() {
    let plan = serde_json::to_string(&checked(BLOCKS, Policy::Logits)).unwrap();
    for node in ["sum2", "sum4", "sum5", "half", "more"] {
        assert!(plan.contains(&format!("\"node\":\"{node}\"")), "{node}: {plan}");
    }
}

#[test]
fn sums_of_sums_and_a_sum_in_the_end_have_the_reference_s_scores() {
    checked(NESTED, Policy::Logits);
}

#[test]
fn a_label_is_told_of_a_sum() {
    checked(NESTED, Policy::Label);
}

#[test]
fn sums_with_the_input_and_of_activations_have_the_reference_s_label() {
    checked(INPUT, Policy::Label);
}

#[test]
fn pooled_joined_and_turned_values_have_the_reference_s_scores() {
    checked(MOVED, Policy::Logits);
}

#[test]
fn layers_that_read_layers_have_the_reference_s_scores() {
    let (json, shapes, input) = OPEN;
    let options = QuantizationOptions {
        rescales: false,
        saturates: false,
        squares_of_sums: false,
        activation_bits: 4,
        min_weight_bits: 2,
        max_weight_bits: 4,
        ..options()
    };
    let (network, samples) = network(json, shapes, input, &options);
    let plan = checked_network(&network, &samples, Policy::Logits);
    let Some(Protocol::Hardened(whole)) = plan.steps().map(|step| &step.protocol).next() else {
        panic!("{plan:?}")
    };
    let circuits = whole.network.layers.iter().filter_map(Item::activation);
    assert!(circuits.filter(|circuits| circuits.function == Function::IDENTITY).count() >= 3);
}

#[test]
fn activations_in_the_end_have_the_reference_s_values() {
    checked(ENDING, Policy::Logits);
}

#[test]
fn a_seeded_session_of_sums_sends_the_same_bytes_as_ever() {
    let (network, samples) = example(NESTED);
    let plan = plan(network.public(), Policy::Label, Mode::Hardened).unwrap();
    let input = network.public().input().quantize(&samples[0]).unwrap();
    assert_eq!(session(&network, &plan, &input, Digested::new).0.digests(), DIGESTS);
}

/// What both parties have sent since the wire format last changed on purpose.
const DIGESTS: &str = "50f03192fd80d1f0 3c3f6f055d64c6e9";

/// Not a layer's sums alone: what is added to them has to fit as well, whatever a layer beside it does.
#[test]
fn sums_of_values_keep_away_from_the_ends_of_the_ring() {
    let (json, shapes, input) = NESTED;
    let loose = QuantizationOptions { proves: false, saturates: false, ..options() };
    let (loose, _) = network(json, shapes, input, &loose);
    let planned = plan(loose.public(), Policy::Label, Mode::Hardened).unwrap();
    assert!(matches!(check_sums(&loose, &planned), Ok(())) == ServedModel::new(&loose, &planned).is_ok());
    // A plan of a sum that names no node is not served.
    let (network, _) = example(NESTED);
    let json =
        serde_json::to_string(&plan(network.public(), Policy::Label, Mode::Hardened).unwrap()).unwrap();
    let other = serde_json::from_str(&json.replace("\"node\":\"sum2\"", "\"node\":\"sum9\"")).unwrap();
    assert!(matches!(check_sums(&network, &other), Err(PlanError::Design { node }) if node == "sum9"));
    assert!(ServedModel::new(&network, &other).is_err());
}
