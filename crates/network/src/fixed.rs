//! The exact fixed-point reference: every protocol's output integers equal these.

use std::collections::BTreeMap;

use crate::accumulator::Accumulator;
use crate::elementwise::FixedElementwise;
use crate::integer::{Integer, Integers, MOST_NEAREST, confine, nearest};
use crate::kernel::{Sum, add_conv, add_rows, add_wide_conv, fold_windows, is_wide};
use crate::movement::Moves;
use crate::network::{FixedNode, FixedOp, FunctionFit, LinearWeights, Network, machine_bounds, sum_bound};
use crate::shape::{area, image};
use crate::stage::Stage;
use crate::{CompileError, InputError, product};

/// Runs a compiled network on integers.
///
/// A sum beyond what its ring allows is counted and comes back into the ring as the protocol's would; with a count of zero the output
/// is exactly the protocol's.
#[derive(Debug)]
pub struct FixedExecutor<'a> {
    pub(crate) network: &'a Network,
    layers: BTreeMap<usize, Layer>,
    moves: BTreeMap<usize, Moves>,
    /// The last node that uses each value; the output's own number for the output.
    last_uses: Vec<usize>,
    /// Whether a ring is so large that values are integers of 128 bits.
    is_wide: bool,
}

/// A linear layer's integers in the narrowest types that hold the inputs and every partial sum.
#[derive(Debug)]
enum Layer {
    /// A wide convolution in floats of 64 bits, which hold every partial sum exactly.
    Floating {
        weight: Vec<i32>,
        bias: Vec<i64>,
        /// Whether inputs are of 32 bits.
        is_small: bool,
    },
    /// Inputs and sums of 32 bits.
    Narrow { weight: Vec<i32>, bias: Vec<i32> },
    /// Inputs of 32 bits, sums of 64.
    Mixed { weight: Vec<i32>, bias: Vec<i64> },
    /// Inputs and sums of 64 bits.
    Wide { weight: Vec<i64>, bias: Vec<i64> },
    /// Inputs and sums of 128 bits.
    Widest { weight: Vec<i128>, bias: Vec<i128> },
}

/// The outcome of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixedRun {
    /// The output integers; real score = integer * output scale.
    pub output: Vec<i128>,
    /// For each node, how many of its sums lay outside what the ring allows.
    pub overflows: Vec<usize>,
    /// For each node, how many values reached an upper bound of the compiler's own.
    pub saturated: Vec<usize>,
}

/// What of a run's values is not what the model's own are, for each node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Beyond {
    /// How many of its sums lay outside what the ring allows.
    pub overflows: Vec<usize>,
    /// How many values reached an upper bound of the compiler's own: see [`Calibrated::saturates`](crate::network::Calibrated).
    pub saturated: Vec<usize>,
}

impl FixedRun {
    /// The index of the largest score, the lowest of equals.
    #[must_use]
    pub fn label(&self) -> usize {
        arg_max(&self.output)
    }

    /// The indices of the `k` largest scores in order, the lowest index first among equals.
    #[must_use]
    pub fn best(&self, k: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.output.len()).collect();
        order.sort_by_key(|&index| (std::cmp::Reverse(self.output[index]), index));
        order.truncate(k);
        order
    }

    /// The label's softmax probability, for scores in units of `scale`. Floating point: what a protocol reveals to some digits is within
    /// one unit of the last.
    #[must_use]
    pub fn probability(&self, scale: f64) -> f64 {
        let largest = self.output.iter().max().copied().unwrap_or(0);
        1.0 / self.output.iter().map(|score| ((score - largest) as f64 * scale).exp()).sum::<f64>()
    }

    /// Sums outside what their rings allow, over all nodes.
    #[must_use]
    pub fn overflow_count(&self) -> usize {
        self.overflows.iter().sum()
    }

    /// Values that reached upper bounds of the compiler's own, over all nodes.
    #[must_use]
    pub fn saturated_count(&self) -> usize {
        self.saturated.iter().sum()
    }

    /// Whether the result may be another than the model's, as some value was beyond what the network has room for: it saturated, or left its ring.
    #[must_use]
    pub fn is_saturated(&self) -> bool {
        self.saturated_count() + self.overflow_count() > 0
    }
}

/// The index of the largest value, the lowest of equals; 0 for no values.
#[must_use]
pub fn arg_max<T: Ord>(values: &[T]) -> usize {
    values.iter().enumerate().fold(0, |best, (i, value)| if *value > values[best] { i } else { best })
}

impl<'a> FixedExecutor<'a> {
    /// Prepares the layers.
    ///
    /// # Errors
    /// [`CompileError::Network`]; never for a checked network.
    pub fn new(network: &'a Network) -> Result<Self, CompileError> {
        let weights: BTreeMap<usize, LinearWeights> = (0..network.public().nodes().len())
            .filter_map(|index| Some((index, network.weights(index)?.clone())))
            .collect();
        let bounds = machine_bounds(network.public(), &weights)?;
        let nodes = network.public().nodes();
        let is_wide = network.public().is_wide();
        let prepare = |(index, layer): (usize, LinearWeights)| {
            let magnitude = bounds[nodes[index].inputs[0]];
            (index, Layer::new(&layer, &nodes[index], magnitude, is_wide))
        };
        let moves = (0..nodes.len()).filter(|&index| !matches!(nodes[index].op, FixedOp::Reshape));
        let moves = moves.filter_map(|index| Some((index, network.public().moves(index)?))).collect();
        let mut last_uses: Vec<usize> = (0..=nodes.len()).collect();
        for (index, node) in nodes.iter().enumerate() {
            node.inputs.iter().for_each(|&value| last_uses[value] = index);
        }
        last_uses[nodes.len()] = nodes.len();
        Ok(Self { network, layers: weights.into_iter().map(prepare).collect(), moves, last_uses, is_wide })
    }

    /// Quantises a real input and runs it.
    ///
    /// # Errors
    /// [`InputError`] if the input is misshapen, not finite or out of range.
    pub fn run_real(&self, input: &[f32]) -> Result<FixedRun, InputError> {
        self.run(&self.network.public().input().quantize(input)?)
    }

    /// Runs a quantised input.
    ///
    /// # Errors
    /// [`InputError`] if the input is misshapen or out of range.
    pub fn run(&self, input: &[i64]) -> Result<FixedRun, InputError> {
        let mut output = Vec::new();
        let Beyond { overflows, saturated } = self.trace(input, |value, integers| {
            if value == self.network.public().nodes().len() {
                output = integers.to_vec();
            }
        })?;
        Ok(FixedRun { output, overflows, saturated })
    }

    /// Runs a quantised input and shows every value to `visit` by number: 0 is the input, i + 1 node i's output.
    ///
    /// Returns, for each node, how many of its sums lay outside what the ring allows, and how many values saturated.
    ///
    /// # Errors
    /// [`InputError`] if the input is misshapen or out of range.
    pub fn trace(&self, input: &[i64], visit: impl FnMut(usize, Integers<'_>)) -> Result<Beyond, InputError> {
        self.network.public().input().check(input)?;
        Ok(if self.is_wide {
            self.trace_in::<i128>(input, visit)
        } else {
            self.trace_in::<i64>(input, visit)
        })
    }

    /// As [`Self::trace`], of a run that begins at a stage, if there is one, and so shows the values behind it alone; and the stages of the run behind
    /// these numbers of nodes, which are those of [`Self::stages`].
    ///
    /// # Errors
    /// [`InputError`] if the input is misshapen or out of range.
    pub fn trace_from(
        &self,
        input: &[i64],
        begin: Option<&Stage>,
        stages: &[usize],
        visit: impl FnMut(usize, Integers<'_>),
    ) -> Result<Vec<Stage>, InputError> {
        self.network.public().input().check(input)?;
        if self.is_wide {
            self.trace_in::<i128>(input, visit);
            return Ok(Vec::new());
        }
        let mut made = Vec::new();
        let mut keep = |nodes: usize, values: &[Vec<i64>]| {
            if stages.contains(&nodes) {
                let is_read = |value: &usize| self.last_uses[*value] >= nodes;
                let values = (0..=nodes).filter(is_read).map(|value| (value, values[value].clone()));
                made.push(Stage { nodes, values: values.collect() });
            }
        };
        self.trace_steps::<i64>(input, begin, visit, &mut keep);
        Ok(made)
    }

    /// The last node that reads a value.
    pub(crate) fn last_use(&self, value: usize) -> usize {
        self.last_uses[value]
    }

    fn trace_in<I: Integer + Apply>(&self, input: &[i64], visit: impl FnMut(usize, Integers<'_>)) -> Beyond {
        self.trace_steps::<I>(input, None, visit, &mut |_, _| ())
    }

    /// The steps of a run; `keep` is shown all values that are still read, with the number of nodes done.
    fn trace_steps<I: Integer + Apply>(
        &self,
        input: &[i64],
        begin: Option<&Stage>,
        mut visit: impl FnMut(usize, Integers<'_>),
        keep: &mut dyn FnMut(usize, &[Vec<I>]),
    ) -> Beyond {
        let network = self.network.public();
        let mut overflows = vec![0; network.nodes().len()];
        let mut saturated = overflows.clone();
        let mut values: Vec<Vec<I>> = vec![Vec::new(); network.nodes().len() + 1];
        let done = begin.map_or(0, Stage::nodes);
        if let Some(stage) = begin {
            for (value, integers) in &stage.values {
                values[*value] = integers.iter().map(|&x| x.into()).collect();
            }
        } else {
            values[0] = input.iter().map(|&x| x.into()).collect();
            visit(0, I::show(&values[0]));
        }
        for (index, node) in network.nodes().iter().enumerate().skip(done) {
            let mut output = self.step(index, node, &mut values);
            saturated[index] = self.saturating(index, &output);
            overflows[index] = match node.op.elementwise() {
                Some(op) => {
                    let outside = self.outside(index, &output);
                    outside + apply(op, &mut output, network.limit(index + 1), node.accumulator)
                }
                None if node.op == FixedOp::Mul => {
                    let factors = &values[node.inputs[1]];
                    product::multiply(&mut output, factors, network.limit(index + 1), node.accumulator)
                }
                None if matches!(node.op, FixedOp::MatrixProduct { .. }) => {
                    let shapes = [0, 1].map(|at| network.shape(node.inputs[at]));
                    let factors = &values[node.inputs[1]];
                    let limit = network.limit(index + 1);
                    let (products, beyond) =
                        product::multiply_matrices(&output, factors, shapes, limit, node.accumulator);
                    output = products;
                    beyond
                }
                None if node.op.may_grow() => {
                    confine(&mut output, network.limit(index + 1), network.accumulator(index + 1))
                }
                None => 0,
            };
            visit(index + 1, I::show(&output));
            values[index + 1] = output;
            for &input in node.inputs.iter().filter(|&&input| self.last_uses[input] == index) {
                values[input] = Vec::new();
            }
            keep(index + 1, &values);
        }
        Beyond { overflows, saturated }
    }

    /// How many values reach the upper bound that a node is, if that is the compiler's own: once they are rescaled they are the largest integer
    /// that there is. Some of them are not cut, but right to half a unit: which of them, the integers behind do not tell.
    fn saturating<I: Integer>(&self, index: usize, values: &[I]) -> usize {
        let network = self.network.public();
        if !self.network.values()[index + 1].saturates {
            return 0;
        }
        let Some((value, largest)) = network.bounded(index) else { return 0 };
        let shift = match network.nodes()[value - 1].op {
            FixedOp::Rescale { shift } => shift,
            _ => 0,
        };
        let largest = I::from(largest);
        values.iter().filter(|x| x.rescale(shift) >= largest).count()
    }

    /// What a node computes; of an element-wise operator and of a product, what it is applied to.
    fn step<I: Integer + Apply>(&self, index: usize, node: &FixedNode, values: &mut [Vec<I>]) -> Vec<I> {
        let network = self.network.public();
        let first = node.inputs[0];
        let shape = network.shape(first);
        let x = values[first].as_slice();
        match &node.op {
            FixedOp::Conv2d(_) | FixedOp::Linear { .. } => {
                self.layers.get(&index).map_or_else(Vec::new, |layer| I::apply(layer, x, shape, node))
            }
            FixedOp::SumPool(window) => {
                let sums = fold_windows(x, image(shape), window, area(&node.shape), |sum, x| sum + x);
                sums.into_iter().map(|(sum, _)| sum).collect()
            }
            FixedOp::MaxPool(window) => {
                let maxima = fold_windows(x, image(shape), window, area(&node.shape), I::max);
                maxima.into_iter().map(|(maximum, _)| maximum).collect()
            }
            FixedOp::Add { factors } => {
                let [a, b] = factors.map(I::from);
                x.iter().zip(&values[node.inputs[1]]).map(|(x, y)| a * *x + b * *y).collect()
            }
            FixedOp::Mul if self.last_uses[first] == index && node.inputs[1] != first => {
                std::mem::take(&mut values[first])
            }
            FixedOp::Mul | FixedOp::MatrixProduct { .. } => x.to_vec(),
            FixedOp::Bias { .. } => {
                let bias = self.network.weights(index).map_or(&[][..], LinearWeights::bias);
                x.iter().zip(bias).map(|(x, b)| *x + I::of(*b)).collect()
            }
            op => {
                if let Some(moves) = self.moves.get(&index) {
                    let inputs: Vec<&[I]> =
                        node.inputs.iter().map(|&value| values[value].as_slice()).collect();
                    return moves.apply(&inputs);
                }
                let last = self.last_uses[first] == index;
                let mut x = if last { std::mem::take(&mut values[first]) } else { x.to_vec() };
                match *op {
                    FixedOp::Rescale { shift } => x.iter_mut().for_each(|x| *x = x.rescale(shift)),
                    FixedOp::Scale { factor } => x.iter_mut().for_each(|x| *x = *x * factor.into()),
                    _ => {}
                }
                x
            }
        }
    }

    /// How many inputs of a function lie where it goes on and its domain does not.
    fn outside<I: Integer>(&self, index: usize, values: &[I]) -> usize {
        let (FixedOp::Function(function), Some(FunctionFit { open: [below, above], vanishes, .. })) =
            (&self.network.public().nodes()[index].op, self.network.values()[index + 1].function)
        else {
            return 0;
        };
        let [zero, low, last] = [0, function.low, function.last()].map(I::from);
        let outside = |x: &&I| (below && **x < low && !(vanishes && **x == zero)) || (above && **x > last);
        values.iter().filter(outside).count()
    }
}

impl Layer {
    /// The layer of a node whose inputs are of this magnitude at most.
    fn new(layer: &LinearWeights, node: &FixedNode, magnitude: i128, runs_wide: bool) -> Self {
        let wide = layer.bias_of(node.len());
        let sums = sum_bound(layer, magnitude.max(1));
        if runs_wide {
            return Self::Widest {
                weight: layer.weight().iter().copied().map(Integer::wide).collect(),
                bias: wide,
            };
        }
        let bias: Vec<i64> = wide.into_iter().map(Integer::of).collect();
        let inputs_fit = magnitude <= i128::from(i32::MAX);
        let sums_fit = sums <= i128::from(i32::MAX);
        // A checked network's weights fit 32 bits.
        let cast = |values: &[i64]| values.iter().map(|&x| x as i32).collect();
        if matches!(&node.op, FixedOp::Conv2d(geometry) if is_wide(geometry)) && sums.max(magnitude) <= EXACT
        {
            return Self::Floating { weight: cast(layer.weight()), bias, is_small: inputs_fit };
        }
        match (inputs_fit, sums_fit) {
            (true, true) => Self::Narrow { weight: cast(layer.weight()), bias: cast(&bias) },
            (true, false) => Self::Mixed { weight: cast(layer.weight()), bias },
            _ => Self::Wide { weight: layer.weight().to_vec(), bias },
        }
    }
}

/// How an integer goes through a layer.
trait Apply: Sized {
    fn apply(layer: &Layer, x: &[Self], shape: &[usize], node: &FixedNode) -> Vec<Self>;
}

impl Apply for i64 {
    fn apply(layer: &Layer, x: &[Self], shape: &[usize], node: &FixedNode) -> Vec<Self> {
        let cast = |x: &[i64]| x.iter().map(|&x| x as i32).collect::<Vec<i32>>();
        match layer {
            Layer::Floating { weight, bias, is_small } => {
                // What fits 32 bits, vectors of the machine convert.
                let x: Vec<f64> = if *is_small {
                    x.iter().map(|&x| f64::from(x as i32)).collect()
                } else {
                    x.iter().map(|&x| x as f64).collect()
                };
                let mut y: Vec<f64> = bias.iter().map(|&x| x as f64).collect();
                if let FixedOp::Conv2d(geometry) = &node.op {
                    let size = area(&node.shape);
                    add_wide_conv::<_, _, _, COLUMNS>(&x, image(shape), weight, geometry, size, &mut y);
                }
                y.into_iter().map(nearest).collect()
            }
            Layer::Narrow { weight, bias } => {
                let mut y = bias.clone();
                add_products(&cast(x), shape, weight, node, &mut y);
                y.into_iter().map(i64::from).collect()
            }
            Layer::Mixed { weight, bias } => {
                let mut y = bias.clone();
                add_products(&cast(x), shape, weight, node, &mut y);
                y
            }
            Layer::Wide { weight, bias } => {
                let mut y = bias.clone();
                add_products(x, shape, weight, node, &mut y);
                y
            }
            // Of networks that do not run on 64 bits.
            Layer::Widest { .. } => Vec::new(),
        }
    }
}

impl Apply for i128 {
    fn apply(layer: &Layer, x: &[Self], shape: &[usize], node: &FixedNode) -> Vec<Self> {
        // A network that runs on 128 bits has no other layers.
        let Layer::Widest { weight, bias } = layer else { return Vec::new() };
        let mut y = bias.clone();
        add_products(x, shape, weight, node, &mut y);
        y
    }
}

/// Integers up to here are floats of 64 bits, all of them, and found again by [`nearest`].
const EXACT: i128 = MOST_NEAREST as i128;

/// Columns of the tiles in which they are added up: a vector of `f64`.
const COLUMNS: usize = 8;

fn add_products<T: Copy + Default, S: Sum<T> + Default>(
    x: &[T],
    shape: &[usize],
    weight: &[T],
    node: &FixedNode,
    y: &mut [S],
) {
    match &node.op {
        FixedOp::Conv2d(geometry) => add_conv(x, image(shape), weight, geometry, area(&node.shape), y),
        _ => add_rows(x, weight, y),
    }
}

/// Replaces every element by the operator's value there. A product, of an element with itself, comes back into the ring beyond `limit`; returns how
/// many did.
fn apply<I: Integer>(op: &dyn FixedElementwise, x: &mut [I], limit: i128, ring: Accumulator) -> usize {
    if !op.multiplies() {
        I::eval_each(op, x);
        return 0;
    }
    let mut beyond = 0;
    for x in x {
        let (y, is_beyond) = x.product(*x, limit, ring);
        beyond += usize::from(is_beyond);
        *x = y;
    }
    beyond
}
