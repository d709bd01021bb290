//! Laws that need whole graphs; a [`Sketch`] draws them with seeded random weights.

mod attention;
mod branches;
mod compiled;
mod equalised;
mod features;
mod files;
mod functions;
mod lookups;
mod made;
mod normalised;
mod operators;
mod parallel;
mod passes;
mod polynomials;
mod powers_of_two;
mod precision;
mod public_half;
mod refusals;
mod repeating;
mod saturation;
mod smooth;
mod tightened;
mod traces;
mod trees;

use lanner_graph::graph::{FORMAT_VERSION, GraphInput, infer};
use lanner_graph::{Graph, Node, Op};
use lanner_network::{Tensor, Tensors};

/// A deterministic generator (`SplitMix64`), so that failures repeat.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in [low, high).
    pub(crate) fn real(&mut self, low: f32, high: f32) -> f32 {
        low + (high - low) * (self.word() >> 40) as f32 / (1 << 24) as f32
    }

    pub(crate) fn reals(&mut self, count: usize, low: f32, high: f32) -> Vec<f32> {
        (0..count).map(|_| self.real(low, high)).collect()
    }
}

/// A chain under construction.
pub(crate) struct Sketch {
    pub(crate) graph: Graph,
    pub(crate) tensors: Tensors,
    pub(crate) random: Random,
}

impl Sketch {
    pub(crate) fn new(shape: &[usize], seed: u64) -> Self {
        let inputs = vec![GraphInput { name: "x".to_owned(), shape: shape.to_vec() }];
        let graph =
            Graph { format_version: FORMAT_VERSION, inputs, nodes: Vec::new(), output: "x".to_owned() };
        Self { graph, tensors: Tensors::default(), random: Random(seed) }
    }

    /// The shape of the last value.
    pub(crate) fn shape(&self) -> Vec<usize> {
        if self.graph.output == self.graph.inputs[0].name {
            return self.graph.inputs[0].shape.clone();
        }
        infer(&self.graph, &self.tensors).unwrap()[&self.graph.output].clone()
    }

    pub(crate) fn op(mut self, name: &str, op: Op) -> Self {
        let inputs = vec![self.graph.output.clone()];
        self.graph.nodes.push(Node { name: name.to_owned(), op, inputs });
        name.clone_into(&mut self.graph.output);
        self
    }

    pub(crate) fn tensor(&mut self, name: &str, shape: &[usize], low: f32, high: f32) -> String {
        let data = self.random.reals(shape.iter().product(), low, high);
        self.tensors.insert(name, Tensor::new(shape.to_vec(), data).unwrap()).unwrap();
        name.to_owned()
    }

    pub(crate) fn conv(mut self, name: &str, out: usize, kernel: usize, stride: usize, pad: usize) -> Self {
        let channels = self.shape()[0];
        let bound = (3.0 / (channels * kernel * kernel) as f32).sqrt();
        let weight = self.tensor(&format!("{name}.w"), &[out, channels, kernel, kernel], -bound, bound);
        let bias = Some(self.tensor(&format!("{name}.b"), &[out], -0.1, 0.1));
        let (strides, pads, dilations, groups) = ([stride; 2], [pad; 4], [1, 1], 1);
        self.op(name, Op::Conv { weight, bias, strides, pads, dilations, groups })
    }

    pub(crate) fn dense(mut self, name: &str, out: usize) -> Self {
        let inputs = self.shape()[0];
        let bound = (3.0 / inputs as f32).sqrt();
        let weight = self.tensor(&format!("{name}.w"), &[inputs, out], -bound, bound);
        let bias = Some(self.tensor(&format!("{name}.b"), &[out], -0.1, 0.1));
        self.op(name, Op::MatMul { weight, bias })
    }

    pub(crate) fn batch_norm(mut self, name: &str, scale: [f32; 2]) -> Self {
        let channels = [self.shape()[0]];
        let op = Op::BatchNorm {
            scale: self.tensor(&format!("{name}.scale"), &channels, scale[0], scale[1]),
            bias: self.tensor(&format!("{name}.bias"), &channels, -0.5, 0.5),
            mean: self.tensor(&format!("{name}.mean"), &channels, -0.5, 0.5),
            var: self.tensor(&format!("{name}.var"), &channels, 0.2, 2.0),
            eps: 1e-5,
        };
        self.op(name, op)
    }

    pub(crate) fn add_constant(mut self, name: &str, shape: &[usize]) -> Self {
        let value = self.tensor(&format!("{name}.c"), shape, -0.5, 0.5);
        self.op(name, Op::AddConstant { value })
    }

    pub(crate) fn mul_constant(mut self, name: &str, shape: &[usize], low: f32) -> Self {
        let value = self.tensor(&format!("{name}.c"), shape, low, 2.0);
        self.op(name, Op::MulConstant { value })
    }

    pub(crate) fn relu(self, name: &str) -> Self {
        self.op(name, Op::Relu)
    }

    pub(crate) fn max_pool(self, name: &str, kernel: usize) -> Self {
        self.op(name, Op::MaxPool { kernel: [kernel; 2], strides: [kernel; 2], pads: [0; 4] })
    }

    pub(crate) fn average_pool(self, name: &str, kernel: usize) -> Self {
        let (kernel, strides) = ([kernel; 2], [kernel; 2]);
        self.op(name, Op::AveragePool { kernel, strides, pads: [0; 4], count_include_pad: false })
    }

    pub(crate) fn flatten(self, name: &str) -> Self {
        self.op(name, Op::Flatten)
    }

    /// Samples of the input, one after the other.
    pub(crate) fn samples(&mut self, count: usize, low: f32, high: f32) -> Vec<f32> {
        let size: usize = self.graph.inputs[0].shape.iter().product();
        self.random.reals(count * size, low, high)
    }
}

/// Conv, `Relu`, max-pool twice, then two dense layers: the form of Gazelle's network D, smaller.
pub(crate) fn small_network(seed: u64) -> Sketch {
    Sketch::new(&[1, 14, 14], seed)
        .conv("conv1", 6, 3, 1, 0)
        .relu("relu1")
        .max_pool("pool1", 2)
        .conv("conv2", 8, 3, 1, 1)
        .relu("relu2")
        .max_pool("pool2", 2)
        .flatten("flat")
        .dense("fc1", 24)
        .relu("relu3")
        .dense("fc2", 10)
}
