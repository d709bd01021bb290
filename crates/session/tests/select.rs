//! A layer that picks columns, a step, and a layer of what is reached, as trees have them: what both parties compute equals the reference in every mode.

use std::collections::BTreeMap;

use lanner_network::{Calibrated, LinearWeights, Network, Policy, PublicNetwork};
use lanner_plan::{Choices, Limits, Mode, NodeDesign, Plan, Rings, plan, plan_within};
use lanner_tabula as tabula;
use lanner_transfers::Rounding;

use crate::common::session;
use crate::executor::{check_exact, over, run_plan};

const COLUMNS: usize = 5;
const NODES: usize = 64;
const SCORES: usize = 3;

/// Whether each of some columns is at least a threshold, and a layer of these bits; with what is said of the first layer, or without.
fn network(says: &str, modulus: u64) -> Network {
    let node = |name: &str, op: &str, of: usize, length: usize| {
        format!(r#"{{"name":"{name}","op":{op},"inputs":[{of}],"shape":[{length}],"modulus":{modulus}}}"#)
    };
    let nodes = [
        node("compared", &format!(r#"{{"Linear":{{"outputs":{NODES}{says}}}}}"#), 0, NODES),
        node("relu", r#""Relu""#, 1, NODES),
        node("clip", r#"{"Clip":{"high":1}}"#, 2, NODES),
        node("turns", r#"{"Rescale":{"shift":0}}"#, 3, NODES),
        node("scores", &format!(r#"{{"Linear":{{"outputs":{SCORES}}}}}"#), 4, SCORES),
    ];
    let json = format!(
        r#"{{"format_version":7,"input":{{"name":"x","shape":[{COLUMNS}],"scale":{{"grid":0}},"low":0,"high":255,"modulus":{modulus}}},"nodes":[{}],"output_scale":0,"head":"scores"}}"#,
        nodes.join(",")
    );
    let picked = |node: usize| (node * 7 + node / 3) % COLUMNS;
    let rows = (0..NODES).flat_map(|node| (0..COLUMNS).map(move |i| i64::from(i == picked(node))));
    let thresholds = (0..NODES).map(|node| 1 - ((node * 37) % 256) as i128).collect();
    let leaves = (0..SCORES * NODES).map(|i| (i * 29 % 101) as i64 - 50).collect();
    let weights = BTreeMap::from([
        (0, LinearWeights::new(NODES, rows.collect(), thresholds)),
        (4, LinearWeights::new(SCORES, leaves, vec![7, -3, 0])),
    ]);
    let seen =
        Calibrated { scale: 1.0, low: 0, high: 0, weight_error: None, function: None, saturates: false };
    Network::new(PublicNetwork::from_json(&json).unwrap(), weights, &[seen; 6]).unwrap()
}

/// Columns at the ends of their range and between, so that some are at their thresholds.
fn samples() -> Vec<Vec<f32>> {
    let columns = |sample: usize| (0..COLUMNS).map(move |i| (i * 37 * (sample + 1) % 256) as f32);
    let mut samples: Vec<Vec<f32>> = (0..8).map(|sample| columns(sample).collect()).collect();
    samples[1] = vec![255.0, 0.0, 37.0, 36.0, 38.0];
    samples
}

const PICKS: &str = r#","picks":true"#;
const POWER: u64 = 1 << 24;
const PRIME: u64 = 1_032_193;

/// A network with such a layer, over a power of two, an input, and the plan of a mode.
pub(crate) fn example(mode: Mode) -> (Network, Vec<i64>, Plan) {
    let network = network(PICKS, POWER);
    let input = network.public().input().quantize(&samples()[1]).unwrap();
    let plan = plan(network.public(), Policy::Logits, mode).unwrap();
    (network, input, plan)
}

fn first(plan: &Plan) -> &'static str {
    plan.steps().next().unwrap().protocol.name()
}

#[test]
fn picked_columns_equal_the_reference_in_every_mode() {
    check_exact(&network(PICKS, PRIME), &samples(), &over(Rings::Primes));
    let network = network(PICKS, POWER);
    check_exact(&network, &samples(), &over(Rings::PowersOfTwo));
    let names = [Mode::Cheetah(Rounding::Exact), Mode::Tabula(tabula::Rounding::Exact), Mode::Auto]
        .map(|mode| first(&plan(network.public(), Policy::Logits, mode).unwrap()));
    assert_eq!(names, ["ot.select", "ot.select_ahead", "ot.select"]);
}

/// The layer says no more than its weights: results are those of the same weights as a dense layer.
#[test]
fn what_is_said_of_the_rows_changes_no_result() {
    let results = [PICKS, ""].map(|says| {
        let network = network(says, POWER);
        let inputs: Vec<Vec<i64>> =
            samples()[..2].iter().map(|sample| network.public().input().quantize(sample).unwrap()).collect();
        let plan = plan(network.public(), Policy::Logits, Mode::Cheetah(Rounding::Exact)).unwrap();
        (first(&plan), run_plan(&network, &plan, &inputs))
    });
    assert_eq!([results[0].0, results[1].0], ["ot.select", "cheetah.fc"]);
    assert_eq!(results[0].1, results[1].1);
}

/// In mode auto the layer may be computed ahead of time, before one that is not.
#[test]
fn a_design_of_its_own_is_computed_ahead() {
    let network = network(PICKS, POWER);
    let designs = [("compared".to_owned(), NodeDesign::Tabula)].into();
    let choices = Choices { designs, ..Mode::Auto.into() };
    let mixed = plan_within(network.public(), Policy::Logits, &choices, &Limits::default()).unwrap();
    assert_eq!(first(&mixed), "ot.select_ahead");
    let input = network.public().input().quantize(&samples()[1]).unwrap();
    let plain = plan(network.public(), Policy::Logits, Mode::Auto).unwrap();
    let [ahead, online] = [mixed, plain].map(|plan| session(&network, &plan, &input, |channel| channel).1);
    assert_eq!(ahead, online);
}
