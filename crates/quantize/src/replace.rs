//! Quadratics in the place of `ReLUs`, for networks whose values stay encrypted.
//!
//! `a x^2 + b x + c` is the least squares' fit to `max(x, 0)` over all that the samples make of a value, so that what is frequent weighs most. Written
//! as `a (x + b / 2a)^2 + c - b^2 / 4a` its constants are folded into the layers around it, and a square is left. `ReLUs` are
//! replaced from the first to the last, each fitted to what the quadratics before it make of the samples.

use lanner_graph::{FloatExecutor, Graph, Node, Op, cores};
use lanner_network::{CompileError, InputError, Tensor, Tensors};

use crate::closeness::largest_score;

/// A graph with quadratics in the place of its `ReLUs`.
#[derive(Clone, Debug, PartialEq)]
pub struct Replaced {
    /// The graph.
    pub graph: Graph,
    /// Its tensors.
    pub tensors: Tensors,
    /// The names of the `ReLUs`, in order; empty where there are none.
    pub relus: Vec<String>,
    /// The calibration samples.
    pub samples: usize,
    /// Those whose label is the same, or of a single score the sign.
    pub labels_kept: usize,
}

/// Replaces every `Relu` that takes values of either sign.
///
/// `calibration` holds one or more samples of the graph's input, one after the other.
///
/// # Errors
/// [`CompileError`] if the graph or its tensors are damaged, or samples are missing, misshapen or not finite.
pub fn replace_relu(graph: &Graph, tensors: &Tensors, calibration: &[f32]) -> Result<Replaced, CompileError> {
    let original = FloatExecutor::new(graph, tensors)?;
    let length = original.input_len().max(1);
    let samples: Vec<&[f32]> = calibration.chunks(length).collect();
    let (mut replaced, mut values, mut relus) = (graph.clone(), tensors.clone(), Vec::new());
    for node in graph.nodes.iter().filter(|node| node.op == Op::Relu) {
        let moments = moments(&replaced, &values, &node.inputs[0], &samples)?;
        if let Some(quadratic) = moments.fit() {
            quadratic.put(&node.name, &mut replaced, &mut values)?;
            relus.push(node.name.clone());
        }
    }
    let executor = FloatExecutor::new(&replaced, &values)?;
    let kept = cores::map(&samples, |sample| {
        Ok(label(&original.run(sample).map_err(|error| refuse(&error))?)
            == label(&executor.run(sample).map_err(|error| refuse(&error))?))
    });
    let kept = kept.into_iter().collect::<Result<Vec<bool>, CompileError>>()?;
    let labels_kept = kept.iter().filter(|kept| **kept).count();
    Ok(Replaced { graph: replaced, tensors: values, relus, samples: samples.len(), labels_kept })
}

/// The index of the largest score; of a single one whether it is above 0.
fn label(scores: &[f32]) -> usize {
    match scores {
        [score] => usize::from(*score > 0.0),
        _ => largest_score(scores),
    }
}

fn refuse(error: &InputError) -> CompileError {
    CompileError::Calibration { reason: error.to_string(), fix: error.fix().to_owned() }
}

/// Sums over values x of a node's input: of `x^k`, and of `x^k max(x, 0)`.
#[derive(Clone, Copy, Default)]
struct Moments {
    powers: [f64; 5],
    rectified: [f64; 3],
}

/// `a x^2 + b x + c`, with a above 0.
struct Quadratic {
    a: f64,
    b: f64,
    c: f64,
}

/// The moments of a value over the samples.
fn moments(
    graph: &Graph,
    tensors: &Tensors,
    value: &str,
    samples: &[&[f32]],
) -> Result<Moments, CompileError> {
    let executor = FloatExecutor::new(graph, tensors)?;
    let number = graph.nodes.iter().position(|node| node.name == value).map_or(0, |index| index + 1);
    let each = cores::map(samples, |sample| {
        Ok(Moments::of(&executor.run_all(sample).map_err(|error| refuse(&error))?[number]))
    });
    let each = each.into_iter().collect::<Result<Vec<_>, CompileError>>()?;
    Ok(each.iter().fold(Moments::default(), |sum, moments| sum.plus(moments)))
}

impl Moments {
    fn of(values: &[f32]) -> Self {
        let mut sums = Self::default();
        for x in values.iter().copied().map(f64::from) {
            let powers = [1.0, x, x * x, x * x * x, x * x * x * x];
            let rectified = [0, 1, 2].map(|k| powers[k] * x.max(0.0));
            sums = sums.plus(&Self { powers, rectified });
        }
        sums
    }

    fn plus(&self, other: &Self) -> Self {
        Self {
            powers: std::array::from_fn(|k| self.powers[k] + other.powers[k]),
            rectified: std::array::from_fn(|k| self.rectified[k] + other.rectified[k]),
        }
    }

    /// The least squares' fit. None where values are too alike for one, or all of one sign, whose best fit is a line.
    fn fit(&self) -> Option<Quadratic> {
        // Over the root of the mean square all moments are near 1.
        let unit = (self.powers[2] / self.powers[0]).sqrt();
        let power = |k: usize| self.powers[k] / self.powers[0] / unit.powi(k as i32);
        let target = |k: usize| self.rectified[k] / self.powers[0] / unit.powi(k as i32 + 1);
        let rows = [0, 1, 2].map(|row| [power(row), power(row + 1), power(row + 2), target(row)]);
        let [c, b, a] = solve(rows)?;
        let quadratic = Quadratic { a: a / unit, b, c: c * unit };
        (a > FLAT && quadratic.a.is_normal()).then_some(quadratic)
    }
}

/// Below this a quadratic over values near 1 is a line.
const FLAT: f64 = 1e-4;

/// The solution of three linear equations, by elimination with the largest pivot; none where they have no single one.
fn solve(mut rows: [[f64; 4]; 3]) -> Option<[f64; 3]> {
    for column in 0..3 {
        let largest = (column..3).max_by(|a, b| rows[*a][column].abs().total_cmp(&rows[*b][column].abs()))?;
        rows.swap(column, largest);
        let pivot = rows[column];
        if pivot[column].is_nan() || pivot[column].abs() < 1e-9 {
            return None;
        }
        for (index, row) in rows.iter_mut().enumerate() {
            let factor = if index == column { 0.0 } else { row[column] / pivot[column] };
            row.iter_mut().zip(pivot).for_each(|(x, pivot)| *x -= factor * pivot);
        }
    }
    Some([0, 1, 2].map(|index| rows[index][3] / rows[index][index]))
}

impl Quadratic {
    /// Puts `a (x + b / 2a)^2 + c - b^2 / 4a` in the place of a node, whose name the result bears.
    fn put(&self, name: &str, graph: &mut Graph, tensors: &mut Tensors) -> Result<(), CompileError> {
        let Self { a, b, c } = *self;
        let Some(index) = graph.nodes.iter().position(|node| node.name == name) else { return Ok(()) };
        let is_used = |graph: &Graph, tensors: &Tensors, name: &str| {
            tensors.get(name).is_some()
                || graph.nodes.iter().any(|node| node.name == name)
                || graph.inputs.iter().any(|input| input.name == name)
        };
        let fresh = |what: &str| {
            let mut fresh = format!("{name}/{what}");
            while is_used(graph, tensors, &fresh) {
                fresh.push('\'');
            }
            fresh
        };
        let [shifted, squared, multiplied] = ["shifted", "squared", "multiplied"].map(fresh);
        let constants = [("shift", b / (2.0 * a)), ("factor", a), ("term", c - b * b / (4.0 * a))];
        let named = constants.map(|(what, value)| (fresh(what), value));
        for (constant, value) in &named {
            tensors.insert(constant, Tensor::vector(vec![*value as f32]))?;
        }
        let [shift, factor, term] = named.map(|(constant, _)| constant);
        let node =
            |name: &str, op, input: &str| Node { name: name.to_owned(), op, inputs: vec![input.to_owned()] };
        let input = graph.nodes[index].inputs[0].clone();
        let nodes = [
            node(&shifted, Op::AddConstant { value: shift }, &input),
            node(&squared, Op::Square, &shifted),
            node(&multiplied, Op::MulConstant { value: factor }, &squared),
            node(name, Op::AddConstant { value: term }, &multiplied),
        ];
        graph.nodes.splice(index..=index, nodes);
        Ok(())
    }
}
