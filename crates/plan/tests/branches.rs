//! Sizes of networks that branch: a node's are those of the values that it takes, not of the value made before it.

use lanner_network::{Policy, PublicNetwork};
use lanner_plan::{Mode, PlanError, plan};
use lanner_transfers::Rounding;

use crate::common;

const MODES: [(Mode, u64); 4] = [
    (Mode::Gazelle, 1_032_193),
    (Mode::Falcon, 1_032_193),
    (Mode::Cheetah(Rounding::Exact), 1 << 30),
    (Mode::Cheetah(Rounding::Faithful), 1 << 30),
];

/// A network on an input of this shape; of each node its operator, its inputs and its output's shape.
fn network(modulus: u64, input: &str, nodes: &[(&str, &str, &str)]) -> PublicNetwork {
    let node = |(index, (op, inputs, shape)): (usize, &(&str, &str, &str))| {
        format!(r#"{{"name":"n{index}","op":{op},"inputs":{inputs},"shape":{shape},"modulus":{modulus}}}"#)
    };
    let nodes: Vec<String> = nodes.iter().enumerate().map(node).collect();
    common::network(input, 1, modulus, &nodes.join(","))
}

fn conv(channels: usize, kernel: usize, pad: usize) -> String {
    format!(
        r#"{{"Conv2d":{{"out_channels":{channels},"kernel":[{kernel},{kernel}],"strides":[1,1],"pads":[{pad},{pad},{pad},{pad}],"dilations":[1,1],"groups":1}}}}"#
    )
}

fn sum_pool(kernel: &str) -> String {
    format!(r#"{{"SumPool":{{"kernel":{kernel},"strides":[1,1],"pads":[0,0,0,0]}}}}"#)
}

#[test]
fn a_convolution_behind_a_vector_that_it_does_not_take_is_planned() {
    let nodes = [
        (r#""Reshape""#, "[0]", "[16]"),
        (r#"{"Linear":{"outputs":4}}"#, "[1]", "[4]"),
        (&conv(1, 3, 0), "[0]", "[1,2,2]"),
        (r#""Reshape""#, "[3]", "[4]"),
        (r#"{"Add":{"factors":[1,2]}}"#, "[2,4]", "[4]"),
    ];
    for (mode, modulus) in MODES {
        let plan = plan(&network(modulus, "[1,4,4]", &nodes), Policy::Label, mode).unwrap();
        let layers = plan.steps().filter(|step| step.protocol.name().starts_with(mode.name()));
        assert_eq!(layers.count(), 2, "{plan:?}");
    }
}

/// A layer whose work would be counted by the one element that is made before it; plaintexts for rotations are what it has too many of.
#[test]
fn a_huge_layer_behind_a_small_value_that_it_does_not_take_is_refused() {
    let nodes = [
        (r#""Reshape""#, "[0]", "[1,512,256]"),
        (&sum_pool("[512,256]"), "[1]", "[1,1,1]"),
        (&conv(512, 7, 3), "[0]", "[512,16,16]"),
        (&sum_pool("[16,16]"), "[3]", "[512,1,1]"),
        (r#"{"Concat":{"axis":0}}"#, "[2,4]", "[513,1,1]"),
    ];
    for (mode, modulus) in MODES.into_iter().take(2) {
        let refusal = plan(&network(modulus, "[512,16,16]", &nodes), Policy::Logits, mode).unwrap_err();
        let PlanError::TooLarge { node, what, .. } = &refusal else { panic!("{refusal}") };
        assert_eq!((node.as_str(), *what), ("n2", "bytes of memory"), "{refusal}");
    }
}
