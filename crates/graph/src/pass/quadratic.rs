//! Quadratic activations as squares: `a x^2 + b x = a (x + b / 2a)^2 - b^2 / 4a`.
//!
//! The sum of two branches becomes a chain, whose constants the layers around it take: a square is all that is left.

use lanner_network::{CompileError, Tensor};

use super::Draft;
use super::constant::values_of;
use crate::graph::{Node, Op, infer};

/// A sum of a multiple of a value's square and a multiple of the value.
struct Quadratic {
    sum: usize,
    value: String,
    /// `a` and `b` of every element.
    square: Vec<f32>,
    linear: Vec<f32>,
}

/// Completes the square of every quadratic activation between linear layers.
pub(super) fn complete(draft: &mut Draft) -> Result<(), CompileError> {
    let mut index = 0;
    while index < draft.graph.nodes.len() {
        if let Some(quadratic) = quadratic(draft, index)? {
            rewrite(draft, &quadratic)?;
        }
        index += 1;
    }
    super::tidy::remove_unused(draft);
    draft.shapes = infer(&draft.graph, &draft.tensors)?;
    Ok(())
}

/// The quadratic that ends with the sum at `index`, if it is one and lies between layers that can take its constants.
fn quadratic(draft: &Draft, sum: usize) -> Result<Option<Quadratic>, CompileError> {
    let node = &draft.graph.nodes[sum];
    if node.op != Op::Add {
        return Ok(None);
    }
    let multiples = [multiple_of(draft, &node.inputs[0])?, multiple_of(draft, &node.inputs[1])?].map(
        |(source, factor)| {
            let squared = draft.producer(&source).filter(|&at| {
                draft.graph.nodes[at].op == Op::Square && draft.only_consumer(&source).is_some()
            });
            (squared.map(|at| draft.graph.nodes[at].inputs[0].clone()), source, factor)
        },
    );
    let (value, square, linear) = match multiples {
        [(Some(of), _, a), (_, value, b)] | [(_, value, b), (Some(of), _, a)] if of == value => (value, a, b),
        _ => return Ok(None),
    };
    let users = draft.graph.nodes.iter().flat_map(|node| &node.inputs).filter(|input| **input == value);
    let only_here = users.count() == 2 && draft.graph.output != value;
    let wanted = only_here && square.iter().all(|a| a.is_normal()) && is_between_layers(draft, &value, sum);
    Ok(wanted.then_some(Quadratic { sum, value, square, linear }))
}

/// The value that `value` is a constant multiple of, and the factor of every element.
fn multiple_of(draft: &Draft, value: &str) -> Result<(String, Vec<f32>), CompileError> {
    let multiplied = draft.producer(value).filter(|&at| {
        matches!(draft.graph.nodes[at].op, Op::MulConstant { .. }) && draft.only_consumer(value).is_some()
    });
    match multiplied {
        Some(at) => Ok((draft.graph.nodes[at].inputs[0].clone(), values_of(draft, at)?)),
        None => Ok((value.to_owned(), vec![1.0; draft.shape_of(value).iter().product()])),
    }
}

/// Whether a layer makes `value`, constants aside, and one takes what follows `sum`, whatever moves or averages between.
fn is_between_layers(draft: &Draft, value: &str, sum: usize) -> bool {
    let is_constant = |op: &Op| matches!(op, Op::AddConstant { .. } | Op::MulConstant { .. });
    let mut before = draft.producer(value);
    while let Some(at) = before.filter(|&at| is_constant(&draft.graph.nodes[at].op)) {
        before = draft.chained_before(at);
    }
    let passes = |op: &Op| {
        let moves = matches!(op, Op::Flatten | Op::Reshape { .. } | Op::Transpose { .. });
        let averages = match op {
            Op::AveragePool { pads, .. } => *pads == [0; 4],
            Op::GlobalAveragePool => true,
            _ => false,
        };
        is_constant(op) || moves || averages
    };
    let mut behind = draft.only_consumer(&draft.graph.nodes[sum].name);
    while let Some(at) = behind.filter(|&at| passes(&draft.graph.nodes[at].op)) {
        behind = draft.only_consumer(&draft.graph.nodes[at].name);
    }
    let is_layer = |at: Option<usize>| at.is_some_and(|at| draft.graph.nodes[at].op.is_linear());
    is_layer(before) && is_layer(behind)
}

/// Puts `a (x + b / 2a)^2 - b^2 / 4a` in the place of the sum.
fn rewrite(draft: &mut Draft, quadratic: &Quadratic) -> Result<(), CompileError> {
    let Quadratic { sum, value, square, linear } = quadratic;
    let of_both = |f: fn(f64, f64) -> f64| {
        square.iter().zip(linear).map(|(a, b)| f(f64::from(*a), f64::from(*b)) as f32).collect::<Vec<_>>()
    };
    let name = draft.graph.nodes[*sum].name.clone();
    let (shifted, squared, multiplied) = (
        draft.fresh_name(format!("{name}/shifted")),
        draft.fresh_name(format!("{name}/squared")),
        draft.fresh_name(format!("{name}/multiplied")),
    );
    let shape = draft.shape_of(value).to_vec();
    let mut constant = |what: &str, values: Vec<f32>| {
        let tensor = Tensor::new(shape.clone(), values).unwrap_or_else(|| Tensor::vector(Vec::new()));
        draft.add_tensor(&format!("{name}/{what}"), tensor)
    };
    let shift = Op::AddConstant { value: constant("shift", of_both(|a, b| b / (2.0 * a)))? };
    let factor = Op::MulConstant { value: constant("factor", square.clone())? };
    let term = Op::AddConstant { value: constant("term", of_both(|a, b| -b * b / (4.0 * a)))? };
    let node =
        |name: &String, op, input: &String| Node { name: name.clone(), op, inputs: vec![input.clone()] };
    let nodes = [
        node(&shifted, shift, value),
        node(&squared, Op::Square, &shifted),
        node(&multiplied, factor, &squared),
        node(&name, term, &multiplied),
    ];
    draft.graph.nodes.splice(*sum..=*sum, nodes);
    // The old branches would count as users of the value.
    super::tidy::remove_unused(draft);
    draft.shapes = infer(&draft.graph, &draft.tensors)?;
    Ok(())
}
