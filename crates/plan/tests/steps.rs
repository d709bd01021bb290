//! Which layers are computed with the step function in front of them.

use lanner_network::{Policy, PublicNetwork};
use lanner_plan::{Choices, Mode, Samples, plan_within};
use lanner_transfers::Rounding;

use crate::common;

/// Bits of the ring in front, and behind.
const RINGS: [u32; 2] = [16, 32];

/// A layer of groups on pixels, behind a step function of its input with such a bound and such a shift.
fn network(sides: [usize; 3], pixels: usize, [high, shift]: [i64; 2], others: &str) -> PublicNetwork {
    let [groups, rows, columns] = sides;
    let [inputs, outputs] = [columns, rows].map(|side| groups * side);
    let [small, large] = RINGS.map(|bits| 1_u64 << bits);
    let shape = format!("[{inputs},{pixels},1]");
    let of = |name: &str, op: String, input: usize, shape: &str, modulus: u64| {
        format!(r#"{{"name":"{name}","op":{op},"inputs":[{input}],"shape":{shape},"modulus":{modulus}}}"#)
    };
    let geometry = format!(
        r#"{{"Conv2d":{{"out_channels":{outputs},"kernel":[1,1],"strides":[1,1],"pads":[0,0,0,0],"dilations":[1,1],"groups":{groups}}}}}"#
    );
    let nodes = [
        of("relu", r#""Relu""#.to_owned(), 0, &shape, small),
        of("clip", format!(r#"{{"Clip":{{"high":{high}}}}}"#), 1, &shape, small),
        of("bits", format!(r#"{{"Rescale":{{"shift":{shift}}}}}"#), 2, &shape, large),
        of("layer", geometry, 3, &format!("[{outputs},{pixels},1]"), large),
    ];
    common::network(&shape, 255, small, &(nodes.join(",") + others))
}

fn protocols(network: &PublicNetwork, samples: usize) -> Vec<&'static str> {
    let samples = Samples::try_from(samples).unwrap();
    let choices = Choices { samples, ..Mode::Cheetah(Rounding::Exact).into() };
    let plan = plan_within(network, Policy::Logits, &choices, &lanner_plan::Limits::default()).unwrap();
    plan.steps().map(|step| step.protocol.name()).collect()
}

const STEP: [i64; 2] = [1, 0];

#[test]
fn the_fewer_bytes_decide() {
    for (sides, samples, is_chosen) in [
        ([1, 1, 6400], 1, true),
        ([1, 10, 640], 1, true),
        ([10, 1, 640], 1, true),
        ([100, 3, 3], 4, true),
        // A matrix that fills its ciphertexts.
        ([1, 512, 512], 1, false),
        ([1, 256, 256], 16, false),
    ] {
        let protocols = protocols(&network(sides, 1, STEP, ""), samples);
        let expected =
            if is_chosen { ["ot.chosen", "share.reveal"] } else { ["ot.activation", "cheetah.fc"] };
        assert_eq!(protocols[..2], expected, "{sides:?} {samples}");
    }
}

#[test]
fn other_runs_and_other_readers_keep_the_layer_apart() {
    let is_apart = |network: PublicNetwork| {
        let protocols = protocols(&network, 1);
        assert!(protocols.contains(&"ot.activation") && !protocols.contains(&"ot.chosen"), "{protocols:?}");
    };
    is_apart(network([1, 2, 40], 1, [2, 0], ""));
    is_apart(network([1, 2, 40], 1, [1, 1], ""));
    is_apart(network([1, 2, 40], 3, STEP, ""));
    let modulus = 1_u64 << RINGS[1];
    // The bits are read by a sum, too.
    let slice = format!(
        r#",{{"name":"some","op":{{"Slice":{{"starts":[0,0,0],"steps":[1,1,1]}}}},"inputs":[3],"shape":[2,1,1],"modulus":{modulus}}}"#
    );
    let sum = format!(
        r#",{{"name":"sum","op":{{"Add":{{"factors":[1,1]}}}},"inputs":[4,5],"shape":[2,1,1],"modulus":{modulus}}}"#
    );
    is_apart(network([1, 2, 40], 1, STEP, &(slice + &sum)));
}

/// A rescale behind the layer drops no guard of it: no noise comes with what comparisons choose.
#[test]
fn a_layer_of_choices_needs_no_guard() {
    let modulus = 1_u64 << RINGS[1];
    let rescale = format!(
        r#",{{"name":"rescale","op":{{"Rescale":{{"shift":6}}}},"inputs":[4],"shape":[2,1,1],"modulus":{modulus}}}"#
    );
    let protocols = protocols(&network([1, 2, 40], 1, STEP, &rescale), 1);
    assert_eq!(protocols, ["ot.chosen", "ot.activation", "share.reveal"]);
}
