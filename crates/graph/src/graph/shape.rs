//! Wiring checks and shape inference.

use std::collections::BTreeMap;

use lanner_network::product::Matrices;
use lanner_network::tensor::element_count;
use lanner_network::window::MAX_AXIS;
use lanner_network::{CompileError, ConvGeometry, Tensor, Tensors, Window, movement};

use super::{Graph, Node, Op};
use crate::trees::Forest;

/// The largest number of elements of one value.
const MAX_ELEMENTS: usize = 1 << 26;

/// The shape of every value by name.
pub type Shapes = BTreeMap<String, Vec<usize>>;

/// Checks names, order and arity, and infers the shape of every value.
///
/// # Errors
/// [`CompileError`] naming the first node that does not fit.
pub fn infer(graph: &Graph, tensors: &Tensors) -> Result<Shapes, CompileError> {
    graph.check_version()?;
    graph.check_attributes()?;
    let [input] = graph.inputs.as_slice() else {
        return Err(wiring("the inputs", format!("expected one input, found {}", graph.inputs.len())));
    };
    let mut shapes = Shapes::new();
    check_size(&input.name, &input.shape)?;
    shapes.insert(input.name.clone(), input.shape.clone());
    for node in &graph.nodes {
        if node.name.is_empty() || shapes.contains_key(&node.name) {
            return Err(wiring(&node.name, "its name is empty or taken".to_owned()));
        }
        let shape = node_shape(node, &shapes, tensors)?;
        check_size(&node.name, &shape)?;
        shapes.insert(node.name.clone(), shape);
    }
    if graph.output == input.name || !shapes.contains_key(&graph.output) {
        return Err(wiring(&graph.output, "the graph's output must be one of its nodes".to_owned()));
    }
    Ok(shapes)
}

/// Infers the shapes of nodes that were added to a graph whose other shapes are known, in order.
///
/// # Errors
/// [`CompileError`] naming the first node that does not fit.
pub fn infer_added(added: &[Node], shapes: &mut Shapes, tensors: &Tensors) -> Result<(), CompileError> {
    for node in added {
        let shape = node_shape(node, shapes, tensors)?;
        check_size(&node.name, &shape)?;
        shapes.insert(node.name.clone(), shape);
    }
    Ok(())
}

/// The parts of a convolution's geometry that its weight tensor fixes.
///
/// # Errors
/// [`CompileError`] if the weight tensor is missing or has another rank.
pub fn conv_geometry(node: &Node, tensors: &Tensors) -> Result<Option<ConvGeometry>, CompileError> {
    let Op::Conv { weight, strides, pads, dilations, groups, .. } = &node.op else { return Ok(None) };
    let &[out_channels, _, height, width] = tensors.of_node(&node.name, weight)?.shape() else {
        return Err(mismatch(
            node,
            "its weight must have four axes [out, in / groups, height, width]".to_owned(),
        ));
    };
    let (strides, pads, dilations, groups) = (*strides, *pads, *dilations, *groups);
    Ok(Some(ConvGeometry { out_channels, kernel: [height, width], strides, pads, dilations, groups }))
}

fn node_shape(node: &Node, shapes: &Shapes, tensors: &Tensors) -> Result<Vec<usize>, CompileError> {
    let (least, most) = node.op.arity();
    if !(least..=most).contains(&node.inputs.len()) {
        let takes = if least == most { least.to_string() } else { format!("{least} to {most}") };
        let reason = format!("{} expects {takes} input(s), found {}", node.op.name(), node.inputs.len());
        return Err(wiring(&node.name, reason));
    }
    let mut inputs = Vec::with_capacity(node.inputs.len());
    for name in &node.inputs {
        let shape = shapes
            .get(name)
            .ok_or_else(|| wiring(&node.name, format!("its input `{name}` is not computed before it")))?;
        inputs.push(shape.as_slice());
    }
    let x = inputs[0];
    if let Some(op) = node.op.elementwise() {
        op.check().map_err(|reason| mismatch(node, reason))?;
    }
    match &node.op {
        Op::Conv { .. } => conv_shape(node, x, tensors),
        Op::MatMul { weight, bias } => {
            matmul_shape(node, x, tensors.of_node(&node.name, weight)?, bias.as_ref(), tensors)
        }
        Op::BatchNorm { scale, bias, mean, var, eps } => {
            for name in [scale, bias, mean, var] {
                expect_shape(node, tensors.of_node(&node.name, name)?, &x[..1.min(x.len())], name)?;
            }
            check_variance(node, tensors.of_node(&node.name, var)?, *eps)?;
            Ok(x.to_vec())
        }
        Op::AddConstant { value } | Op::MulConstant { value } => {
            let constant = tensors.of_node(&node.name, value)?;
            if constant.broadcasts_to(x) {
                return Ok(x.to_vec());
            }
            let reason =
                format!("its constant has shape {:?}, which does not broadcast to {x:?}", constant.shape());
            Err(mismatch(node, reason))
        }
        Op::MaxPool { kernel, strides, pads } | Op::AveragePool { kernel, strides, pads, .. } => {
            let (kernel, strides, pads) = (*kernel, *strides, *pads);
            pool_shape(node, x, &Window { kernel, strides, pads })
        }
        Op::GlobalAveragePool => Ok(vec![image(node, x)?[0], 1, 1]),
        Op::Flatten => Ok(vec![x.iter().product()]),
        Op::Reshape { shape } if element_count(shape) == element_count(x) => Ok(shape.clone()),
        Op::Reshape { shape } => Err(mismatch(node, format!("cannot reshape {x:?} to {shape:?}"))),
        Op::Add | Op::Mul if inputs[1] != x => Err(mismatch(
            node,
            format!("its inputs have shapes {x:?} and {:?}, which must be equal", inputs[1]),
        )),
        Op::MatrixProduct => {
            let matrices = Matrices::of(x, inputs[1]).map_err(|reason| mismatch(node, reason))?;
            Ok(matrices.product_shape())
        }
        Op::Trees(trees) => Ok(vec![Forest::new(node, trees, x, tensors)?.base.len()]),
        Op::ArgMax => Ok(vec![1]),
        Op::Transpose { axes } => movement::transpose(x, axes).map_err(|reason| mismatch(node, reason)),
        Op::Slice { starts, sizes, steps } => {
            movement::slice(x, starts, sizes, steps).map_err(|reason| mismatch(node, reason))
        }
        Op::Pad { before, after } => movement::pad(x, before, after).map_err(|reason| mismatch(node, reason)),
        Op::Concat { axis } => movement::concat(&inputs, *axis).map_err(|reason| mismatch(node, reason)),
        // Softmax, sums, products and what works on each element alone.
        _ => Ok(x.to_vec()),
    }
}

fn conv_shape(node: &Node, x: &[usize], tensors: &Tensors) -> Result<Vec<usize>, CompileError> {
    let (Op::Conv { weight, bias, .. }, Some(geometry)) = (&node.op, conv_geometry(node, tensors)?) else {
        return Err(mismatch(node, "is not a convolution".to_owned()));
    };
    let output = geometry.output(x).map_err(|reason| mismatch(node, reason))?;
    let [height, width] = geometry.kernel;
    let expected = [geometry.out_channels, x[0] / geometry.groups, height, width];
    expect_shape(node, tensors.of_node(&node.name, weight)?, &expected, weight)?;
    if let Some(name) = bias {
        let tensor = tensors.of_node(&node.name, name)?;
        if tensor.shape() != output {
            expect_shape(node, tensor, &output[..1], name)?;
        }
    }
    Ok(output)
}

fn matmul_shape(
    node: &Node,
    x: &[usize],
    weight: &Tensor,
    bias: Option<&String>,
    tensors: &Tensors,
) -> Result<Vec<usize>, CompileError> {
    let (&[n], &[rows, columns]) = (x, weight.shape()) else {
        let reason =
            format!("expected a vector and a weight of two axes, found {x:?} and {:?}", weight.shape());
        return Err(mismatch(node, reason));
    };
    if n != rows {
        return Err(mismatch(
            node,
            format!("its input has {n} values, and its weight has shape [{rows}, {columns}]"),
        ));
    }
    if let Some(name) = bias {
        expect_shape(node, tensors.of_node(&node.name, name)?, &[columns], name)?;
    }
    Ok(vec![columns])
}

fn pool_shape(node: &Node, x: &[usize], window: &Window) -> Result<Vec<usize>, CompileError> {
    let [channels, height, width] = image(node, x)?;
    let size = window.output([height, width]).map_err(|reason| mismatch(node, reason))?;
    Ok(vec![channels, size[0], size[1]])
}

fn image(node: &Node, x: &[usize]) -> Result<[usize; 3], CompileError> {
    <[usize; 3]>::try_from(x).map_err(|_| {
        mismatch(node, format!("expected an input of shape [channels, height, width], found {x:?}"))
    })
}

fn expect_shape(node: &Node, tensor: &Tensor, expected: &[usize], name: &str) -> Result<(), CompileError> {
    if tensor.shape() == expected {
        return Ok(());
    }
    Err(mismatch(node, format!("tensor `{name}` has shape {:?}, expected {expected:?}", tensor.shape())))
}

fn check_variance(node: &Node, variance: &Tensor, eps: f64) -> Result<(), CompileError> {
    if variance.data().iter().all(|&v| f64::from(v) + eps > 0.0) {
        return Ok(());
    }
    Err(mismatch(node, "variance plus eps must be positive".to_owned()))
}

fn check_size(name: &str, shape: &[usize]) -> Result<(), CompileError> {
    let axes_fit =
        !shape.is_empty() && shape.len() <= 8 && shape.iter().all(|size| (1..=MAX_AXIS).contains(size));
    if axes_fit && element_count(shape).is_some_and(|count| count <= MAX_ELEMENTS) {
        return Ok(());
    }
    Err(wiring(name, format!("its shape {shape:?} is empty, or too large for lanner")))
}

fn wiring(node: &str, reason: String) -> CompileError {
    CompileError::Wiring { node: node.to_owned(), reason }
}

fn mismatch(node: &Node, reason: String) -> CompileError {
    CompileError::Shape { node: node.name.clone(), operator: node.op.name(), reason }
}
