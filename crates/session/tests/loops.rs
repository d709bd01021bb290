//! Loops of a plan: one set of layers, any number of iterations, every output integer as computed in the clear.

use lanner_bfv::ParameterSet;
use lanner_coefficient::cheetah::{self, Accuracy};
use lanner_local::Add;
use lanner_local::reshare::{Reading, Reveal};
use lanner_network::{Network, Policy};
use lanner_plan::{Carried, Designs, Item, Mode, Plan, PlanError, Samples, Saturation, Scan, Step};
use lanner_primitives::Ring;
use lanner_protocol::Protocol;
use lanner_quantize::QuantizationOptions;
use lanner_session::executor::{ClientPlan, Phase};
use lanner_step::{Convolution, Function, Outcome, Windows};
use lanner_transfers::{RingActivation, Rounding};

use crate::common::{network, session};

const BITS: u32 = 37;
const TIMES: usize = 3;
const FEATURES: usize = 4;
const SHIFT: u32 = 12;

const JSON: &str = r#"{"format_version":2,"inputs":[{"name":"x","shape":[12]}],"nodes":[
    {"name":"begin","op":{"MatMul":{"weight":"w1","bias":"b1"}},"inputs":["x"]},
    {"name":"relu","op":"Relu","inputs":["begin"]},
    {"name":"cell","op":{"MatMul":{"weight":"w2","bias":"b2"}},"inputs":["relu"]}],"output":"cell"}"#;
const SHAPES: [(&str, &[usize]); 4] =
    [("w1", &[12, FEATURES]), ("b1", &[FEATURES]), ("w2", &[FEATURES, FEATURES]), ("b2", &[FEATURES])];

fn step(name: &str, inputs: &[usize], protocol: impl Into<Protocol>) -> Step {
    Step { name: name.to_owned(), inputs: inputs.to_vec(), protocol: protocol.into() }
}

fn linear(inputs: usize) -> cheetah::Linear {
    let shape = Convolution::fully_connected(inputs, FEATURES);
    cheetah::Linear {
        shape,
        bits: BITS,
        set: ParameterSet::B,
        accuracy: Accuracy::Exact,
        samples: Samples::ONE,
    }
}

/// `h = begin(x)`, then for each part `x_t` of x: `h = round(max(cell(h + x_t), 0) / 2^SHIFT)`; all `h`, then the last.
fn recurrent(reverse: bool, times: usize) -> Plan {
    let relu = Function { relu: true, shift: SHIFT, ..Function::IDENTITY };
    let windows = Windows::each(FEATURES);
    let ring = Ring::Pow2(BITS);
    let body = vec![
        step("sum", &[0, 1], Add { factors: [1, 1], values: FEATURES, ring }),
        step("cell", &[2], linear(FEATURES)),
        step(
            "relu",
            &[3],
            RingActivation { function: relu, windows, from: BITS, to: BITS, rounding: Rounding::Exact },
        ),
    ];
    let scan = Scan {
        name: "loop".to_owned(),
        carried: vec![Carried { initial: 1, next: 4 }],
        sliced: vec![0],
        whole: Vec::new(),
        body,
        stacked: vec![4],
        reverse,
        times,
    };
    // Value 0 the input, 1 the beginning, 2 the last state, 3 all states.
    let inputs = times * FEATURES;
    let reveal = Reveal { values: inputs, from: ring, reading: Reading::Scores };
    let items = vec![
        Item::Step(step("begin", &[0], linear(inputs))),
        Item::Scan(scan),
        Item::Step(step("output", &[3], reveal)),
    ];
    let samples = Samples::ONE;
    Plan {
        mode: Mode::Cheetah(Rounding::Exact),
        designs: Designs::new(),
        policy: Policy::Logits,
        samples,
        saturation: Saturation::new(),
        input: (ring, inputs),
        items,
    }
}

/// The same in the clear.
fn truth(network: &Network, input: &[i64], reverse: bool) -> Vec<i64> {
    let layer = |name: &str, x: &[i64]| -> Vec<i64> {
        let node = network.public().nodes().iter().position(|node| node.name == name).unwrap();
        let weights = network.weights(node).unwrap();
        let rows = weights.weight().chunks(x.len()).zip(weights.bias_of(FEATURES));
        rows.map(|(row, bias)| row.iter().zip(x).map(|(w, x)| w * x).sum::<i64>() + bias as i64).collect()
    };
    let mut h = layer("begin", input);
    let mut states = vec![Vec::new(); TIMES];
    for iteration in 0..TIMES {
        let part = if reverse { TIMES - 1 - iteration } else { iteration };
        let sum: Vec<i64> = h.iter().zip(&input[part * FEATURES..]).map(|(h, x)| h + x).collect();
        let next = layer("cell", &sum).into_iter();
        h = next.map(|y| lanner_network::rescale(y.max(0), SHIFT)).collect();
        states[part].clone_from(&h);
    }
    states.concat()
}

#[test]
fn a_loop_computes_what_its_iterations_do_one_after_another() {
    let (network, _) = network(JSON, &SHAPES, 12, &QuantizationOptions::powers_of_two());
    let input: Vec<i64> = (0..12).map(|i| (i * 37 % 23) - 11).collect();
    for reverse in [false, true] {
        let plan = recurrent(reverse, TIMES);
        let (_, outcome, costs) = session(&network, &plan, &input, |channel| channel);
        let truth = truth(&network, &input, reverse);
        assert!(truth.iter().any(|value| *value != 0));
        assert_eq!(outcome, Outcome::Logits(truth.into_iter().map(i128::from).collect()));
        // What is predicted is what is sent, step by step, all iterations of a step together.
        let cost = plan.build().unwrap().cost().unwrap();
        let predicted = std::iter::once(&cost.setup).chain(&cost.offline).chain(&cost.online);
        let predicted = predicted.map(|cost| (cost.client_bytes(), cost.server_bytes(), cost.rounds()));
        let sent = costs.iter().map(|step| (step.traffic.sent, step.traffic.received, step.traffic.rounds));
        assert_eq!(sent.collect::<Vec<_>>(), predicted.collect::<Vec<_>>());
        let offline = costs.iter().filter(|step| step.phase == Phase::Offline);
        assert!(offline.map(|step| step.traffic.rounds).sum::<u64>() <= 1);
    }
}

#[test]
fn a_loop_encodes_its_layer_once_and_keeps_material_for_each_iteration() {
    let memory = |times| recurrent(false, times).build().unwrap().memory().unwrap();
    let (two, three) = (memory(2), memory(3));
    // An iteration more takes a list of visits and a part of the stacked value more, and no layer.
    assert_eq!(two.session, three.session);
    for (two, three) in [(two.model, three.model), (two.working, three.working)] {
        assert!(three >= two && three - two < 1000 && two > 100_000, "{two} {three}");
    }
    assert!(three.client_material > two.client_material && three.server_material > two.server_material);
}

#[test]
fn loops_that_do_not_fit_together_are_refused() {
    let (network, _) = network(JSON, &SHAPES, 12, &QuantizationOptions::powers_of_two());
    let refused = |change: fn(&mut Scan)| {
        let mut plan = recurrent(false, TIMES);
        if let Item::Scan(scan) = &mut plan.items[1] {
            change(scan);
        }
        assert!(matches!(plan.build(), Err(PlanError::Layer { .. } | PlanError::TooLarge { .. })));
        ClientPlan::new(network.public(), &plan).is_err()
    };
    assert!(refused(|scan| scan.times = 0));
    assert!(refused(|scan| scan.times = usize::MAX));
    assert!(refused(|scan| scan.times = 5), "twelve elements have no five equal parts");
    assert!(refused(|scan| scan.carried[0].next = 9));
    assert!(refused(|scan| scan.carried[0].initial = usize::MAX));
    assert!(refused(|scan| scan.carried[0] = Carried { initial: 0, next: 4 }), "another type than before");
    assert!(refused(|scan| scan.sliced[0] = 1), "a part of another length than the layer's");
    assert!(refused(|scan| scan.stacked[0] = 5));
    assert!(refused(|scan| scan.body[0].inputs[1] = 7));
}

/// `h_t = relu(W [x_t, h_{t-1}] + b)` over so many rows, then a layer: the graph and the shapes of its tensors.
fn steps(count: usize) -> (String, [(&'static str, &'static [usize]); 5]) {
    let node = |name: &str, op: &str, inputs: &[&str]| {
        format!(r#"{{"name":"{name}","op":{op},"inputs":{}}}"#, serde_json::json!(inputs))
    };
    let part = |step: usize| {
        let slice = format!(r#"{{"Slice":{{"starts":[{step},0],"sizes":[1,3],"steps":[1,1]}}}}"#);
        let cut = node(&format!("t{step}/part"), &slice, &["x"]);
        let row = node(&format!("t{step}/x"), r#"{"Reshape":{"shape":[3]}}"#, &[&format!("t{step}/part")]);
        [cut, row]
    };
    let mut nodes: Vec<String> = (0..count).flat_map(part).collect();
    nodes.push(node("begin", r#"{"MatMul":{"weight":"first","bias":"b"}}"#, &["t0/x"]));
    nodes.push(node("t0/h", r#""Relu""#, &["begin"]));
    for step in 1..count {
        let [x, joined, sums] = ["x", "joined", "sums"].map(|part| format!("t{step}/{part}"));
        nodes.push(node(&joined, r#"{"Concat":{"axis":0}}"#, &[&x, &format!("t{}/h", step - 1)]));
        nodes.push(node(&sums, r#"{"MatMul":{"weight":"cell","bias":"b"}}"#, &[&joined]));
        nodes.push(node(&format!("t{step}/h"), r#""Relu""#, &[&sums]));
    }
    let last = format!("t{}/h", count - 1);
    nodes.push(node("y", r#"{"MatMul":{"weight":"out","bias":"c"}}"#, &[&last]));
    let json = format!(
        r#"{{"format_version":2,"inputs":[{{"name":"x","shape":[{count},3]}}],"nodes":[{}],"output":"y"}}"#,
        nodes.join(",")
    );
    (json, [("first", &[3, 2]), ("cell", &[5, 2]), ("b", &[2]), ("out", &[2, 2]), ("c", &[2])])
}

/// Steps of a network that repeat are one in its plan, and the parties compute what the reference does with the messages that are foreseen.
#[test]
fn steps_that_repeat_compute_what_the_reference_does() {
    let count = 14;
    let (json, shapes) = steps(count);
    let options = QuantizationOptions::powers_of_two();
    let (network, _) = network(&json, &shapes, 3 * count, &options);
    let plan = lanner_plan::plan(network.public(), Policy::Logits, Mode::Cheetah(Rounding::Exact)).unwrap();
    let times =
        plan.items.iter().map(|item| if let Item::Repeat(repeated) = item { repeated.times } else { 0 });
    assert!(times.max().unwrap() >= 8, "{:?}", network.public().repeats());
    let high = network.public().input().high;
    let input: Vec<i64> = (0..3 * count as i64).map(|i| i * 37 % (high + 1)).collect();
    let (_, outcome, costs) = session(&network, &plan, &input, |channel| channel);
    let expected = lanner_network::FixedExecutor::new(&network).unwrap().run(&input).unwrap().output;
    assert!(expected.iter().any(|score| *score != 0));
    assert_eq!(outcome, Outcome::Logits(expected));
    let cost = plan.build().unwrap().cost().unwrap();
    let predicted = std::iter::once(&cost.setup).chain(&cost.offline).chain(&cost.online);
    let predicted = predicted.map(|cost| (cost.client_bytes(), cost.server_bytes(), cost.rounds()));
    let sent = costs.iter().map(|step| (step.traffic.sent, step.traffic.received, step.traffic.rounds));
    assert_eq!(sent.collect::<Vec<_>>(), predicted.collect::<Vec<_>>());
}
