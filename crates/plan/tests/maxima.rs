//! Where mode tabula takes maxima over windows: after what is looked up, by keys, if that sends less online, else before it, by transfers.

use lanner_network::Policy;
use lanner_plan::{Mode, Plan, plan};
use lanner_protocol::Protocol;
use lanner_step::{Cost, CotSupply, Function, Sets, Spec, Windows, transfer_sets};
use lanner_tabula::{Lookup, Rounding};
use lanner_transfers::{self as transfers, RingActivation};

use crate::common;

/// A pool of an image, perhaps rectified, and rescaled, and the layer that takes it.
fn planned(side: usize, kernel: usize, stride: usize, relu: bool, bits: u32) -> Plan {
    let pooled = (side - kernel) / stride + 1;
    let count = pooled * pooled;
    let pool = format!(
        r#"{{"MaxPool":{{"kernel":[{kernel},{kernel}],"strides":[{stride},{stride}],"pads":[0,0,0,0]}}}}"#
    );
    let image = format!("[1,{pooled},{pooled}]");
    let (flat, scores) = (format!("[{count}]"), "[4]".to_owned());
    let all = [
        (pool.as_str(), &image),
        (r#""Relu""#, &image),
        (r#"{"Rescale":{"shift":8}}"#, &image),
        (r#""Reshape""#, &flat),
        (r#"{"Linear":{"outputs":4}}"#, &scores),
    ];
    let nodes: Vec<String> = all
        .into_iter()
        .filter(|(op, _)| relu || *op != r#""Relu""#)
        .enumerate()
        .map(|(i, (op, shape))| {
            format!(
                r#"{{"name":"n{i}","op":{op},"inputs":[{i}],"shape":{shape},"modulus":{}}}"#,
                1_u64 << bits
            )
        })
        .collect();
    let network = common::network(&format!("[1,{side},{side}]"), 255, 1 << bits, &nodes.join(","));
    plan(&network, Policy::Logits, Mode::Tabula(Rounding::Exact)).unwrap()
}

/// The names of the nonlinear steps, how many values go into the lookup, and what differences have.
fn steps(plan: &Plan) -> Vec<(&'static str, usize, u32)> {
    let steps = plan.steps().filter_map(|step| match &step.protocol {
        Protocol::TabulaLookup(lookup) => Some(("lookup", lookup.values, lookup.from - lookup.shift)),
        Protocol::TabulaMaxima(maxima) => Some(("maxima", maxima.windows.inputs(), maxima.kept)),
        Protocol::RingActivation(activation) => Some(("transfers", activation.windows.inputs(), 0)),
        _ => None,
    });
    steps.collect()
}

#[test]
fn maxima_by_keys_come_behind_the_lookup() {
    assert_eq!(steps(&planned(8, 2, 2, true, 20)), [("lookup", 64, 12), ("maxima", 64, 11)]);
    assert_eq!(steps(&planned(8, 3, 1, true, 20)), [("lookup", 64, 12), ("maxima", 64, 11)]);
}

#[test]
fn maxima_of_few_elements_or_wide_ones_come_before_it() {
    // Most elements are in no window.
    assert_eq!(steps(&planned(24, 2, 22, true, 20)), [("transfers", 576, 0), ("lookup", 4, 12)]);
    // Without ReLU a difference has a bit more, and keys of more than 12 bits take too long to make.
    assert_eq!(steps(&planned(8, 2, 2, true, 21)), [("lookup", 64, 13), ("maxima", 64, 12)]);
    assert_eq!(steps(&planned(8, 2, 2, false, 20)), [("lookup", 64, 12), ("maxima", 64, 12)]);
    for (relu, bits) in [(true, 22), (false, 21)] {
        assert_eq!(steps(&planned(8, 2, 2, relu, bits)), [("transfers", 64, 0), ("lookup", 16, bits - 8)]);
    }
}

/// Bytes for each window online, and rounds: of the plan's nonlinear steps, and of maxima by transfers before the lookups.
#[test]
fn a_pool_by_keys_sends_less_in_fewer_rounds() {
    let count = 1024;
    let plan = planned(64, 2, 2, true, 20);
    let built = plan.build().unwrap();
    let costs = built.next_cost(&mut built.supply()).unwrap();
    let by_keys = plan.steps().zip(costs.online).filter(|(step, _)| step.name == "n2").map(|(_, cost)| cost);
    let windows = Windows { channels: 1, image: [64; 2], kernel: [2; 2], strides: [2; 2], pads: [0; 4] };
    let function = Function::IDENTITY;
    let rounding = transfers::Rounding::Exact;
    let transfers = RingActivation { function, windows, from: 20, to: 20, rounding };
    let lookup = Lookup {
        whole: false,
        values: count,
        from: 20,
        shift: 8,
        rounding: Rounding::Exact,
        relu: true,
        high: None,
        to: 20,
    };
    let (sets, mut supply) = (Sets::new().unwrap(), CotSupply::new(transfer_sets([0; 2])));
    let specs: [&dyn Spec; 2] = [&transfers, &lookup];
    let by_transfers = specs.map(|spec| spec.build(&sets).unwrap().cost(&mut supply).unwrap().online);
    let sum = |costs: &mut dyn Iterator<Item = Cost>| {
        costs.fold((0, 0), |(bytes, rounds), cost| (bytes + cost.bytes(), rounds + cost.rounds()))
    };
    let [keys, transfers] = [sum(&mut by_keys.into_iter()), sum(&mut by_transfers.into_iter())];
    assert_eq!([keys, transfers].map(|(bytes, rounds)| (bytes / count as u64, rounds)), [(38, 3), (74, 7)]);
}
