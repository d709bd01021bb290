//! The exact fixed-point reference: every protocol's output integers equal these.

use std::collections::BTreeMap;

use crate::float::{area, image};
use crate::kernel::{add_conv, add_rows, fold_windows};
use crate::network::{FixedOp, LinearWeights, Network, machine_bounds, sum_bound};
use crate::{CompileError, InputError};

/// Runs a compiled network on integers.
///
/// A sum beyond what its ring allows is counted and comes back into the ring as the protocol's would; with a count of zero the output
/// is exactly the protocol's.
#[derive(Debug)]
pub struct FixedExecutor<'a> {
    network: &'a Network,
    layers: BTreeMap<usize, Layer>,
}

/// A linear layer's integers in the narrowest type that holds every partial sum.
#[derive(Debug)]
enum Layer {
    Narrow { weight: Vec<i32>, bias: Vec<i32> },
    Wide { weight: Vec<i64>, bias: Vec<i64> },
}

/// The outcome of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixedRun {
    /// The output integers; real score = integer * output scale.
    pub output: Vec<i64>,
    /// For each node, how many of its sums lay outside what the ring allows.
    pub overflows: Vec<usize>,
}

impl FixedRun {
    /// The index of the largest score, the lowest of equals.
    #[must_use]
    pub fn label(&self) -> usize {
        arg_max(&self.output)
    }

    /// Sums outside what their rings allow, over all nodes.
    #[must_use]
    pub fn overflow_count(&self) -> usize {
        self.overflows.iter().sum()
    }
}

/// `floor((x + 2^(shift-1)) / 2^shift)`: division by a power of two, rounded to nearest, ties up. A shift of 0 changes nothing.
///
/// `shift` is below 62 and |x| below 2^62.
#[must_use]
pub const fn rescale(x: i64, shift: u32) -> i64 {
    (x + crate::accumulator::rounding_constant(shift)) >> shift
}

/// The index of the largest value, the lowest of equals; 0 for no values.
#[must_use]
pub fn arg_max(values: &[i64]) -> usize {
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
        let prepare = |(index, layer): (usize, LinearWeights)| {
            let outputs = network.public().nodes()[index].len();
            let fits = sum_bound(&layer, bounds[index].max(1)) <= i128::from(i32::MAX)
                && bounds[index] <= i128::from(i32::MAX);
            (index, Layer::new(&layer, outputs, fits))
        };
        Ok(Self { network, layers: weights.into_iter().map(prepare).collect() })
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
        let overflows = self.trace(input, |value, integers| {
            if value == self.network.public().nodes().len() {
                output = integers.to_vec();
            }
        })?;
        Ok(FixedRun { output, overflows })
    }

    /// Runs a quantised input and shows every value to `visit` by number: 0 is the input, i + 1 node i's output.
    ///
    /// Returns, for each node, how many of its sums lay outside what the ring allows.
    ///
    /// # Errors
    /// [`InputError`] if the input is misshapen or out of range.
    pub fn trace(
        &self,
        input: &[i64],
        mut visit: impl FnMut(usize, &[i64]),
    ) -> Result<Vec<usize>, InputError> {
        let network = self.network.public();
        network.input().check(input)?;
        visit(0, input);
        let mut overflows = vec![0; network.nodes().len()];
        let mut values = input.to_vec();
        for (index, overflow) in overflows.iter_mut().enumerate() {
            values = self.step(index, values);
            if matches!(
                network.nodes()[index].op,
                FixedOp::Conv2d(_) | FixedOp::Linear { .. } | FixedOp::SumPool(_)
            ) {
                *overflow = self.confine(index + 1, &mut values);
            }
            visit(index + 1, &values);
        }
        Ok(overflows)
    }

    fn step(&self, index: usize, mut x: Vec<i64>) -> Vec<i64> {
        let network = self.network.public();
        let (shape, node) = (network.shape(index), &network.nodes()[index]);
        match node.op {
            FixedOp::Conv2d(_) | FixedOp::Linear { .. } => {
                return self
                    .layers
                    .get(&index)
                    .map_or_else(Vec::new, |layer| layer.apply(&x, shape, &node.op, &node.shape));
            }
            FixedOp::SumPool(window) => {
                let sums = fold_windows(&x, image(shape), &window, area(&node.shape), |sum, x| sum + x);
                return sums.into_iter().map(|(sum, _)| sum).collect();
            }
            FixedOp::MaxPool(window) => {
                let maxima = fold_windows(&x, image(shape), &window, area(&node.shape), i64::max);
                return maxima.into_iter().map(|(maximum, _)| maximum).collect();
            }
            FixedOp::Relu => x.iter_mut().for_each(|x| *x = (*x).max(0)),
            FixedOp::Clip { high } => x.iter_mut().for_each(|x| *x = (*x).min(high)),
            FixedOp::Rescale { shift } => x.iter_mut().for_each(|x| *x = rescale(*x, shift)),
            FixedOp::Reshape => {}
        }
        x
    }

    /// Counts the values beyond the ring's limit and brings those beyond p/2 back into the ring.
    fn confine(&self, value: usize, values: &mut [i64]) -> usize {
        let limit = self.network.public().limit(value);
        let ring = self.network.public().accumulator(value);
        let mut count = 0;
        for x in values.iter_mut().filter(|x| x.abs() > limit) {
            *x = ring.centre(*x);
            count += 1;
        }
        count
    }
}

impl Layer {
    fn new(layer: &LinearWeights, outputs: usize, narrow: bool) -> Self {
        let bias = layer.bias_of(outputs);
        if narrow {
            let cast = |values: &[i64]| values.iter().map(|&x| x as i32).collect();
            Self::Narrow { weight: cast(layer.weight()), bias: cast(&bias) }
        } else {
            Self::Wide { weight: layer.weight().to_vec(), bias }
        }
    }

    fn apply(&self, x: &[i64], in_shape: &[usize], op: &FixedOp, out_shape: &[usize]) -> Vec<i64> {
        match self {
            Self::Narrow { weight, bias } => {
                let x: Vec<i32> = x.iter().map(|&x| x as i32).collect();
                let mut y = bias.clone();
                add_products(&x, in_shape, weight, op, out_shape, &mut y);
                y.into_iter().map(i64::from).collect()
            }
            Self::Wide { weight, bias } => {
                let mut y = bias.clone();
                add_products(x, in_shape, weight, op, out_shape, &mut y);
                y
            }
        }
    }
}

fn add_products<T: crate::kernel::Number>(
    x: &[T],
    in_shape: &[usize],
    weight: &[T],
    op: &FixedOp,
    out_shape: &[usize],
    y: &mut [T],
) {
    match op {
        FixedOp::Conv2d(geometry) => add_conv(x, image(in_shape), weight, geometry, area(out_shape), y),
        _ => add_rows(x, weight, y),
    }
}
