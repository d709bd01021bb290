//! Products of two values' matrices that are large enough for ciphertexts: what both parties compute equals the reference, and costs are those measured.

use lanner_network::{Network, Policy};
use lanner_plan::{Mode, Plan, Rings, plan};
use lanner_quantize::QuantizationOptions;
use lanner_transfers::Rounding;

use crate::common::{Digested, network, session};
use crate::executor::{check_exact, over};

const JSON: &str = r#"{"format_version":2,"inputs":[{"name":"x","shape":[20]}],"nodes":[
    {"name":"fc1","op":{"MatMul":{"weight":"w1","bias":"b1"}},"inputs":["x"]},
    {"name":"left","op":{"Reshape":{"shape":[2,12,10]}},"inputs":["fc1"]},
    {"name":"fc2","op":{"MatMul":{"weight":"w2","bias":null}},"inputs":["x"]},
    {"name":"right","op":{"Reshape":{"shape":[2,10,14]}},"inputs":["fc2"]},
    {"name":"product","op":"MatrixProduct","inputs":["left","right"]},
    {"name":"turned","op":{"Transpose":{"axes":[1,0,2]}},"inputs":["product"]},
    {"name":"flat","op":"Flatten","inputs":["turned"]},
    {"name":"fc3","op":{"MatMul":{"weight":"w3","bias":null}},"inputs":["flat"]}],"output":"fc3"}"#;
const SHAPES: [(&str, &[usize]); 4] =
    [("w1", &[20, 240]), ("b1", &[240]), ("w2", &[20, 280]), ("w3", &[336, 4])];

const EXACT: Mode = Mode::Cheetah(Rounding::Exact);

fn made() -> (Network, Vec<Vec<f32>>) {
    network(JSON, &SHAPES, 20, &QuantizationOptions::powers_of_two())
}

/// Such a network over a power of two, an input, and the plan of mode cheetah.
pub(crate) fn example() -> (Network, Vec<i64>, Plan) {
    let (network, samples) = made();
    let input = network.public().input().quantize(&samples[0]).unwrap();
    let plan = plan(network.public(), Policy::Logits, EXACT).unwrap();
    (network, input, plan)
}

#[test]
fn encrypted_products_equal_the_reference() {
    let (network, samples) = made();
    check_exact(&network, &samples[..3], &over(Rings::PowersOfTwo));
    let names = |mode| {
        let plan = plan(network.public(), Policy::Logits, mode).unwrap();
        plan.steps().map(|step| step.protocol.name()).collect::<Vec<_>>()
    };
    for mode in [EXACT, Mode::Auto] {
        assert!(names(mode).contains(&"cheetah.matrices"), "{:?}", names(mode));
    }
}

#[test]
fn a_plan_with_such_a_product_is_the_same_read_back() {
    let (_, _, plan) = example();
    let json = serde_json::to_string(&plan).unwrap();
    assert!(json.contains(r#""protocol":"cheetah_matrices""#), "{json}");
    assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), plan);
}

#[test]
fn a_seeded_session_sends_the_same_bytes_as_ever() {
    let (network, input, plan) = example();
    assert_eq!(session(&network, &plan, &input, Digested::new).0.digests(), DIGEST);
}

const DIGEST: &str = "7c6098948a091295 2b89d7bf5b79e63c";
