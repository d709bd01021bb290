//! Which layers that pick elements transfers compute, and which ciphertexts.

use lanner_network::{Policy, PublicNetwork};
use lanner_plan::{Choices, Limits, Mode, NodeDesign, Plan, Samples, plan, plan_within};
use lanner_tabula as tabula;
use lanner_transfers::Rounding;

use crate::common;

const CHEETAH: Mode = Mode::Cheetah(Rounding::Exact);
const TABULA: Mode = Mode::Tabula(tabula::Rounding::Exact);

const POWER: u64 = 1 << 24;
const PRIME: u64 = 1_032_193;

/// A layer of so many columns, which says that it picks or does not, and a step behind it.
fn network([inputs, outputs]: [usize; 2], says: &str, modulus: u64) -> PublicNetwork {
    let layer = format!(
        r#"{{"name":"compared","op":{{"Linear":{{"outputs":{outputs}{says}}}}},"inputs":[0],"shape":[{outputs}],"modulus":{modulus}}}"#
    );
    let node = |name: &str, op: &str, of: usize| {
        format!(r#"{{"name":"{name}","op":{op},"inputs":[{of}],"shape":[{outputs}],"modulus":{modulus}}}"#)
    };
    let relu = node("relu", r#""Relu""#, 1);
    let clip = node("clip", r#"{"Clip":{"high":1}}"#, 2);
    let step = node("step", r#"{"Rescale":{"shift":0}}"#, 3);
    common::network(&format!("[{inputs}]"), 255, modulus, &[layer, relu, clip, step].join(","))
}

const PICKS: &str = r#","picks":true"#;

fn first(plan: &Plan) -> &'static str {
    plan.steps().next().unwrap().protocol.name()
}

fn planned(network: &PublicNetwork, mode: Mode) -> &'static str {
    first(&plan(network, Policy::Logits, mode).unwrap())
}

#[test]
fn the_fewer_bytes_decide() {
    for (size, says, of_transfers) in [
        ([30, 100], PICKS, true),
        ([30, 6300], PICKS, true),
        ([784, 630], PICKS, true),
        ([2, 63], PICKS, true),
        // One of one needs no choice; more than a choice has room for; and so many that ciphertexts send less.
        ([1, 63], PICKS, false),
        ([1025, 4], PICKS, false),
        ([1000, 2000], PICKS, false),
        ([30, 100], "", false),
    ] {
        let network = network(size, says, POWER);
        let expected = if of_transfers { ["ot.select", "ot.select_ahead"] } else { ["cheetah", "delphi"] };
        let found = [CHEETAH, TABULA].map(|mode| planned(&network, mode));
        let is_so = found.iter().zip(expected).all(|(found, expected)| found.starts_with(expected));
        assert!(is_so, "{size:?}{says}: {found:?}");
    }
}

#[test]
fn slots_have_a_dense_layer() {
    let network = network([30, 40], PICKS, PRIME);
    assert_eq!(
        [Mode::Gazelle, Mode::Falcon].map(|mode| planned(&network, mode)),
        ["gazelle.fc", "falcon.fc"]
    );
}

#[test]
fn a_layer_that_picks_needs_no_guard_and_no_answer() {
    let network = network([30, 100], PICKS, POWER);
    let cost = plan(&network, Policy::Logits, CHEETAH).unwrap().build().unwrap().cost().unwrap();
    assert_eq!((cost.online[0].server_bytes(), cost.online[0].rounds()), (0, 0));
    // 29 elements of 24 bits for each output.
    assert_eq!(cost.online[0].client_bytes(), 100 * 29 * 3 + 6);
}

#[test]
fn each_design_has_its_layer() {
    let network = network([30, 100], PICKS, POWER);
    let of = |designs| {
        let choices = Choices { designs, ..Mode::Auto.into() };
        first(&plan_within(&network, Policy::Logits, &choices, &Limits::default()).unwrap())
    };
    assert_eq!(of([].into()), "ot.select");
    assert_eq!(of([("compared".to_owned(), NodeDesign::Tabula)].into()), "ot.select_ahead");
}

#[test]
fn samples_share_the_transfers() {
    let network = network([30, 100], PICKS, POWER);
    let built = |samples: usize| {
        let choices = Choices { samples: Samples::try_from(samples).unwrap(), ..CHEETAH.into() };
        let plan = plan_within(&network, Policy::Logits, &choices, &Limits::default()).unwrap();
        assert_eq!(first(&plan), "ot.select");
        plan.build().unwrap().steps()[0].operations()
    };
    let [alone, together] = [1, 4].map(|samples| {
        let operations = built(samples);
        ["transfers", "instances"].map(|name| operations.iter().find(|(own, _)| *own == name).unwrap().1)
    });
    assert_eq!(together.map(f64::to_bits), [alone[0], 4.0 * alone[1]].map(f64::to_bits));
}

#[test]
fn plans_are_read_as_they_were_written() {
    let network = network([30, 100], PICKS, POWER);
    for (mode, name) in [(CHEETAH, "ot.select"), (TABULA, "ot.select_ahead")] {
        let planned = plan(&network, Policy::Logits, mode).unwrap();
        assert_eq!(first(&planned), name);
        let written = serde_json::to_string(&planned).unwrap();
        assert_eq!(serde_json::from_str::<Plan>(&written).unwrap(), planned);
    }
}
