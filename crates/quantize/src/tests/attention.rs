//! Attention and normalisation by a sample's own statistics, in the operators that importers lower them to.

use lanner_graph::Op;
use lanner_graph::elementwise::{Function, Within};
use lanner_network::{FixedOp, Network, Tensor};

use super::Sketch;
use super::compiled::agreement;
use super::smooth::at_bits;
use crate::{QuantizationOptions, compile};

const LINES: usize = 5;
const LENGTH: usize = 6;

fn within(of: Function, low: Option<f32>, high: Option<f32>) -> Op {
    Op::Function(Function::Within(Within { of: Box::new(of), low, high }))
}

impl Sketch {
    fn factor(mut self, name: &str, factor: f32) -> Self {
        self.tensors.insert(name, Tensor::new(vec![], vec![factor]).unwrap()).unwrap();
        let value = name.to_owned();
        self.op(name, Op::MulConstant { value })
    }

    /// `repeated` is a value of each line for each of its elements.
    fn along_lines(self, name: &str) -> Self {
        let each = self.graph.output.clone();
        self.join(name, Op::Concat { axis: 1 }, &[each.as_str(); LENGTH])
    }

    /// The softmax of the lines of `x`, an image of them, as `softmax`.
    fn softmax(self, x: &str) -> Self {
        let pool = Op::MaxPool { kernel: [LENGTH, 1], strides: [1, 1], pads: [0; 4] };
        self.resume(x)
            .op("largest", pool)
            .along_lines("largest of lines")
            .factor("less", -1.0)
            .join("differences", Op::Add, &[x, "less"])
            .op("powers", within(Function::Exp, None, Some(0.0)))
            .op("mean power", Op::GlobalAveragePool)
            .factor("sum", LENGTH as f32)
            .op("inverse", within(Function::Reciprocal, Some(1.0), Some(LENGTH as f32)))
            .join("softmax", Op::MatrixProduct, &["powers", "inverse"])
    }
}

fn lines(seed: u64, steepness: f32) -> Sketch {
    Sketch::new(&[8], seed)
        .dense("a", LINES * LENGTH)
        .factor("steep", steepness)
        .op("lines", Op::Reshape { shape: vec![LINES, LENGTH, 1] })
}

#[test]
fn softmaxes_agree_and_more_bits_agree_more() {
    let errors = [8, 12].map(|bits| {
        let mut sketch = lines(1, 3.0).softmax("lines").op("flat", Op::Flatten).dense("b", 4);
        let network = at_bits(&mut sketch, bits).unwrap();
        agreement(&mut sketch, &network).0
    });
    assert!(errors[0] < 0.03 && errors[1] < 0.003, "{errors:?}");
}

/// One element far above all others, and all alike, though calibration saw neither.
#[test]
fn softmaxes_are_right_far_outside_what_calibration_saw() {
    for seen in [[0.0, 0.5], [0.2, 0.8]] {
        let mut sketch = lines(2, 30.0).softmax("lines").op("flat", Op::Flatten).dense("b", 4);
        let calibration = sketch.samples(60, seen[0], seen[1]);
        let base = QuantizationOptions::powers_of_two();
        let options = QuantizationOptions { input_range: Some([0.0, 1.0]), activation_bits: 10, ..base };
        let network = compile(&sketch.graph, &sketch.tensors, &calibration, &options).unwrap();
        let (error, _) = agreement(&mut sketch, &network);
        assert!(error < 0.03, "{seen:?}: {error}");
    }
}

fn shifts_before(network: &Network, op: &str) -> usize {
    let nodes = network.public().nodes();
    let takes = |node: &&lanner_network::FixedNode| node.op.name() == op;
    let rescaled = |value: &usize| matches!(nodes[value - 1].op, FixedOp::Rescale { .. });
    nodes.iter().filter(takes).flat_map(|node| node.inputs.iter()).filter(|value| rescaled(value)).count()
}

/// The maximum is compared, and taken off, of few bits, so that no difference is above 0.
#[test]
fn a_value_is_rescaled_before_its_maximum_is_taken_off() {
    let mut sketch = lines(3, 3.0).softmax("lines").op("flat", Op::Flatten).dense("b", 4);
    let network = at_bits(&mut sketch, 10).unwrap();
    assert_eq!(shifts_before(&network, "MaxPool"), 1);
    let differences = network.public().nodes().iter().find(|node| node.name == "differences").unwrap();
    assert_eq!(differences.op, FixedOp::Add { factors: [1, 1] });
}

#[test]
fn products_of_matrices_of_two_values_agree() {
    for bits in [8, 12] {
        let mut sketch = Sketch::new(&[8], 4)
            .dense("a", 24)
            .op("left", Op::Reshape { shape: vec![2, 3, 4] })
            .resume("x")
            .dense("b", 40)
            .op("right", Op::Reshape { shape: vec![2, 4, 5] })
            .join("product", Op::MatrixProduct, &["left", "right"])
            .op("flat", Op::Flatten)
            .dense("c", 6);
        let network = at_bits(&mut sketch, bits).unwrap();
        assert_eq!(shifts_before(&network, "MatrixProduct"), 2);
        let (error, _) = agreement(&mut sketch, &network);
        assert!(error < [0.03, 0.003][usize::from(bits == 12)], "{bits}: {error}");
    }
}

#[test]
fn normalised_lines_agree() {
    for (bits, most) in [(8, 0.05), (12, 0.005)] {
        let mut sketch = lines(5, 3.0)
            .op("mean", Op::GlobalAveragePool)
            .along_lines("means")
            .factor("less", -1.0)
            .join("centred", Op::Add, &["lines", "less"])
            .op("squares", Op::Square)
            .op("variance", Op::GlobalAveragePool)
            .op("inverse", Op::Function(Function::Power { exponent: -0.5, term: 1e-5 }))
            .join("normal", Op::MatrixProduct, &["centred", "inverse"])
            .op("flat", Op::Flatten)
            .dense("b", 4);
        let network = at_bits(&mut sketch, bits).unwrap();
        let (error, _) = agreement(&mut sketch, &network);
        assert!(error < most, "{bits}: {error}");
        // The sums that the root is taken of have lost the bits that a span has no use for, each more than the one before.
        let spans = network.public().nodes().iter().filter(|node| node.op.name() == "Function").count();
        assert!(spans > 1 && shifts_before(&network, "Function") == spans);
    }
}

/// Variances that are thousands of times apart: functions add up, of fine small ones and of coarser large ones.
#[test]
fn roots_of_values_that_are_orders_of_magnitude_apart_agree() {
    let mut sketch = Sketch::new(&[6], 7)
        .dense("a", 8)
        .op("square", Op::Square)
        .op("lines", Op::Reshape { shape: vec![4, 2, 1] })
        .op("mean", Op::GlobalAveragePool)
        .op("inverse", Op::Function(Function::Power { exponent: -0.5, term: 1e-3 }))
        .op("flat", Op::Flatten)
        .dense("b", 3);
    let network = at_bits(&mut sketch, 14).unwrap();
    let functions: Vec<&str> = network
        .public()
        .nodes()
        .iter()
        .filter(|node| node.op.name() == "Function")
        .map(|node| &*node.name)
        .collect();
    assert_eq!(functions, ["inverse/small", "inverse/large"]);
    for value in network.values().iter().filter_map(|value| value.function) {
        assert!(value.error <= 2.0, "{value:?}");
    }
}

/// Sums of hundreds of exponentials, of which one may be all.
#[test]
fn reciprocals_of_sums_of_many_are_halved() {
    let mut sketch =
        Sketch::new(&[6], 8).dense("a", 8).op("s", Op::Function(Function::Sigmoid)).factor("c", 300.0);
    sketch.tensors.insert("one", Tensor::new(vec![], vec![1.0]).unwrap()).unwrap();
    let value = "one".to_owned();
    let mut sketch = sketch
        .op("sum", Op::AddConstant { value })
        .op("inverse", within(Function::Reciprocal, Some(1.0), Some(301.0)))
        .dense("b", 3);
    let network = at_bits(&mut sketch, 12).unwrap();
    let functions = network.public().nodes().iter().filter(|node| node.name.starts_with("inverse/")).count();
    assert_eq!(functions, 3);
    let (error, _) = agreement(&mut sketch, &network);
    assert!(error < 0.01, "{error}");
}

/// Constants in front of several layers enter all of them.
#[test]
fn layers_that_share_an_input_take_its_constants() {
    let mut sketch = Sketch::new(&[6], 6)
        .dense("a", 8)
        .relu("r")
        .mul_constant("scale", &[8], 0.5)
        .add_constant("shift", &[8])
        .dense("q", 4)
        .resume("shift")
        .dense("k", 4)
        .join("sum", Op::Mul, &["q", "k"])
        .dense("c", 3);
    let network = at_bits(&mut sketch, 12).unwrap();
    let layers = network.public().nodes().iter().filter(|node| node.op.is_linear()).count();
    assert_eq!(layers, 4);
    let (error, _) = agreement(&mut sketch, &network);
    assert!(error < 0.003, "{error}");
}
