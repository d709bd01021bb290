//! How functions and products of two values are planned.
#![allow(clippy::unwrap_used)]

mod common;

use lanner_graph::{Policy, PublicNetwork};
use lanner_plan::{Mode, Plan, plan};
use lanner_protocol::nonlinear::ot_nonlinear::Rounding;
use lanner_protocol::step::Protocol;

const CHEETAH: Mode = Mode::Cheetah(Rounding::Exact);

/// A network of nodes of 16 elements, each the operator, the values that it reads, and the modulus.
fn network(nodes: &[(&str, &[usize], u64)]) -> PublicNetwork {
    let node = |(number, (op, inputs, modulus)): (usize, &(&str, &[usize], u64))| {
        format!(r#"{{"name":"n{number}","op":{op},"inputs":{inputs:?},"shape":[16],"modulus":{modulus}}}"#)
    };
    let modulus = nodes[0].2;
    let nodes: Vec<String> = nodes.iter().enumerate().map(node).collect();
    common::network("[16]", 255, modulus, &nodes.join(","))
}

const LAYER: &str = r#"{"Linear":{"outputs":16}}"#;
const RESCALE: &str = r#"{"Rescale":{"shift":6}}"#;
const LINES: &str =
    r#"{"Function":{"low":-512,"bits":10,"polynomials":[[0,1],[512,0],[512,1],[1024,-1]],"shift":2}}"#;
const MUL: &str = r#""Mul""#;

fn names(network: &PublicNetwork, mode: Mode) -> (Plan, Vec<&'static str>) {
    let plan = plan(network, Policy::Logits, mode).unwrap();
    let names = plan.steps().map(|step| step.protocol.spec().name()).collect();
    (plan, names)
}

#[test]
fn a_function_takes_the_rescale_before_it_along_with_its_guard() {
    let (large, small) = (1 << 20, 1 << 16);
    let network = network(&[(LAYER, &[0], large), (RESCALE, &[1], small), (LINES, &[2], small)]);
    let (plan, names) = names(&network, CHEETAH);
    assert_eq!(names, ["cheetah.fc", "ot.function", "share.reveal"]);
    let function = plan.steps().find_map(|step| match &step.protocol {
        Protocol::RingFunction(function) => Some((function.from, function.shift, function.to)),
        _ => None,
    });
    assert_eq!(function, Some((21, 7, 16)));
}

#[test]
fn what_else_is_read_is_rescaled_alone() {
    let ring = 1 << 20;
    let nodes: [(&str, &[usize], u64); 4] =
        [(LAYER, &[0], ring), (RESCALE, &[1], ring), (LINES, &[2], ring), (MUL, &[2, 3], ring)];
    let (_, names) = names(&network(&nodes), CHEETAH);
    assert_eq!(names, ["cheetah.fc", "ot.activation", "ot.function", "ot.product", "share.reveal"]);
}

#[test]
fn modes_over_primes_go_there_and_back() {
    let (large, small) = (16_760_833, 1_032_193);
    let nodes: [(&str, &[usize], u64); 4] =
        [(LAYER, &[0], large), (RESCALE, &[1], small), (LINES, &[2], small), (MUL, &[3, 3], small)];
    for mode in [Mode::Gazelle, Mode::Falcon] {
        let (plan, names) = names(&network(&nodes[..3]), mode);
        assert_eq!(
            names[1..],
            ["yao.activation", "ot.function", "share.reshare", "yao.activation", "share.reveal"]
        );
        plan.build().unwrap();
        let (_, names) = self::names(&network(&nodes), mode);
        let product = [
            "share.reshare",
            "yao.activation",
            "yao.activation",
            "ot.product",
            "share.reshare",
            "yao.activation",
        ];
        assert_eq!(names[5..11], product);
    }
}
