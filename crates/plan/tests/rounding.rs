//! What a plan of mode cheetah rounds, and which results may show it.
#![allow(clippy::unwrap_used)]

use lanner_graph::{Policy, PublicNetwork};
use lanner_plan::{Mode, Plan, PlanError, plan};
use lanner_protocol::linear::cheetah::Accuracy;
use lanner_protocol::nonlinear::ot_nonlinear::Rounding;
use lanner_protocol::step::Protocol;

const POLICIES: [Policy; 6] = [
    Policy::Label,
    Policy::Labels,
    Policy::Probability { digits: 2 },
    Policy::TopK { k: 2 },
    Policy::Logits,
    Policy::Value,
];

/// Nodes on an input of 16 values, each the operator, the values that it reads, and its number of elements, modulo 2^20.
fn network(nodes: &[(&str, &[usize], usize)]) -> PublicNetwork {
    let node = |(number, (op, inputs, count)): (usize, &(&str, &[usize], usize))| {
        format!(r#"{{"name":"n{number}","op":{op},"inputs":{inputs:?},"shape":[{count}],"modulus":1048576}}"#)
    };
    let nodes: Vec<String> = nodes.iter().enumerate().map(node).collect();
    let json = format!(
        r#"{{"format_version":5,"input":{{"name":"x","shape":[16],"scale":{{"grid":0}},"low":0,"high":255,"modulus":1048576}},"nodes":[{}],"output_scale":0,"head":"scores"}}"#,
        nodes.join(",")
    );
    PublicNetwork::from_json(&json).unwrap()
}

const WIDE: &str = r#"{"Linear":{"outputs":16}}"#;
const SCORES: &str = r#"{"Linear":{"outputs":4}}"#;
const RESCALE: &str = r#"{"Rescale":{"shift":8}}"#;
const RELU: &str = r#""Relu""#;

/// Two layers in a row, one on a shortcut that the result takes as it is, one behind an activation alone.
fn networks() -> [PublicNetwork; 3] {
    [
        network(&[(WIDE, &[0], 16), (RELU, &[1], 16), (RESCALE, &[2], 16), (SCORES, &[3], 4)]),
        network(&[
            (WIDE, &[0], 16),
            (RESCALE, &[1], 16),
            (SCORES, &[2], 4),
            (SCORES, &[0], 4),
            (r#"{"Add":{"factors":[1,1]}}"#, &[3, 4], 4),
        ]),
        network(&[(WIDE, &[0], 16), (RESCALE, &[1], 16), (SCORES, &[2], 4), (RELU, &[3], 4)]),
    ]
}

fn accuracies(plan: &Plan) -> Vec<Accuracy> {
    let layers = plan.steps().filter_map(|step| match &step.protocol {
        Protocol::CheetahLinear(layer) => Some(layer.accuracy),
        _ => None,
    });
    layers.collect()
}

fn roundings(plan: &Plan) -> Vec<Rounding> {
    let activations = plan.steps().filter_map(|step| match &step.protocol {
        Protocol::RingActivation(activation) => Some(activation.rounding),
        _ => None,
    });
    activations.collect()
}

#[test]
fn nothing_in_an_exact_plan_is_off_by_one() {
    for (network, policy) in networks().iter().flat_map(|network| POLICIES.map(|policy| (network, policy))) {
        let plan = plan(network, policy, Mode::Cheetah(Rounding::Exact)).unwrap();
        assert!(accuracies(&plan).iter().all(|accuracy| *accuracy == Accuracy::Exact));
        assert!(!roundings(&plan).is_empty());
        assert!(roundings(&plan).iter().all(|rounding| *rounding == Rounding::Exact));
    }
}

#[test]
fn sums_that_a_result_is_made_of_are_exact_in_a_faithful_plan_too() {
    use Accuracy::{Exact, OffByOne};
    let expected: [&[Accuracy]; 3] = [&[OffByOne, Exact], &[OffByOne, Exact, Exact], &[OffByOne, Exact]];
    for (network, expected) in networks().iter().zip(expected) {
        let plan = plan(network, Policy::Label, Mode::Cheetah(Rounding::Faithful)).unwrap();
        assert_eq!(accuracies(&plan), expected);
    }
}

#[test]
fn faithful_plans_reveal_labels_alone() {
    for (network, policy) in networks().iter().flat_map(|network| POLICIES.map(|policy| (network, policy))) {
        let planned = plan(network, policy, Mode::Cheetah(Rounding::Faithful));
        if policy == Policy::Label {
            assert!(roundings(&planned.unwrap()).contains(&Rounding::Faithful));
            continue;
        }
        let refusal = planned.unwrap_err();
        assert!(matches!(refusal, PlanError::Policy { policy: name, .. } if name == policy.name()));
        assert_eq!(refusal.fix(), "round exactly, or choose label");
    }
}
