//! Trees as networks: integers that are the float trees' for every value of the grid.

use lanner_graph::trees::UNREACHED;
use lanner_graph::{FloatExecutor, Graph};
use lanner_network::{Evidence, FixedExecutor, FixedOp, Network, Tensor, Tensors};

use crate::{QuantizationOptions, compile};

const HIGH: u32 = 1000;
const COLUMNS: usize = 5;

/// A fixed sequence like one of random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

struct Shape {
    trees: usize,
    nodes: usize,
    leaves: usize,
    scores: usize,
    width: usize,
    is_complete: bool,
    zeros: usize,
}

fn ensemble(random: &mut Random, shape: &Shape) -> (Graph, Tensors) {
    let &Shape { trees, nodes, leaves, scores, width, is_complete, zeros } = shape;
    let paths = if is_complete { "null" } else { r#""paths""# };
    let (pad, output) = if zeros > 0 {
        let pad = format!(
            r#",{{"name":"pad","op":{{"Pad":{{"before":[{zeros}],"after":[0]}}}},"inputs":["trees"]}}"#
        );
        (pad, "pad")
    } else {
        (String::new(), "trees")
    };
    let json = format!(
        r#"{{"format_version":2,"inputs":[{{"name":"x","shape":[{COLUMNS}]}}],"nodes":[{{"name":"trees","op":{{"Trees":{{
            "trees":{trees},"high":{HIGH},"columns":"columns","thresholds":"thresholds","paths":{paths},"values":"values","base":"base"}}}},
            "inputs":["x"]}}{pad}],"output":"{output}"}}"#
    );
    let mut tensors = Tensors::default();
    let mut put = |name: &str, shape: Vec<usize>, data: Vec<f32>| {
        tensors.insert(name, Tensor::new(shape, data).unwrap()).unwrap();
    };
    let all = trees * nodes;
    put("columns", vec![all], (0..all).map(|_| random.below(COLUMNS as u64) as f32).collect());
    put("thresholds", vec![all], (0..all).map(|_| random.below(u64::from(HIGH) + 2) as f32).collect());
    let mut value = || random.below(2001) as f32 / 1000.0 - 1.0;
    put("values", vec![trees * leaves, width], (0..trees * leaves * width).map(|_| value()).collect());
    put("base", vec![scores], (0..scores).map(|_| value()).collect());
    if !is_complete {
        // A chain: each node's right child is a leaf, and its left one the next node.
        let row = |leaf: usize| -> Vec<f32> {
            let turn = |node: usize| match node {
                _ if leaf > nodes => f32::from(UNREACHED),
                node if node < leaf => -1.0,
                node if node == leaf => 1.0,
                _ => 0.0,
            };
            (0..nodes).map(turn).collect()
        };
        let rows = (0..trees).flat_map(|_| (0..leaves).flat_map(row)).collect();
        put("paths", vec![trees * leaves, nodes], rows);
    }
    (Graph::from_json(&json).unwrap(), tensors)
}

fn compiled(options: &QuantizationOptions, shape: &Shape, random: &mut Random) -> (Graph, Tensors, Network) {
    let (graph, tensors) = ensemble(random, shape);
    let samples = vec![0.0; COLUMNS];
    let network = compile(&graph, &tensors, &samples, options).unwrap();
    (graph, tensors, network)
}

const SHAPES: [Shape; 5] = [
    Shape { trees: 3, nodes: 7, leaves: 8, scores: 1, width: 1, is_complete: true, zeros: 1 },
    Shape { trees: 4, nodes: 15, leaves: 16, scores: 3, width: 3, is_complete: true, zeros: 0 },
    Shape { trees: 6, nodes: 3, leaves: 4, scores: 2, width: 1, is_complete: true, zeros: 0 },
    Shape { trees: 4, nodes: 6, leaves: 9, scores: 2, width: 1, is_complete: false, zeros: 0 },
    Shape { trees: 2, nodes: 9, leaves: 10, scores: 3, width: 3, is_complete: false, zeros: 0 },
];

#[test]
fn integers_decide_as_the_float_trees_do() {
    let mut random = Random(1);
    for options in [QuantizationOptions::powers_of_two(), QuantizationOptions::default()] {
        for shape in &SHAPES {
            let (graph, tensors, network) = compiled(&options, shape, &mut random);
            let (float, fixed) =
                (FloatExecutor::new(&graph, &tensors).unwrap(), FixedExecutor::new(&network).unwrap());
            let scale = network.output_scale();
            for _ in 0..100 {
                let ends = [0, u64::from(HIGH)];
                let x: Vec<f32> = (0..COLUMNS)
                    .map(|_| match random.below(8) {
                        end @ 0..2 => ends[end as usize] as f32,
                        _ => random.below(u64::from(HIGH) + 1) as f32,
                    })
                    .collect();
                let run = fixed.run_real(&x).unwrap();
                assert_eq!(run.overflow_count(), 0);
                for (score, integer) in float.run(&x).unwrap().iter().zip(&run.output) {
                    assert!((f64::from(*score) - *integer as f64 * scale).abs() < 1e-5, "{score} {integer}");
                }
            }
        }
    }
}

#[test]
fn every_range_of_trees_is_proved_and_bits_take_small_rings() {
    let mut random = Random(2);
    for shape in &SHAPES {
        let (.., network) = compiled(&QuantizationOptions::powers_of_two(), shape, &mut random);
        let unproved: Vec<_> =
            network.values().iter().filter(|value| value.evidence != Evidence::Proved).collect();
        assert!(unproved.is_empty(), "{unproved:?}");
        let turns = network.public().nodes().iter().find(|node| node.name == "trees_turns").unwrap();
        assert_eq!(turns.op, FixedOp::Rescale { shift: 0 });
        assert!(turns.accumulator.bits() <= 5);
    }
}

#[test]
fn a_network_beside_trees_is_refused() {
    let (mut graph, tensors) = ensemble(&mut Random(3), &SHAPES[1]);
    let relu = r#"{"name":"relu","op":"Relu","inputs":["trees"]}"#;
    graph.nodes.push(serde_json::from_str(relu).unwrap());
    graph.output = "relu".to_owned();
    let error = compile(&graph, &tensors, &[0.0; COLUMNS], &QuantizationOptions::default()).unwrap_err();
    assert!(error.to_string().contains("relu"), "{error}");
}
