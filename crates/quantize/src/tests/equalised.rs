//! Channels of very different sizes, equalised: the same floats, and a precision that was out of reach.

use lanner_graph::elementwise::{Function, LeakyRelu};
use lanner_graph::{FloatExecutor, Op, equalised};
use lanner_network::{CompileError, Network, Precision, Tensor, Tensors};

use super::Sketch;
use super::branches::residual;
use crate::{Aim, QuantizationOptions, Told, compile_to};

impl Sketch {
    /// Makes channels smaller in some tensors, each by another factor, and as many times larger in others.
    fn uneven(mut self, smaller: &[&str], larger: &[&str], channels: usize, last_axis: bool) -> Self {
        let exponents = self.random.reals(channels, -7.0, 0.0);
        let all = smaller.iter().map(|name| (name, 1.0)).chain(larger.iter().map(|name| (name, -1.0)));
        for (name, sign) in all {
            let tensor = self.tensors.get(name).unwrap().clone();
            let each = tensor.data().len() / channels;
            let of = |index: usize| if last_axis { index % channels } else { index / each };
            let factor = |index: usize| (sign * exponents[of(index)]).exp2();
            let data = tensor.data().iter().enumerate().map(|(index, x)| x * factor(index)).collect();
            self.tensors.insert(name, Tensor::new(tensor.shape().to_vec(), data).unwrap()).unwrap();
        }
        self
    }
}

/// Every kind of layer and of what lets factors through, with uneven channels.
fn mixed(seed: u64) -> Sketch {
    Sketch::new(&[2, 12, 12], seed)
        .conv("a", 8, 3, 1, 1)
        .uneven(&["a.w", "a.b"], &[], 8, false)
        .relu("ar")
        .grouped("b", 8, 8, 1, 1)
        .op("br", Op::LeakyRelu(LeakyRelu { alpha: 0.1 }))
        .max_pool("bp", 2)
        .grouped("c", 6, 2, 1, 1)
        .batch_norm("n", [0.5, 1.0])
        .uneven(&["n.scale", "n.bias"], &[], 6, false)
        .relu("cr")
        .average_pool("cp", 2)
        .flatten("f")
        .dense("d", 12)
        .uneven(&["d.w", "d.b"], &[], 12, true)
        .relu("dr")
        .dense("e", 4)
}

fn outputs(sketch: &Sketch, tensors: &Tensors, samples: &[f32]) -> Vec<Vec<Vec<f32>>> {
    let float = FloatExecutor::new(&sketch.graph, tensors).unwrap();
    samples.chunks(float.input_len()).map(|sample| float.run_all(sample).unwrap()).collect()
}

#[test]
fn the_output_is_the_same_float_for_float_and_channels_are_more_even() {
    let mut sketch = mixed(1);
    let samples = sketch.samples(8, -1.0, 1.0);
    let equal = equalised(&sketch.graph, &sketch.tensors, &samples, 4).unwrap().unwrap();
    let (before, after) = (outputs(&sketch, &sketch.tensors, &samples), outputs(&sketch, &equal, &samples));
    for (before, after) in before.iter().zip(&after) {
        let bits = |values: &Vec<Vec<f32>>| -> Vec<u32> {
            values.last().unwrap().iter().map(|x| x.to_bits()).collect()
        };
        assert_eq!(bits(before), bits(after));
    }
    // What each layer takes: channels are raised by powers of two up to 16, and none beyond the largest.
    for (name, channels) in [("ar", 8), ("bp", 8), ("cp", 6), ("dr", 12)] {
        let number = sketch.graph.nodes.iter().position(|node| node.name == name).unwrap() + 1;
        let sizes = |all: &[Vec<Vec<f32>>]| -> Vec<f32> {
            let each = all[0][number].len() / channels;
            let of =
                |channel: usize| all.iter().flat_map(move |values| &values[number][channel * each..][..each]);
            (0..channels).map(|channel| of(channel).fold(0.0, |most: f32, x| most.max(x.abs()))).collect()
        };
        let (before, after) = (sizes(&before), sizes(&after));
        let largest = |sizes: &[f32]| sizes.iter().fold(0.0, |most: f32, x| most.max(*x));
        let factors: Vec<f32> =
            before.iter().zip(&after).filter(|(x, _)| **x > 0.0).map(|(x, y)| y / x).collect();
        assert_eq!(largest(&before).to_bits(), largest(&after).to_bits(), "{name}");
        assert!(
            factors.iter().all(|x| (1.0..=16.0).contains(x) && x.log2().fract() == 0.0),
            "{name}: {factors:?}"
        );
        assert!(factors.iter().any(|x| *x > 1.0), "{name}: {factors:?}");
    }
    // Again there is nothing to raise, but for what was beyond 16 times.
    let again = equalised(&sketch.graph, &equal, &samples, 4).unwrap();
    let thrice = again.and_then(|again| equalised(&sketch.graph, &again, &samples, 4).unwrap());
    assert_eq!(thrice, None);
}

#[test]
fn weights_stay_below_their_layers_largest() {
    let mut sketch = mixed(2);
    let samples = sketch.samples(8, -1.0, 1.0);
    let equal = equalised(&sketch.graph, &sketch.tensors, &samples, 4).unwrap().unwrap();
    for name in ["a.w", "d.w"] {
        let largest = |tensors: &Tensors| {
            tensors.get(name).unwrap().data().iter().fold(0.0, |most: f32, x| most.max(x.abs()))
        };
        assert!(largest(&equal) <= largest(&sketch.tensors), "{name}");
    }
}

/// A value beside its `Relu`, as a `PRelu` has them, lets factors through; beside another value it does not.
#[test]
fn joins_of_the_same_channels_let_factors_through() {
    let rows = Op::Reshape { shape: vec![8, 1, 36] };
    let beside = |second: &str, axis: usize| {
        Sketch::new(&[2, 6, 6], 7)
            .conv("other", 8, 1, 1, 0)
            .resume("x")
            .conv("a", 8, 3, 1, 1)
            .uneven(&["a.w", "a.b"], &[], 8, false)
            .relu("r")
            .join("first", rows.clone(), &["a"])
            .join("second", rows.clone(), &[second])
            .join("both", Op::Concat { axis }, &["first", "second"])
            .op("image", Op::Reshape { shape: vec![16, 6, 6] })
            .grouped("b", 8, 8, 1, 1)
            .flatten("f")
            .dense("e", 4)
    };
    for (second, axis, is_raised) in [("r", 1, true), ("other", 1, false), ("r", 0, false)] {
        let mut sketch = beside(second, axis);
        let samples = sketch.samples(8, -1.0, 1.0);
        let equal = equalised(&sketch.graph, &sketch.tensors, &samples, 4).unwrap();
        let equal = equal.unwrap_or_else(|| sketch.tensors.clone());
        let made = |tensors: &Tensors| tensors.get("a.w").unwrap().data().to_vec();
        assert_eq!(made(&equal) != made(&sketch.tensors), is_raised, "{second}, {axis}");
        let scores = |tensors: &Tensors| -> Vec<u32> {
            let all = outputs(&sketch, tensors, &samples);
            all.iter().flat_map(|values| values.last().unwrap()).map(|x| x.to_bits()).collect()
        };
        assert_eq!(scores(&equal), scores(&sketch.tensors), "{second}, {axis}");
    }
}

/// What something else takes, too, is left alone: a join, a function, the output, another layer with the same weights.
#[test]
fn channels_that_not_only_layers_take_are_left_alone() {
    let chain = |op: Op| {
        Sketch::new(&[6], 3).dense("a", 8).uneven(&["a.w", "a.b"], &[], 8, true).op("f", op).dense("b", 4)
    };
    let mut shared = chain(Op::Relu).dense("c", 8);
    let nodes = &mut shared.graph.nodes;
    let Op::MatMul { bias, .. } = nodes[0].op.clone() else { panic!("a dense layer") };
    if let Some(Op::MatMul { bias: of_last, .. }) = nodes.last_mut().map(|node| &mut node.op) {
        *of_last = bias;
    }
    let end = Sketch::new(&[6], 4).dense("a", 8).uneven(&["a.w", "a.b"], &[], 8, true).relu("r");
    for mut sketch in [chain(Op::Function(Function::Sigmoid)), chain(Op::Square), shared, end] {
        let samples = sketch.samples(8, -1.0, 1.0);
        assert_eq!(equalised(&sketch.graph, &sketch.tensors, &samples, 4).unwrap(), None);
    }
    let raised = |mut sketch: Sketch| {
        let samples = sketch.samples(8, -1.0, 1.0);
        equalised(&sketch.graph, &sketch.tensors, &samples, 4).unwrap().is_some()
    };
    assert!(raised(chain(Op::Relu)));
    // Of a residual network, what is not joined.
    let mut sketch = residual(31);
    let samples = sketch.samples(8, 0.0, 1.0);
    if let Some(equal) = equalised(&sketch.graph, &sketch.tensors, &samples, 4).unwrap() {
        let [before, after] = [&sketch.tensors, &equal].map(|tensors| outputs(&sketch, tensors, &samples));
        assert!(before.iter().zip(&after).all(|(x, y)| x.last() == y.last()));
    }
}

#[test]
fn a_channel_without_values_or_weights_stays_what_it_is() {
    let mut sketch =
        Sketch::new(&[6], 5).dense("a", 8).uneven(&["a.w", "a.b"], &[], 8, true).relu("r").dense("b", 4);
    for name in ["a.w", "a.b"] {
        let tensor = sketch.tensors.get(name).unwrap().clone();
        let data = tensor.data().iter().enumerate();
        // No weights, and a bias that the Relu leaves nothing of.
        let data = data.map(|(index, x)| match index % 8 {
            0 => 0.0,
            1 => -x.abs(),
            _ => *x,
        });
        let changed = Tensor::new(tensor.shape().to_vec(), data.collect()).unwrap();
        sketch.tensors.insert(name, changed).unwrap();
    }
    let samples = sketch.samples(8, 0.0, 1.0);
    let equal = equalised(&sketch.graph, &sketch.tensors, &samples, 4).unwrap().unwrap();
    for channel in [0, 1] {
        let of = |tensors: &Tensors| -> Vec<f32> {
            tensors.get("a.w").unwrap().data().iter().skip(channel).step_by(8).copied().collect()
        };
        assert_eq!(of(&sketch.tensors), of(&equal));
    }
}

#[test]
fn a_precision_that_was_missed_is_reached() {
    let mut sketch = Sketch::new(&[1, 10, 10], 6)
        .conv("a", 12, 3, 1, 1)
        .relu("ar")
        .grouped("b", 12, 12, 1, 1)
        .uneven(&["a.w", "a.b"], &["b.w"], 12, false)
        .relu("br")
        .conv("c", 8, 3, 1, 0)
        .relu("cr")
        .flatten("f")
        .dense("d", 5);
    let samples = sketch.samples(24, 0.0, 1.0);
    let options = QuantizationOptions::powers_of_two();
    let compiled = |tensors: &Tensors, precision: Precision| -> Result<Network, CompileError> {
        let aim = Aim { precision, demanded: true, told: Told::Scores };
        compile_to(&sketch.graph, tensors, &samples, &options, aim, &|_| Ok(0))
    };
    // Half of what the most bits come to.
    let most = compiled(&sketch.tensors, Precision::Bits(16)).unwrap().reached().unwrap().error;
    let half = Precision::Error(0.5 * most);
    assert!(matches!(compiled(&sketch.tensors, half), Err(CompileError::Precision { .. })));
    let equal = equalised(&sketch.graph, &sketch.tensors, &samples, 4).unwrap().unwrap();
    assert!(compiled(&equal, half).unwrap().reached().unwrap().is_met());
}
