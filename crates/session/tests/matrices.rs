//! Products of two values' matrices that are large enough for ciphertexts: what both parties compute equals the reference, and costs are those measured.

use lanner_network::{Network, Policy};
use lanner_plan::{Mode, Plan, Rings, plan};
use lanner_protocol::Protocol;
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

/// A network of such products, up to where it is read.
fn behind(nodes: &str, output: &str, weights: &[(&str, &[usize])]) -> (Network, Vec<Vec<f32>>) {
    let begin = JSON.find(r#"{"name":"turned""#).unwrap();
    let json = format!(r#"{}{nodes}],"output":"{output}"}}"#, &JSON[..begin]);
    let shapes = [&SHAPES[..3], weights].concat();
    network(&json, &shapes, 20, &QuantizationOptions::powers_of_two())
}

/// The bits of guard of each product that is computed by encryption.
fn guards(network: &Network, policy: Policy) -> Vec<u32> {
    let plan = plan(network.public(), policy, EXACT).unwrap();
    let guard = |protocol: &Protocol| match protocol {
        Protocol::CheetahMatrices(product) => Some(product.guard),
        _ => None,
    };
    plan.steps().filter_map(|step| guard(&step.protocol)).collect()
}

#[test]
fn sums_of_encrypted_products_have_the_bits_of_guard_that_they_take() {
    let nodes = r#"{"name":"across","op":{"Transpose":{"axes":[0,2,1]}},"inputs":["right"]},
        {"name":"down","op":{"Transpose":{"axes":[0,2,1]}},"inputs":["left"]},
        {"name":"second","op":"MatrixProduct","inputs":["across","down"]},
        {"name":"turned","op":{"Transpose":{"axes":[0,2,1]}},"inputs":["second"]},
        {"name":"sum","op":"Add","inputs":["product","turned"]},
        {"name":"relu","op":"Relu","inputs":["sum"]},
        {"name":"flat","op":"Flatten","inputs":["relu"]},
        {"name":"fc3","op":{"MatMul":{"weight":"w3","bias":null}},"inputs":["flat"]}"#;
    let (network, samples) = behind(nodes, "fc3", &[("w3", &[336, 4])]);
    assert_eq!(guards(&network, Policy::Logits), [2, 2]);
    check_exact(&network, &samples[..3], &[EXACT]);
}

#[test]
fn encrypted_products_may_be_the_result() {
    let nodes = r#"{"name":"flat","op":"Flatten","inputs":["product"]}"#;
    let (network, samples) = behind(nodes, "flat", &[]);
    for policy in [Policy::Logits, Policy::Label] {
        assert_eq!(guards(&network, policy), [1]);
    }
    check_exact(&network, &samples[..3], &[EXACT]);
}

#[test]
fn a_matrix_by_itself_and_maxima_of_products_equal_the_reference() {
    let nodes = r#"{"name":"back","op":{"Transpose":{"axes":[0,2,1]}},"inputs":["left"]},
        {"name":"gram","op":"MatrixProduct","inputs":["left","back"]},
        {"name":"most","op":{"MaxPool":{"kernel":[2,2],"strides":[2,2],"pads":[0,0,0,0]}},"inputs":["gram"]},
        {"name":"flat","op":"Flatten","inputs":["most"]},
        {"name":"fc3","op":{"MatMul":{"weight":"w3","bias":null}},"inputs":["flat"]}"#;
    let (network, samples) = behind(nodes, "fc3", &[("w3", &[72, 4])]);
    assert_eq!(guards(&network, Policy::Logits), [1]);
    check_exact(&network, &samples[..3], &[EXACT]);
}
