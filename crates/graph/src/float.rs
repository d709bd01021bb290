//! The meaning of a float graph: ONNX's operators in `f32`, one sample at a time.
//!
//! Calibration and the float side of accuracy reports run on it. Sums are in `f32` in this crate's own order, so results agree with
//! other runtimes to rounding, not bit for bit.

use std::collections::BTreeMap;

use lanner_network::kernel::{add_columns, add_conv, fold_windows};
use lanner_network::movement::Moves;
use lanner_network::product::Matrices;
use lanner_network::shape::{area, check_input, image, per_channel_or_whole};
use lanner_network::{CompileError, ConvGeometry, InputError, Tensors, Window};

use crate::elementwise::Elementwise;
use crate::graph::{Graph, Node, Op, conv_geometry, infer};
use crate::trees::Forest;

/// Runs a checked float graph.
#[derive(Debug)]
pub struct FloatExecutor<'a> {
    input_shape: Vec<usize>,
    steps: Vec<Step<'a>>,
    output: usize,
}

/// A node ready to run; values are numbered, the input first.
#[derive(Debug)]
struct Step<'a> {
    kind: Kind<'a>,
    inputs: Vec<usize>,
    in_shape: Vec<usize>,
    out_shape: Vec<usize>,
}

#[derive(Debug)]
enum Kind<'a> {
    Conv {
        weight: &'a [f32],
        bias: Vec<f32>,
        geometry: ConvGeometry,
    },
    MatMul {
        weight: &'a [f32],
        bias: Vec<f32>,
    },
    /// `x * scale + shift`, element by element.
    Affine {
        scale: Vec<f32>,
        shift: Vec<f32>,
    },
    Elementwise(&'a dyn Elementwise),
    MaxPool(Window),
    AveragePool {
        window: Window,
        count_include_pad: bool,
    },
    Copy,
    Move(Moves),
    Add,
    Mul,
    MatrixProduct(Matrices),
    Trees(Forest),
    Softmax,
    ArgMax,
}

impl<'a> FloatExecutor<'a> {
    /// Checks the graph and prepares it.
    ///
    /// # Errors
    /// [`CompileError`] naming the node whose wiring, shape or tensor is wrong.
    pub fn new(graph: &'a Graph, tensors: &'a Tensors) -> Result<Self, CompileError> {
        let shapes = infer(graph, tensors)?;
        let names =
            graph.inputs.iter().map(|input| &input.name).chain(graph.nodes.iter().map(|node| &node.name));
        let ids: BTreeMap<&String, usize> = names.enumerate().map(|(id, name)| (name, id)).collect();
        let mut steps = Vec::with_capacity(graph.nodes.len());
        for node in &graph.nodes {
            let (in_shape, out_shape) = (shapes[&node.inputs[0]].clone(), shapes[&node.name].clone());
            let in_shapes: Vec<&[usize]> = node.inputs.iter().map(|name| shapes[name].as_slice()).collect();
            let kind = prepare(node, tensors, &in_shapes, &out_shape)?;
            steps.push(Step {
                kind,
                inputs: node.inputs.iter().map(|name| ids[name]).collect(),
                in_shape,
                out_shape,
            });
        }
        Ok(Self { input_shape: graph.inputs[0].shape.clone(), steps, output: ids[&graph.output] })
    }

    /// The number of values of an input.
    #[must_use]
    pub fn input_len(&self) -> usize {
        self.input_shape.iter().product()
    }

    /// The number of values of the output.
    #[must_use]
    pub fn output_len(&self) -> usize {
        self.steps[self.output - 1].out_shape.iter().product()
    }

    /// The output for one input, row-major, without the batch axis.
    ///
    /// # Errors
    /// [`InputError::Length`] or [`InputError::NotFinite`].
    pub fn run(&self, input: &[f32]) -> Result<Vec<f32>, InputError> {
        Ok(self.run_all(input)?.swap_remove(self.output))
    }

    /// Every value for one input: the input, then each node's in order.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn run_all(&self, input: &[f32]) -> Result<Vec<Vec<f32>>, InputError> {
        check_input(input, &self.input_shape)?;
        let mut values = Vec::with_capacity(self.steps.len() + 1);
        values.push(input.to_vec());
        for step in &self.steps {
            let output = step.run(&values);
            values.push(output);
        }
        Ok(values)
    }
}

fn prepare<'a>(
    node: &'a Node,
    tensors: &'a Tensors,
    inputs: &[&[usize]],
    y: &[usize],
) -> Result<Kind<'a>, CompileError> {
    let x = inputs[0];
    let tensor = |name: &str| tensors.of_node(&node.name, name);
    let repeated = |name: &str, shape: &[usize]| -> Result<Vec<f32>, CompileError> {
        // Inference checked that constants broadcast.
        Ok(tensor(name)?.broadcast(shape).unwrap_or_default())
    };
    Ok(match &node.op {
        Op::Conv { weight, bias, .. } => {
            let unknown = || CompileError::UnknownTensor { node: node.name.clone(), tensor: weight.clone() };
            let geometry = conv_geometry(node, tensors)?.ok_or_else(unknown)?;
            let bias = match bias {
                Some(name) => per_channel_or_whole(tensor(name)?.data(), y),
                None => vec![0.0; y.iter().product()],
            };
            Kind::Conv { weight: tensor(weight)?.data(), bias, geometry }
        }
        Op::MatMul { weight, bias } => {
            let bias = bias
                .as_ref()
                .map_or_else(|| Ok(vec![0.0; y[0]]), |name| tensor(name).map(|b| b.data().to_vec()))?;
            Kind::MatMul { weight: tensor(weight)?.data(), bias }
        }
        Op::BatchNorm { scale, bias, mean, var, eps } => {
            let [scale, bias, mean, var] = [tensor(scale)?, tensor(bias)?, tensor(mean)?, tensor(var)?]
                .map(lanner_network::Tensor::data);
            let (scale, shift) = batch_norm_affine(scale, bias, mean, var, *eps);
            Kind::Affine { scale: per_channel_or_whole(&scale, x), shift: per_channel_or_whole(&shift, x) }
        }
        Op::AddConstant { value } => {
            let shift = repeated(value, x)?;
            Kind::Affine { scale: vec![1.0; shift.len()], shift }
        }
        Op::MulConstant { value } => {
            let scale = repeated(value, x)?;
            Kind::Affine { shift: vec![0.0; scale.len()], scale }
        }
        &Op::MaxPool { kernel, strides, pads } => Kind::MaxPool(Window { kernel, strides, pads }),
        &Op::AveragePool { kernel, strides, pads, count_include_pad } => {
            Kind::AveragePool { window: Window { kernel, strides, pads }, count_include_pad }
        }
        Op::GlobalAveragePool => {
            let window = Window { kernel: [x[1], x[2]], strides: [1, 1], pads: [0; 4] };
            Kind::AveragePool { window, count_include_pad: false }
        }
        Op::Flatten | Op::Reshape { .. } => Kind::Copy,
        Op::Add => Kind::Add,
        Op::Mul => Kind::Mul,
        Op::MatrixProduct => Kind::MatrixProduct(
            Matrices::of(x, inputs[1])
                .map_err(|reason| CompileError::Wiring { node: node.name.clone(), reason })?,
        ),
        Op::Transpose { axes } => Kind::Move(Moves::transpose(x, axes)),
        Op::Slice { starts, sizes, steps } => Kind::Move(Moves::slice(x, starts, sizes, steps)),
        Op::Pad { before, .. } => Kind::Move(Moves::pad(x, before, y)),
        Op::Concat { axis } => Kind::Move(Moves::concat(inputs, *axis, y)),
        Op::Trees(trees) => Kind::Trees(Forest::new(node, trees, x, tensors)?),
        Op::Softmax => Kind::Softmax,
        Op::ArgMax => Kind::ArgMax,
        op => Kind::Elementwise(op.elementwise().ok_or_else(|| CompileError::Wiring {
            node: node.name.clone(),
            reason: format!("{} has no meaning in floating point", op.name()),
        })?),
    })
}

/// Batch normalisation as `x * scale + shift`, per channel.
pub(crate) fn batch_norm_affine(
    scale: &[f32],
    bias: &[f32],
    mean: &[f32],
    var: &[f32],
    eps: f64,
) -> (Vec<f32>, Vec<f32>) {
    let factor = |i: usize| f64::from(scale[i]) / (f64::from(var[i]) + eps).sqrt();
    let shift = |i: usize| f64::from(bias[i]) - f64::from(mean[i]) * factor(i);
    (
        (0..scale.len()).map(|i| factor(i) as f32).collect(),
        (0..scale.len()).map(|i| shift(i) as f32).collect(),
    )
}

impl Step<'_> {
    fn run(&self, values: &[Vec<f32>]) -> Vec<f32> {
        let x = values[self.inputs[0]].as_slice();
        match &self.kind {
            Kind::Conv { weight, bias, geometry } => {
                let mut y = bias.clone();
                add_conv(x, image(&self.in_shape), weight, geometry, area(&self.out_shape), &mut y);
                y
            }
            Kind::MatMul { weight, bias } => {
                let mut y = bias.clone();
                add_columns(x, weight, &mut y);
                y
            }
            Kind::Affine { scale, shift } => {
                x.iter().zip(scale).zip(shift).map(|((x, a), b)| x * a + b).collect()
            }
            Kind::Elementwise(op) => x.iter().map(|&x| op.eval(x)).collect(),
            Kind::MaxPool(window) => self.fold(x, window, f32::max).map(|(y, _)| y).collect(),
            Kind::AveragePool { window, count_include_pad } => {
                let divisor = |count: usize| if *count_include_pad { window.area() } else { count } as f32;
                self.fold(x, window, |sum, x| sum + x).map(|(sum, count)| sum / divisor(count)).collect()
            }
            Kind::Copy => x.to_vec(),
            Kind::Add => x.iter().zip(&values[self.inputs[1]]).map(|(x, y)| x + y).collect(),
            Kind::Mul => x.iter().zip(&values[self.inputs[1]]).map(|(x, y)| x * y).collect(),
            Kind::MatrixProduct(matrices) => {
                let y = &values[self.inputs[1]];
                matrices.products(x, y, |sum, x, y| sum + x * y)
            }
            Kind::Move(moves) => {
                let inputs: Vec<&[f32]> = self.inputs.iter().map(|&id| values[id].as_slice()).collect();
                moves.apply(&inputs)
            }
            Kind::Trees(forest) => forest.eval(x),
            Kind::Softmax => softmax(x, self.in_shape.last().copied().unwrap_or(1)),
            Kind::ArgMax => vec![arg_max(x) as f32],
        }
    }

    fn fold(
        &self,
        x: &[f32],
        window: &Window,
        fold: impl Fn(f32, f32) -> f32,
    ) -> impl Iterator<Item = (f32, usize)> {
        fold_windows(x, image(&self.in_shape), window, area(&self.out_shape), fold).into_iter()
    }
}

fn softmax(x: &[f32], classes: usize) -> Vec<f32> {
    x.chunks_exact(classes)
        .flat_map(|row| {
            let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let terms: Vec<f32> = row.iter().map(|x| (x - largest).exp()).collect();
            let sum: f32 = terms.iter().sum();
            terms.into_iter().map(move |term| term / sum)
        })
        .collect()
}

fn arg_max(x: &[f32]) -> usize {
    x.iter().enumerate().fold(0, |best, (i, value)| if *value > x[best] { i } else { best })
}
