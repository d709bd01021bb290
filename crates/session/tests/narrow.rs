//! What is looked up in rings of its own: both parties' results equal the reference up to the edges of what is kept.

use lanner_network::Lookup;
use lanner_network::{Accumulator, FixedExecutor, FixedOp, Integers, Network, Policy};
use lanner_plan::{Mode, plan};
use lanner_quantize::QuantizationOptions;
use lanner_session::executor::Outcome;
use lanner_tabula as tabula;
use lanner_transfers::Rounding;

use crate::common::{network, session};

const BOUNDED: &str = r#"{"format_version":2,"inputs":[{"name":"x","shape":[1,2,2]}],"nodes":[
    {"name":"conv","op":{"Conv":{"weight":"w1","bias":"b1","strides":[1,1],"pads":[1,1,1,1],"dilations":[1,1],"groups":1}},"inputs":["x"]},
    {"name":"pool","op":{"MaxPool":{"kernel":[2,2],"strides":[2,2],"pads":[0,0,0,0]}},"inputs":["conv"]},
    {"name":"relu","op":"Relu","inputs":["pool"]},
    {"name":"flat","op":"Flatten","inputs":["relu"]},
    {"name":"fc1","op":{"MatMul":{"weight":"w2","bias":"b2"}},"inputs":["flat"]},
    {"name":"relu2","op":"Relu","inputs":["fc1"]},
    {"name":"clip","op":{"Clip":{"min":0.0,"max":0.25}},"inputs":["relu2"]},
    {"name":"fc2","op":{"MatMul":{"weight":"w3","bias":"b3"}},"inputs":["clip"]}],"output":"fc2"}"#;
const SHAPES: [(&str, &[usize]); 6] =
    [("w1", &[3, 1, 2, 2]), ("b1", &[3]), ("w2", &[3, 5]), ("b2", &[5]), ("w3", &[5, 3]), ("b3", &[3])];

/// Slopes below zero, one behind a pool.
const SLOPES: &str = r#"{"format_version":2,"inputs":[{"name":"x","shape":[1,2,2]}],"nodes":[
    {"name":"conv","op":{"Conv":{"weight":"w1","bias":"b1","strides":[1,1],"pads":[1,1,1,1],"dilations":[1,1],"groups":1}},"inputs":["x"]},
    {"name":"leaky","op":{"LeakyRelu":{"alpha":0.1}},"inputs":["conv"]},
    {"name":"pool","op":{"MaxPool":{"kernel":[2,2],"strides":[2,2],"pads":[0,0,0,0]}},"inputs":["leaky"]},
    {"name":"flat","op":"Flatten","inputs":["pool"]},
    {"name":"fc1","op":{"MatMul":{"weight":"w2","bias":"b2"}},"inputs":["flat"]},
    {"name":"leaky2","op":{"LeakyRelu":{"alpha":0.01}},"inputs":["fc1"]},
    {"name":"fc2","op":{"MatMul":{"weight":"w3","bias":"b3"}},"inputs":["leaky2"]}],"output":"fc2"}"#;

fn compiled(json: &str, kept: u32) -> Network {
    // One ring for all, larger than any layer takes; and inputs of which calibration sees a quarter.
    let options = QuantizationOptions {
        narrow: true,
        kept_bits: Some(kept),
        accumulators: vec![Accumulator::from_modulus(1 << 24).unwrap()],
        input_range: Some([0.0, 4.0]),
        ..QuantizationOptions::powers_of_two()
    };
    network(json, &SHAPES, 4, &options).0
}

/// How much of the room of each lookup's values an input takes, the largest of all.
fn share_of_room(network: &Network, input: &[i64]) -> f64 {
    let public = network.public();
    let mut largest = vec![0; public.nodes().len() + 1];
    let most = |values: Integers<'_>| {
        let [low, high] = values.ends();
        high.max(-low)
    };
    FixedExecutor::new(network).unwrap().trace(input, |at, values| largest[at] = most(values)).unwrap();
    let share = |lookup: Lookup| {
        let value = public.nodes()[lookup.first].inputs[0];
        largest[value] as f64 / public.limit(value) as f64
    };
    public.lookups().map(share).fold(0.0, f64::max)
}

#[test]
fn results_are_the_references_up_to_the_edges() {
    // Functions of few bits are tables, and of more go by transfers.
    for (json, kept, tables) in
        [(BOUNDED, 5, 0), (BOUNDED, 9, 0), (SLOPES, 5, 2), (SLOPES, 12, 2), (SLOPES, 13, 0)]
    {
        let network = compiled(json, kept);
        assert!(network.public().nodes().iter().any(|node| node.op == FixedOp::Narrow));
        let input = network.public().input();
        let executor = FixedExecutor::new(&network).unwrap();
        // Every corner of what is accepted, and places between: those within all limits that come nearest to one.
        let steps = 0..=8_i64;
        let at = |step: i64| input.low + (input.high - input.low) * step / 8;
        let all = steps.clone().flat_map(|a| {
            steps.clone().flat_map(move |b| (0..=8).map(move |c| [at(a), at(b), at(c), at(8 - a)].to_vec()))
        });
        let mut inside: Vec<Vec<i64>> =
            all.filter(|input| executor.run(input).unwrap().overflow_count() == 0).collect();
        inside.sort_by(|a, b| share_of_room(&network, b).total_cmp(&share_of_room(&network, a)));
        assert!(share_of_room(&network, &inside[0]) > 0.9, "{}", share_of_room(&network, &inside[0]));
        for mode in [Mode::Tabula(tabula::Rounding::Exact), Mode::Cheetah(Rounding::Exact)] {
            let plan = plan(network.public(), Policy::Logits, mode).unwrap();
            let names: Vec<_> = plan.steps().map(|step| step.protocol.name()).collect();
            let count = |name| names.iter().filter(|other| **other == name).count();
            let due = if matches!(mode, Mode::Tabula(_)) { tables } else { 0 };
            assert_eq!([count("tabula.table"), count("yao.activation")], [due, 0], "{names:?}");
            for input in inside.iter().take(4) {
                let (_, outcome, _) = session(&network, &plan, input, |channel| channel);
                assert_eq!(outcome, Outcome::Logits(executor.run(input).unwrap().output), "{kept} {mode:?}");
            }
        }
    }
}
