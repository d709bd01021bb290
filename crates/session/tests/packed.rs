//! Layers of many rows: answers are packed, and the guard of what is subtracted is dropped right behind. What both parties compute equals the reference.

use lanner_network::{Network, Policy};
use lanner_plan::{Mode, Plan, plan};
use lanner_quantize::QuantizationOptions;
use lanner_transfers::Rounding;

use crate::common::{Digested, network, session};
use crate::executor::check_exact;

const JSON: &str = r#"{"format_version":2,"inputs":[{"name":"x","shape":[16,16,8]}],"nodes":[
    {"name":"conv1","op":{"Conv":{"weight":"w1","bias":"b1","strides":[1,1],"pads":[0,0,0,0],"dilations":[1,1],"groups":1}},"inputs":["x"]},
    {"name":"relu1","op":"Relu","inputs":["conv1"]},
    {"name":"conv2","op":{"Conv":{"weight":"w2","bias":null,"strides":[1,1],"pads":[0,0,0,0],"dilations":[1,1],"groups":1}},"inputs":["relu1"]},
    {"name":"relu2","op":"Relu","inputs":["conv2"]},
    {"name":"conv3","op":{"Conv":{"weight":"w3","bias":null,"strides":[1,1],"pads":[0,0,0,0],"dilations":[1,1],"groups":1}},"inputs":["relu2"]},
    {"name":"less","op":{"MulConstant":{"value":"minus"}},"inputs":["conv3"]},
    {"name":"turned","op":{"Transpose":{"axes":[0,2,1]}},"inputs":["less"]},
    {"name":"rows","op":{"Reshape":{"shape":[32,16,8]}},"inputs":["turned"]},
    {"name":"sum","op":"Add","inputs":["conv3","rows"]},
    {"name":"relu3","op":"Relu","inputs":["sum"]},
    {"name":"pool","op":"GlobalAveragePool","inputs":["relu3"]},
    {"name":"flat","op":"Flatten","inputs":["pool"]},
    {"name":"fc","op":{"MatMul":{"weight":"w4","bias":null}},"inputs":["flat"]}],"output":"fc"}"#;
const SHAPES: [(&str, &[usize]); 6] = [
    ("w1", &[128, 16, 1, 1]),
    ("b1", &[128]),
    ("w2", &[128, 128, 1, 1]),
    ("w3", &[32, 128, 1, 1]),
    ("w4", &[32, 4]),
    ("minus", &[1]),
];

const EXACT: Mode = Mode::Cheetah(Rounding::Exact);

fn made() -> (Network, Vec<Vec<f32>>) {
    network(JSON, &SHAPES, 16 * 16 * 8, &QuantizationOptions::powers_of_two())
}

/// Such a network over a power of two, an input, and the plan of mode cheetah.
pub(crate) fn example() -> (Network, Vec<i64>, Plan) {
    let (network, samples) = made();
    let input = network.public().input().quantize(&samples[0]).unwrap();
    let plan = plan(network.public(), Policy::Logits, EXACT).unwrap();
    (network, input, plan)
}

#[test]
fn packed_answers_equal_the_reference() {
    let (network, samples) = made();
    check_exact(&network, &samples[..3], &[EXACT]);
}

#[test]
fn a_plan_packs_where_that_saves_more_than_its_keys() {
    let (_, _, plan) = example();
    let json = serde_json::to_string(&plan).unwrap();
    assert_eq!(json.matches(r#""set":"c4""#).count(), 2, "{json}");
    let names: Vec<_> = plan.steps().map(|step| (step.name.as_str(), step.protocol.name())).collect();
    let squared = names.iter().position(|(name, _)| *name == "conv3").unwrap();
    assert_eq!(names[squared + 1], ("conv3", "ot.drop"), "{names:?}");
    assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), plan);
}

#[test]
fn a_seeded_session_sends_the_same_bytes_as_ever() {
    let (network, input, plan) = example();
    assert_eq!(session(&network, &plan, &input, Digested::new).0.digests(), DIGEST);
}

const DIGEST: &str = "7911937db14354e2 b880aac33b644dad";
