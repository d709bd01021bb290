//! Networks with branches, squares, slopes and moved elements compute what their floats do.

use lanner_graph::elementwise::{Clip, LeakyRelu};
use lanner_graph::{Node, Op};
use lanner_network::elementwise::FixedLeakyRelu;
use lanner_network::{
    Accumulator, CompileError, Evidence, FixedExecutor, FixedOp, Integers, Network, rescale,
};

use super::compiled::{agreement, compiled, ops};
use super::{Sketch, small_network};
use crate::bits::options_for;
use crate::{QuantizationOptions, compile};

impl Sketch {
    /// Adds a node with several inputs.
    pub(super) fn join(mut self, name: &str, op: Op, inputs: &[&str]) -> Self {
        let inputs = inputs.iter().map(|&input| input.to_owned()).collect();
        self.graph.nodes.push(Node { name: name.to_owned(), op, inputs });
        name.clone_into(&mut self.graph.output);
        self
    }

    /// Continues from an earlier value.
    pub(super) fn resume(mut self, name: &str) -> Self {
        name.clone_into(&mut self.graph.output);
        self
    }

    pub(super) fn grouped(
        mut self,
        name: &str,
        out: usize,
        groups: usize,
        stride: usize,
        dilation: usize,
    ) -> Self {
        let inputs = self.shape()[0] / groups;
        let bound = (3.0 / (inputs * 9) as f32).sqrt();
        let weight = self.tensor(&format!("{name}.w"), &[out, inputs, 3, 3], -bound, bound);
        let bias = Some(self.tensor(&format!("{name}.b"), &[out], -0.1, 0.1));
        let (strides, pads, dilations) = ([stride; 2], [dilation; 4], [dilation; 2]);
        self.op(name, Op::Conv { weight, bias, strides, pads, dilations, groups })
    }

    fn block(self, name: &str, shortcut: &str) -> Self {
        self.conv(&format!("{name}a"), 6, 3, 1, 1)
            .batch_norm(&format!("{name}bn"), [0.5, 1.5])
            .relu(&format!("{name}r"))
            .conv(&format!("{name}b"), 6, 3, 1, 1)
            .batch_norm(&format!("{name}bn2"), [0.5, 1.5])
            .clone_join(name, shortcut)
            .relu(&format!("{name}out"))
    }

    fn clone_join(self, name: &str, shortcut: &str) -> Self {
        let last = self.graph.output.clone();
        self.join(&format!("{name}sum"), Op::Add, &[&last, shortcut])
    }
}

pub(super) fn residual(seed: u64) -> Sketch {
    Sketch::new(&[3, 8, 8], seed)
        .conv("stem", 6, 3, 1, 1)
        .relu("r0")
        .block("b1", "r0")
        .block("b2", "b1out")
        .op("gap", Op::GlobalAveragePool)
        .flatten("f")
        .dense("fc", 10)
}

/// Every operator that a network with branches has.
pub(super) fn every_operator(seed: u64) -> Sketch {
    let slice = Op::Slice { starts: vec![0, 3, 0], sizes: vec![2, 2, 2], steps: vec![1, -2, 2] };
    Sketch::new(&[2, 4, 4], seed)
        .conv("a", 4, 3, 1, 1)
        .op("leaky", Op::LeakyRelu(LeakyRelu { alpha: 0.1 }))
        .conv("b", 2, 3, 1, 1)
        .op("k", Op::Clip(Clip { min: Some(0.0), max: Some(0.3) }))
        .op("slice", slice)
        .op("pad", Op::Pad { before: vec![1, 1, 1], after: vec![1, 1, 1] })
        .join("both", Op::Concat { axis: 0 }, &["pad", "leaky"])
        .max_pool("p", 2)
        .op("t", Op::Transpose { axes: vec![1, 2, 0] })
        .flatten("f")
        .dense("c", 6)
        .op("sq", Op::Square)
        .dense("d", 6)
        .join("sum", Op::Add, &["d", "sq"])
        .dense("e", 3)
}

/// The rings of a node's inputs and of its output.
fn rings(network: &Network, node: usize) -> Vec<Accumulator> {
    let public = network.public();
    let inputs = public.nodes()[node].inputs.iter();
    inputs.map(|&value| public.accumulator(value)).chain([public.accumulator(node + 1)]).collect()
}

#[test]
fn shortcuts_add_exactly_at_the_scale_of_the_sums() {
    let mut sketch = residual(1);
    let network = compiled(&mut sketch);
    let nodes = network.public().nodes();
    let sums: Vec<usize> =
        (0..nodes.len()).filter(|&node| matches!(nodes[node].op, FixedOp::Add { .. })).collect();
    assert_eq!(sums.len(), 2);
    for sum in sums {
        let FixedOp::Add { factors } = nodes[sum].op else { panic!("{:?}", nodes[sum]) };
        assert!(factors[0] == 1 && factors[1] > 1, "{factors:?}");
        assert!(rings(&network, sum).windows(2).all(|pair| pair[0] == pair[1]));
        let scale = |value: usize| network.values()[value].scale;
        for (input, factor) in nodes[sum].inputs.iter().zip(factors) {
            assert!((factor as f64 * scale(sum + 1) / scale(*input) - 1.0).abs() < 1e-12);
        }
    }
    let (error, same) = agreement(&mut sketch, &network);
    assert!(error < 0.04 && same >= 95, "{error} {same}");
}

#[test]
fn projection_shortcuts_and_slices_with_padding_agree() {
    let start = || Sketch::new(&[4, 8, 8], 2).conv("stem", 4, 3, 1, 1).relu("r0");
    let body = |sketch: Sketch| sketch.resume("r0").conv("a", 8, 3, 2, 1).relu("ra").conv("b", 8, 3, 1, 1);
    let end = |sketch: Sketch| sketch.relu("r").op("gap", Op::GlobalAveragePool).flatten("f").dense("fc", 5);
    let projection = start().conv("short", 8, 1, 2, 0);
    let mut projection = end(body(projection).clone_join("s", "short"));
    let slice = Op::Slice { starts: vec![0, 0, 0], sizes: vec![4, 4, 4], steps: vec![1, 2, 2] };
    let pad = Op::Pad { before: vec![2, 0, 0], after: vec![2, 0, 0] };
    let mut padded = end(body(start().op("slice", slice).op("pad", pad)).clone_join("s", "pad"));
    for sketch in [&mut projection, &mut padded] {
        let network = compiled(sketch);
        let (error, _) = agreement(sketch, &network);
        assert!(error < 0.04, "{error}");
    }
}

#[test]
fn activations_before_the_layers_leave_a_stream_of_whole_sums() {
    let mut sketch = Sketch::new(&[3, 8, 8], 3).conv("s0", 6, 3, 1, 1);
    for block in 1..4 {
        let shortcut = sketch.graph.output.clone();
        sketch = sketch.relu(&format!("r{block}")).conv(&format!("c{block}"), 6, 3, 1, 1);
        let last = sketch.graph.output.clone();
        sketch = sketch.join(&format!("s{block}"), Op::Add, &[&last, &shortcut]);
    }
    let mut sketch = sketch.relu("r").op("gap", Op::GlobalAveragePool).flatten("f").dense("fc", 5);
    let network = compiled(&mut sketch);
    let (error, _) = agreement(&mut sketch, &network);
    assert!(error < 0.03, "{error}");
}

#[test]
fn inverted_residuals_with_groups_and_dilations_agree() {
    let clip = || Op::Clip(Clip { min: Some(0.0), max: Some(6.0) });
    let mut sketch = Sketch::new(&[4, 8, 8], 4)
        .conv("linear", 4, 1, 1, 0)
        .conv("expand", 12, 1, 1, 0)
        .op("k1", clip())
        .grouped("depthwise", 12, 12, 1, 1)
        .op("k2", clip())
        .conv("project", 4, 1, 1, 0)
        .join("sum", Op::Add, &["project", "linear"])
        .grouped("groups", 8, 2, 1, 2)
        .relu("r")
        .flatten("f")
        .dense("fc", 5);
    let network = compiled(&mut sketch);
    let (error, _) = agreement(&mut sketch, &network);
    assert!(error < 0.05, "{error}");
}

#[test]
fn joined_branches_come_at_one_scale() {
    let branch = Op::Concat { axis: 0 };
    let mut sketch = Sketch::new(&[3, 8, 8], 5)
        .conv("a", 4, 3, 1, 1)
        .relu("ra")
        .resume("x")
        .conv("b", 4, 5, 1, 2)
        .mul_constant("m", &[], 1.7)
        .relu("rb")
        .join("both", branch.clone(), &["ra", "rb", "x"])
        .conv("c", 4, 3, 1, 1)
        .join("wide", branch, &["c", "ra"])
        .relu("rc")
        .flatten("f")
        .dense("fc", 5);
    let network = compiled(&mut sketch);
    let (error, _) = agreement(&mut sketch, &network);
    assert!(error < 0.03, "{error}");
    let nodes = network.public().nodes();
    for (index, node) in
        nodes.iter().enumerate().filter(|(_, node)| matches!(node.op, FixedOp::Concat { .. }))
    {
        for &value in &node.inputs {
            let ratio = network.values()[value].scale / network.values()[index + 1].scale;
            assert!((ratio - 1.0).abs() <= 1.0 / 512.0, "{} {ratio}", node.name);
        }
    }
}

#[test]
fn squares_keep_their_doubled_scale() {
    let mut sketch = Sketch::new(&[1, 8, 8], 6)
        .conv("c", 5, 3, 2, 1)
        .op("sq1", Op::Square)
        .flatten("f")
        .dense("fc1", 20)
        .join("sq2", Op::Mul, &["fc1", "fc1"])
        .dense("fc2", 10);
    let network = compiled(&mut sketch);
    // The first square takes its sums whole; no ring holds the second's.
    let expected = ["Conv2d", "Square", "Reshape", "Linear", "Rescale", "Square", "Linear"];
    assert_eq!(ops(&network), expected);
    let values = network.values();
    assert!((values[2].scale - values[1].scale * values[1].scale).abs() < 1e-20);
    let (error, same) = agreement(&mut sketch, &network);
    assert!(error < 0.08 && same >= 95, "{error} {same}");
}

#[test]
fn squares_are_rescaled_where_the_rings_offered_are_small() {
    let mut sketch = Sketch::new(&[6], 7).dense("a", 4).op("sq", Op::Square).dense("b", 3);
    let calibration = sketch.samples(40, 0.0, 1.0);
    let accumulators = Accumulator::PRIMES.into_iter().filter(|ring| ring.bits() <= 24).collect();
    let options = QuantizationOptions { accumulators, ..Default::default() };
    let network = compile(&sketch.graph, &sketch.tensors, &calibration, &options).unwrap();
    assert_eq!(ops(&network), ["Linear", "Rescale", "Square", "Linear"]);
    let (error, _) = agreement(&mut sketch, &network);
    assert!(error < 0.03, "{error}");
}

/// Squares of squares, which run away on large inputs, with a given number of samples of which the last few are large.
fn runaways(count: usize, large: usize) -> (Sketch, Result<Network, CompileError>) {
    let mut sketch = Sketch::new(&[8], 21)
        .dense("a", 8)
        .op("sq1", Op::Square)
        .dense("b", 8)
        .op("sq2", Op::Square)
        .dense("c", 8)
        .op("sq3", Op::Square)
        .dense("d", 4);
    let mut calibration = sketch.samples(count, 0.0, 1.0);
    calibration.iter_mut().rev().take(8 * large).for_each(|x| *x *= 30.0);
    let options = QuantizationOptions::default();
    let network = compile(&sketch.graph, &sketch.tensors, &calibration, &options);
    (sketch, network)
}

#[test]
fn a_sample_in_a_hundred_on_which_a_network_runs_away_is_set_aside() {
    let (mut sketch, network) = runaways(200, 2);
    let network = network.unwrap();
    assert_eq!(network.set_aside(), 2);
    let (error, same) = agreement(&mut sketch, &network);
    assert!(error < 0.05 && same >= 95, "{error} {same}");
    let (manifest, weights) = network.to_parts().unwrap();
    assert_eq!(Network::from_parts(manifest, &weights).unwrap(), network);
}

#[test]
fn more_runaways_are_refused() {
    let (_, network) = runaways(200, 3);
    assert!(matches!(network, Err(CompileError::RangeOverflow { .. })), "{network:?}");
    let (_, network) = runaways(200, 0);
    assert_eq!(network.unwrap().set_aside(), 0);
}

#[test]
fn a_square_that_fits_whole_needs_no_circuit() {
    let mut sketch = Sketch::new(&[6], 7).dense("a", 4).op("sq", Op::Square).dense("b", 3);
    let calibration = sketch.samples(40, 0.0, 1.0);
    let options = QuantizationOptions {
        activation_bits: 5,
        min_weight_bits: 6,
        max_weight_bits: 12,
        ..Default::default()
    };
    let network = compile(&sketch.graph, &sketch.tensors, &calibration, &options).unwrap();
    assert_eq!(ops(&network), ["Linear", "Square", "Linear"]);
    let (error, _) = agreement(&mut sketch, &network);
    assert!(error < 0.2, "{error}");
}

#[test]
fn bits_with_which_no_join_finds_a_scale_are_not_chosen() {
    let mut sketch = Sketch::new(&[6], 7)
        .dense("a", 4)
        .op("clip", Op::Clip(Clip { min: Some(0.0), max: Some(1.0) }))
        .add_constant("moved", &[4])
        .op("sq", Op::Square)
        .resume("a")
        .relu("r")
        .join("sum", Op::Add, &["sq", "r"])
        .dense("b", 3);
    let network = compiled(&mut sketch);
    let (error, _) = agreement(&mut sketch, &network);
    assert!(error < 0.1, "{error}");
}

#[test]
fn a_square_without_a_rescale_before_it_costs_the_layer_behind_no_bits() {
    let mut sketch = Sketch::new(&[6], 19).op("sq", Op::Square).dense("a", 4);
    let network = compiled(&mut sketch);
    assert_eq!(ops(&network), ["Square", "Linear"]);
    assert!(network.values()[2].weights.unwrap().bits >= 8);
    let (error, _) = agreement(&mut sketch, &network);
    assert!(error < 0.01, "{error}");
}

#[test]
fn polynomial_activations_agree() {
    let mut sketch = Sketch::new(&[2, 6, 6], 8)
        .conv("c", 4, 3, 1, 1)
        .op("sq", Op::Square)
        .mul_constant("m2", &[1], 0.2)
        .resume("c")
        .mul_constant("m1", &[1], 0.5)
        .join("sum", Op::Add, &["m2", "m1"])
        .add_constant("m0", &[1])
        .conv("d", 4, 3, 1, 1)
        .flatten("f")
        .dense("fc", 5);
    let network = compiled(&mut sketch);
    let (error, _) = agreement(&mut sketch, &network);
    assert!(error < 0.03, "{error}");
}

#[test]
fn differences_of_branches_agree() {
    let mut sketch = Sketch::new(&[8], 9).dense("a", 6).relu("ra");
    sketch.tensors.insert("minus", lanner_network::Tensor::vector(vec![-1.0])).unwrap();
    let negate = Op::MulConstant { value: "minus".into() };
    let mut sketch = sketch
        .op("n", negate)
        .resume("x")
        .dense("b", 6)
        .relu("rb")
        .join("difference", Op::Add, &["rb", "n"])
        .dense("fc", 4);
    let network = compiled(&mut sketch);
    assert!(ops(&network).contains(&"Scale"));
    let (error, _) = agreement(&mut sketch, &network);
    assert!(error < 0.03, "{error}");
}

#[test]
fn values_joined_with_much_smaller_sums_fit_their_ring() {
    let mut sketch = Sketch::new(&[3, 6, 6], 16).conv("a", 4, 3, 1, 1).conv("b", 4, 3, 1, 1);
    sketch.tensors.insert("tiny", lanner_network::Tensor::vector(vec![0.01])).unwrap();
    let mut sketch = sketch
        .op("t", Op::MulConstant { value: "tiny".into() })
        .join("both", Op::Concat { axis: 0 }, &["a", "t"])
        .flatten("f")
        .dense("fc", 4);
    let network = compiled(&mut sketch);
    let (error, _) = agreement(&mut sketch, &network);
    assert!(error < 0.03, "{error}");
}

/// As behind a `HardSwish`, which is a sum of squares: what a layer reads has the bits of both factors, and a mean of it those of its sum, too.
#[test]
fn means_of_squares_that_a_layer_reads_leave_it_room() {
    let mut sketch = Sketch::new(&[3, 12, 12], 18)
        .conv("a", 4, 3, 1, 1)
        .relu("r")
        .op("square", Op::Square)
        .average_pool("mean", 12)
        .flatten("f")
        .dense("fc", 8)
        .relu("s")
        .dense("out", 4);
    let calibration = sketch.samples(32, 0.0, 1.0);
    for bits in [12, 16] {
        let options = options_for(bits, &QuantizationOptions::powers_of_two());
        let network = compile(&sketch.graph, &sketch.tensors, &calibration, &options).unwrap();
        let (error, _) = agreement(&mut sketch, &network);
        assert!(error < 0.02 * f64::from(1 << (16 - bits)) / 16.0, "{bits}: {error}");
    }
}

#[test]
fn a_large_sum_less_what_it_reads_fits_its_ring() {
    for (seed, factor) in (0..8).flat_map(|seed| [10.0, 20.0, 50.0].map(|factor| (seed, factor))) {
        let mut sketch = Sketch::new(&[3, 6, 6], seed).conv("a", 4, 3, 1, 1).relu("r").conv("b", 4, 3, 1, 1);
        sketch.tensors.insert("large", lanner_network::Tensor::vector(vec![factor])).unwrap();
        sketch.tensors.insert("minus", lanner_network::Tensor::vector(vec![-1.0])).unwrap();
        let mut sketch = sketch
            .op("l", Op::MulConstant { value: "large".into() })
            .resume("r")
            .op("n", Op::MulConstant { value: "minus".into() })
            .join("difference", Op::Add, &["l", "n"])
            .flatten("f")
            .dense("fc", 4);
        let network = compiled(&mut sketch);
        let Some(factors) = network.public().nodes().iter().find_map(|node| match node.op {
            FixedOp::Add { factors } => Some(factors),
            _ => None,
        }) else {
            panic!("{:?}", ops(&network));
        };
        // The layer's scale is a whole multiple of what it is joined with, so that the sum needs no finer one.
        assert_eq!(factors[0], 1);
        let (error, _) = agreement(&mut sketch, &network);
        assert!(error < 0.03, "{error}");
    }
}

#[test]
fn slopes_below_zero_round_down_and_then_once() {
    let mut sketch = Sketch::new(&[6], 10)
        .dense("a", 12)
        .op("leaky", Op::LeakyRelu(LeakyRelu { alpha: 0.1 }))
        .dense("b", 3);
    let network = compiled(&mut sketch);
    let (error, _) = agreement(&mut sketch, &network);
    assert!(error < 0.03, "{error}");
    let nodes = network.public().nodes();
    let FixedOp::LeakyRelu(FixedLeakyRelu { numerator, shift }) = nodes[1].op else {
        panic!("{:?}", nodes[1].op)
    };
    let FixedOp::Rescale { shift: bits } = nodes[2].op else { panic!("{:?}", nodes[2].op) };
    let mut values = vec![Vec::new(); 4];
    let x = network.public().input().quantize(&[0.9, 0.1, 0.0, 0.7, 1.0, 0.3]).unwrap();
    let visit = |value: usize, integers: Integers<'_>| {
        if let Integers::Narrow(integers) = integers
            && value < 4
        {
            values[value] = integers.to_vec();
        }
    };
    FixedExecutor::new(&network).unwrap().trace(&x, visit).unwrap();
    assert!(values[1].iter().any(|&x| x < 0));
    for (&x, &y) in values[1].iter().zip(&values[3]) {
        let expected = if x < 0 { rescale(numerator * x, shift + bits) } else { rescale(x, bits) };
        assert_eq!(y, expected);
    }
}

#[test]
fn channels_last_inputs_agree() {
    let mut sketch = Sketch::new(&[6, 6, 2], 11)
        .op("t1", Op::Transpose { axes: vec![2, 0, 1] })
        .conv("c", 4, 3, 1, 1)
        .op("t2", Op::Transpose { axes: vec![1, 2, 0] })
        .relu("r")
        .flatten("f")
        .dense("fc", 3);
    let network = compiled(&mut sketch);
    assert_eq!(ops(&network), ["Transpose", "Conv2d", "Relu", "Rescale", "Transpose", "Reshape", "Linear"]);
    let (error, _) = agreement(&mut sketch, &network);
    assert!(error < 0.03, "{error}");
}

#[test]
fn a_factor_that_differs_by_channel_behind_a_sum_is_a_layer() {
    let sketch = Sketch::new(&[3, 6, 6], 12).conv("a", 4, 3, 1, 1).relu("r");
    let mut sketch = sketch
        .conv("b", 4, 3, 1, 1)
        .join("sum", Op::Add, &["b", "r"])
        .batch_norm("bn", [-2.0, 2.0])
        .relu("r2")
        .flatten("f")
        .dense("fc", 3);
    let network = compiled(&mut sketch);
    let (error, _) = agreement(&mut sketch, &network);
    assert!(error < 0.05, "{error}");
}

#[test]
fn every_operator_in_one_network_agrees() {
    let mut sketch = every_operator(15);
    let network = compiled(&mut sketch);
    for name in
        ["LeakyRelu", "Clip", "Slice", "Pad", "Concat", "MaxPool", "Transpose", "Reshape", "Square", "Add"]
    {
        assert!(ops(&network).contains(&name), "{name}");
    }
    let (error, _) = agreement(&mut sketch, &network);
    assert!(error < 0.05, "{error}");
}

#[test]
fn bounds_of_sums_hold_at_their_worst() {
    // Proved bounds of a sum are the sum of the bounds.
    let mut sketch =
        Sketch::new(&[4], 13).dense("a", 4).join("sum", Op::Add, &["a", "x"]).relu("r").dense("b", 2);
    let network = compiled(&mut sketch);
    let (values, nodes) = (network.values(), network.public().nodes());
    let FixedOp::Add { factors } = nodes[1].op else { panic!("{:?}", nodes[1].op) };
    let factors = factors.map(i128::from);
    assert_eq!(values[2].evidence, Evidence::Proved);
    assert_eq!(values[2].high, factors[0] * values[1].high + factors[1] * values[0].high);
}

#[test]
fn a_value_is_found_by_its_users_and_moves_by_its_sources() {
    let network = compiled(&mut small_network(14));
    let public = network.public();
    for value in 0..public.nodes().len() {
        assert_eq!(public.users(value).collect::<Vec<_>>(), [value]);
    }
    let reshape = public.nodes().iter().position(|node| node.op == FixedOp::Reshape).unwrap();
    let sources = public.sources(reshape).unwrap();
    assert!(sources.iter().enumerate().all(|(at, source)| source.unwrap().element == at));
    assert_eq!(public.sources(0), None);
}
