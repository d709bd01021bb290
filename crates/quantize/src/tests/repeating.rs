//! Networks whose steps repeat: found, written once, and read back without being trusted.

use lanner_graph::elementwise::Function;
use lanner_graph::graph::{FORMAT_VERSION, GraphInput};
use lanner_graph::{FloatExecutor, Graph, Node, Op};
use lanner_network::repeats::Repeat;
use lanner_network::{
    CompileError, FixedExecutor, FixedOp, Network, NetworkManifest, PublicNetwork, REPEATING_FORMAT_VERSION,
    Tensor, Tensors,
};
use serde_json::{Value, json};

use super::Random;
use crate::{QuantizationOptions, compile, outline};

const INPUTS: usize = 3;
const UNITS: usize = 2;

/// `h_t = tanh(W [x_t, h_{t-1}] + b)` over so many steps, from the last to the first if that is asked for; then a layer.
fn recurrent(steps: usize, reverse: bool) -> (Graph, Tensors) {
    let mut random = Random(5);
    let mut tensors = Tensors::default();
    for (name, shape) in [
        ("first", vec![INPUTS, UNITS]),
        ("cell", vec![INPUTS + UNITS, UNITS]),
        ("b", vec![UNITS]),
        ("out", vec![UNITS, 2]),
    ] {
        let data = random.reals(shape.iter().product(), -0.8, 0.8);
        tensors.insert(name, Tensor::new(shape, data).unwrap()).unwrap();
    }
    let mut nodes = Vec::new();
    let mut add = |name: String, op: Op, inputs: &[String]| {
        nodes.push(Node { name: name.clone(), op, inputs: inputs.to_vec() });
        name
    };
    let mut state: Option<String> = None;
    for step in 0..steps {
        let place = if reverse { steps - 1 - step } else { step };
        let slice = Op::Slice { starts: vec![place, 0], sizes: vec![1, INPUTS], steps: vec![1, 1] };
        let part = add(format!("rnn/t{place}/part"), slice, &["x".to_owned()]);
        let mut taken = add(format!("rnn/t{place}/x"), Op::Reshape { shape: vec![INPUTS] }, &[part]);
        let weight = if state.is_some() { "cell" } else { "first" }.to_owned();
        if let Some(state) = &state {
            taken = add(format!("rnn/t{place}/joined"), Op::Concat { axis: 0 }, &[taken, state.clone()]);
        }
        let sums =
            add(format!("rnn/t{place}/sums"), Op::MatMul { weight, bias: Some("b".to_owned()) }, &[taken]);
        state = Some(add(format!("rnn/t{place}/h"), Op::Function(Function::Tanh), &[sums]));
    }
    let output = add("y".to_owned(), Op::MatMul { weight: "out".to_owned(), bias: None }, &[state.unwrap()]);
    let inputs = vec![GraphInput { name: "x".to_owned(), shape: vec![steps, INPUTS] }];
    (Graph { format_version: FORMAT_VERSION, inputs, nodes, output }, tensors)
}

/// Inputs whose size grows from step to step, so that no two steps see the same range.
fn samples(steps: usize, count: usize, seed: u64) -> Vec<f32> {
    let mut samples = Random(seed).reals(count * steps * INPUTS, -1.0, 1.0);
    for (index, x) in samples.iter_mut().enumerate() {
        *x *= (1 + index / INPUTS % steps) as f32 / steps as f32;
    }
    samples
}

fn options() -> QuantizationOptions {
    let input_range = Some([-1.0, 1.0]);
    QuantizationOptions {
        activation_bits: 10,
        min_weight_bits: 10,
        max_weight_bits: 14,
        input_range,
        ..QuantizationOptions::powers_of_two()
    }
}

fn compiled(steps: usize, reverse: bool, options: &QuantizationOptions) -> Network {
    let (graph, tensors) = recurrent(steps, reverse);
    compile(&graph, &tensors, &samples(steps, 8, 1), options).unwrap()
}

fn written(network: &PublicNetwork) -> Value {
    serde_json::from_str(&network.to_json().unwrap()).unwrap()
}

#[test]
fn steps_are_one_set_of_tables_weights_and_rings_and_are_written_once() {
    for (reverse, options) in [
        (false, options()),
        (true, options()),
        (false, QuantizationOptions { input_range: Some([-1.0, 1.0]), ..QuantizationOptions::default() }),
    ] {
        let [short, long] = [20, 40].map(|steps| compiled(steps, reverse, &options));
        let [few, many] = [&short, &long].map(|network| written(network.public()));
        assert_eq!(few["nodes"].as_array().unwrap().len(), many["nodes"].as_array().unwrap().len());
        assert_eq!(many["format_version"], REPEATING_FORMAT_VERSION);
        // Every step but the first ones, whose state is of another size, is in the loop.
        let steps = long.public().repeats().iter().max_by_key(|repeat| repeat.length * repeat.times).unwrap();
        assert!(steps.times >= 36, "{steps:?}");
        let functions = |node: &&lanner_network::FixedNode| matches!(node.op, FixedOp::Function(_));
        let mut different: Vec<_> =
            long.public().nodes().iter().filter(functions).map(|node| (&node.op, node.accumulator)).collect();
        different.dedup();
        assert!(different.len() <= 3, "{} tables", different.len());
        // Numbers of nodes have more digits.
        let [short, long] = [short, long].map(|network| network.to_parts().unwrap().1.len());
        assert!(long.abs_diff(short) < 64, "{short} and {long} bytes of weights");
    }
}

#[test]
fn a_network_that_repeats_survives_the_round_trip() {
    for reverse in [false, true] {
        let network = compiled(20, reverse, &options());
        assert!(!network.public().repeats().is_empty());
        let (manifest, weights) = network.to_parts().unwrap();
        let json = manifest.to_json().unwrap();
        let read = Network::from_parts(NetworkManifest::from_json(&json).unwrap(), &weights).unwrap();
        assert_eq!(read, network);
        assert_eq!(read.to_parts().unwrap().0.to_json().unwrap(), json);
        let public = network.public().to_json().unwrap();
        assert_eq!(&PublicNetwork::from_json(&public).unwrap(), network.public());
        let names: Vec<_> = read.public().nodes().iter().map(|node| node.name.as_str()).collect();
        assert!(names.contains(&"rnn/t17/h") && names.contains(&"rnn/t3/sums"));
    }
}

#[test]
fn many_steps_stay_as_exact_as_few() {
    let (steps, count) = (300, 4);
    let (graph, tensors) = recurrent(steps, false);
    let network = compile(&graph, &tensors, &samples(steps, 8, 1), &options()).unwrap();
    let (fixed, float) =
        (FixedExecutor::new(&network).unwrap(), FloatExecutor::new(&graph, &tensors).unwrap());
    for sample in samples(steps, count, 2).chunks(steps * INPUTS) {
        let input = network.public().input().quantize(sample).unwrap();
        let scores = fixed.run(&input).unwrap().output;
        let scale = network.output_scale();
        for (integer, score) in scores.iter().zip(float.run(sample).unwrap()) {
            let off = (*integer as f64 * scale - f64::from(score)).abs();
            assert!(off < 0.005, "{off}");
        }
    }
}

#[test]
fn few_steps_and_graphs_without_a_state_are_as_they_were() {
    let network = compiled(7, false, &options());
    assert_eq!(
        (network.public().repeats(), &written(network.public())["format_version"]),
        (&[][..], &json!(7))
    );
    assert!(written(network.public()).get("repeats").is_none());
    // Layers side by side take nothing of one another.
    let (mut graph, tensors) = recurrent(1, false);
    let heads: Vec<String> = (0..20).map(|head| format!("head{head}")).collect();
    graph.nodes.pop();
    for (head, name) in heads.iter().enumerate() {
        let slice = Op::Slice { starts: vec![head % 2], sizes: vec![1], steps: vec![1] };
        graph.nodes.push(Node { name: name.clone(), op: slice, inputs: vec!["rnn/t0/h".to_owned()] });
    }
    graph.nodes.push(Node { name: "y".to_owned(), op: Op::Concat { axis: 0 }, inputs: heads });
    let network = compile(&graph, &tensors, &samples(1, 8, 1), &options()).unwrap();
    assert_eq!(network.public().repeats(), []);
}

#[test]
fn hostile_counts_are_refused_before_anything_is_made() {
    let network = compiled(20, false, &options());
    let honest = written(network.public());
    let place = honest["repeats"].as_array().unwrap().len() - 1;
    let refusal = |change: &dyn Fn(&mut Value)| {
        let mut changed = honest.clone();
        change(&mut changed["repeats"][place]);
        PublicNetwork::from_json(&changed.to_string()).unwrap_err()
    };
    for times in [1_u64 << 20, 1 << 40, u64::MAX] {
        let error = refusal(&|repeat| repeat["times"] = json!(times));
        assert!(matches!(error, CompileError::TooManyNodes { most: 131_072, .. }), "{error}");
    }
    for (change, words) in [
        (&(|repeat: &mut Value| repeat["times"] = json!(0)) as &dyn Fn(&mut Value), "is empty"),
        (&|repeat| repeat["times"] = json!(1), "is empty"),
        (&|repeat| repeat["first"] = json!(u64::MAX), "lies beyond"),
        (&|repeat| repeat["advances"] = json!([]), "is empty"),
        (&|repeat| repeat["advances"][0] = json!([]), "advances are not those"),
        (&|repeat| repeat["advances"][0][0] = json!(i64::MAX), "leaves the numbers"),
        (&|repeat| repeat["advances"][0][0] = json!(-1_000_000), "leaves the numbers"),
        (&|repeat| repeat["advances"][0][0] = json!(1_000_000), "must lie before it"),
        (
            &|repeat| {
                for advances in repeat["advances"].as_array_mut().unwrap() {
                    *advances.as_array_mut().unwrap().last_mut().unwrap() = json!(0);
                }
            },
            "taken",
        ),
        (&|repeat| repeat["times"] = json!(30), ""),
    ] {
        let error = refusal(change).to_string();
        assert!(error.contains(words), "{error} instead of {words}");
    }
    let mut changed = honest.clone();
    changed["repeats"] = json!([honest["repeats"][place], honest["repeats"][place]]);
    let error = PublicNetwork::from_json(&changed.to_string()).unwrap_err();
    assert!(error.to_string().contains("overlaps"), "{error}");
    // The version says whether there is something that repeats.
    for version in [7, 9] {
        let mut changed = honest.clone();
        changed["format_version"] = json!(version);
        let error = PublicNetwork::from_json(&changed.to_string()).unwrap_err();
        assert!(matches!(error, CompileError::FormatVersion { found, .. } if found == version), "{error}");
    }
    // Nodes that each take much memory are refused by it.
    let mut changed = honest.clone();
    let body = honest["repeats"][place]["first"].as_u64().unwrap() as usize;
    let function =
        (body..body + 100).find(|node| changed["nodes"][*node]["op"].get("Function").is_some()).unwrap();
    changed["nodes"][function]["op"]["Function"]["polynomials"] = json!(vec![vec![0; 4]; 1 << 8]);
    changed["repeats"][place]["times"] = json!(15_000);
    let error = PublicNetwork::from_json(&changed.to_string()).unwrap_err();
    assert!(error.to_string().contains("bytes, at most"), "{error}");
}

#[test]
fn ranges_and_weights_that_do_not_go_with_what_repeats_are_refused() {
    let network = compiled(20, false, &options());
    let (manifest, weights) = network.to_parts().unwrap();
    let json: Value = serde_json::from_str(&manifest.to_json().unwrap()).unwrap();
    for more in [true, false] {
        let mut changed = json.clone();
        let values = changed["values"].as_array_mut().unwrap();
        if more {
            values.push(values[0].clone());
        } else {
            values.pop();
        }
        let read = NetworkManifest::from_json(&changed.to_string()).unwrap();
        assert!(matches!(Network::from_parts(read, &weights), Err(CompileError::Network { .. })));
    }
    let mut changed = json;
    changed["format_version"] = json!(7);
    let read = NetworkManifest::from_json(&changed.to_string()).unwrap();
    assert!(matches!(Network::from_parts(read, &weights), Err(CompileError::FormatVersion { found: 7, .. })));
    // Weights of later iterations are those of the first: there is no place for others.
    let Repeat { first, length, .. } = *network.public().repeats().last().unwrap();
    let layer = (first..first + length).find(|node| network.weights(*node).is_some()).unwrap();
    assert_eq!(network.weights(layer), network.weights(layer + length));
    let with_names = |bytes: &[u8], from: &str, to: &str| {
        let text = bytes.windows(from.len()).position(|part| part == from.as_bytes()).unwrap();
        let mut bytes = bytes.to_vec();
        bytes[text..text + to.len()].copy_from_slice(to.as_bytes());
        bytes
    };
    let renamed = with_names(&weights, &format!("\"{layer}.weight"), &format!("\"{}.weight", layer + length));
    assert!(Network::from_parts(manifest, &renamed).is_err());
}

#[test]
fn too_many_operations_are_refused_alike_before_and_while_compiling() {
    let (mut graph, tensors) = recurrent(1, false);
    graph.nodes.pop();
    let mut random = Random(9);
    for index in 0..4600 {
        let before = graph.nodes.last().unwrap().name.clone();
        // No part of the chain is like the next.
        let op = if random.word().is_multiple_of(2) { Function::Tanh } else { Function::Sigmoid };
        graph.nodes.push(Node { name: format!("f{index}"), op: Op::Function(op), inputs: vec![before] });
    }
    graph.output = graph.nodes.last().unwrap().name.clone();
    let early = outline(&graph, &tensors, false).unwrap_err();
    assert!(matches!(early, CompileError::TooManyNodes { most: 4096, .. }), "{early}");
    let late = compile(&graph, &tensors, &samples(1, 8, 1), &options()).unwrap_err();
    assert_eq!(early, late);
}
