//! Rows over their own size: right for rows far smaller and larger than calibration's, and for rows of zeros.

use lanner_graph::elementwise::{Function, Within};
use lanner_graph::{FloatExecutor, Op};
use lanner_network::{FixedExecutor, FixedOp, Network, Tensor};

use super::Sketch;
use crate::{QuantizationOptions, compile};

const LINES: usize = 4;
const LENGTH: usize = 8;

const ROOT: Function = Function::Power { exponent: -0.5, term: 1e-6 };

fn rows(seed: u64) -> Sketch {
    Sketch::new(&[LINES, LENGTH, 1], seed)
}

/// Rows over the root of their mean squares.
fn over_squares(seed: u64, function: Function) -> Sketch {
    rows(seed).op("squares", Op::Square).op("mean", Op::GlobalAveragePool).times_rows("x", function)
}

/// Rows less their means, over their deviations.
fn over_deviations(seed: u64) -> Sketch {
    let mut sketch =
        rows(seed).op("mean", Op::GlobalAveragePool).join("means", Op::Concat { axis: 1 }, &["mean"; LENGTH]);
    sketch.tensors.insert("minus", Tensor::new(vec![], vec![-1.0]).unwrap()).unwrap();
    sketch
        .op("less", Op::MulConstant { value: "minus".to_owned() })
        .join("centred", Op::Add, &["x", "less"])
        .op("squares", Op::Square)
        .op("variance", Op::GlobalAveragePool)
        .times_rows("centred", ROOT)
}

/// Rows of sums of a layer less their means, taken of another view of them, in front of another layer.
fn centred(length: usize) -> Sketch {
    let mut sketch = Sketch::new(&[LINES, length, 1], 8)
        .conv("x1", LINES, 1, 1, 0)
        .op("lying", Op::Reshape { shape: vec![LINES, 1, length] })
        .op("mean", Op::GlobalAveragePool)
        .join("means", Op::Concat { axis: 1 }, &vec!["mean"; length]);
    sketch.tensors.insert("minus", Tensor::new(vec![], vec![-1.0]).unwrap()).unwrap();
    sketch
        .op("less", Op::MulConstant { value: "minus".to_owned() })
        .join("centred", Op::Add, &["x1", "less"])
        .op("flat", Op::Flatten)
        .dense("scores", 3)
}

/// Rows over their sums.
fn over_sums(seed: u64) -> Sketch {
    rows(seed)
        .op("mean", Op::GlobalAveragePool)
        .times_rows("x", Function::Power { exponent: -1.0, term: 1e-6 })
}

impl Sketch {
    /// The rows of `x` times a function of what is there for each, and a layer.
    fn times_rows(self, x: &str, function: Function) -> Self {
        self.op("inverse", Op::Function(function))
            .join("normal", Op::MatrixProduct, &[x, "inverse"])
            .op("flat", Op::Flatten)
            .dense("scores", 3)
    }

    fn compiled(&mut self, low: f32, options: &QuantizationOptions) -> Network {
        let calibration = self.samples(40, low, 1.0);
        compile(&self.graph, &self.tensors, &calibration, options).unwrap()
    }

    /// The largest error for inputs of a size, relative to the largest score.
    fn error(&mut self, network: &Network, low: f32, size: f32) -> f64 {
        let float = FloatExecutor::new(&self.graph, &self.tensors).unwrap();
        let fixed = FixedExecutor::new(network).unwrap();
        let (mut error, mut largest) = (0.0_f64, 0.0_f64);
        for _ in 0..40 {
            let x: Vec<f32> =
                self.random.reals(float.input_len(), low, 1.0).iter().map(|x| size * x).collect();
            let (scores, run) = (float.run(&x).unwrap(), fixed.run_real(&x).unwrap());
            for (score, integer) in scores.iter().zip(&run.output) {
                error = error.max((f64::from(*score) - *integer as f64 * network.output_scale()).abs());
                largest = largest.max(f64::from(score.abs()));
            }
        }
        error / largest
    }
}

fn at_bits(bits: u32, base: QuantizationOptions) -> QuantizationOptions {
    QuantizationOptions { activation_bits: bits, min_weight_bits: bits, max_weight_bits: bits + 4, ..base }
}

#[test]
fn rows_of_any_size_are_normalised_as_precisely_as_calibrations() {
    let known = Within { of: Box::new(ROOT), low: Some(1e-4), high: None };
    let sketches: [(f32, Sketch); 4] = [
        (-1.0, over_squares(1, ROOT)),
        (-1.0, over_deviations(2)),
        (0.0, over_sums(3)),
        (-1.0, over_squares(4, Function::Within(known))),
    ];
    for (number, (low, mut sketch)) in sketches.into_iter().enumerate() {
        for base in [QuantizationOptions::powers_of_two(), QuantizationOptions::default()] {
            let network = sketch.compiled(low, &at_bits(9, base));
            for size in [1.0, 0.3, 0.1, 0.05] {
                let error = sketch.error(&network, low, size);
                assert!(error < 0.01, "{number}: {error} at {size}");
            }
        }
    }
}

/// A mean is finer than what it is of by the length of its row: not all of that comes into the others.
#[test]
fn a_mean_that_is_taken_off_costs_few_bits_whatever_the_rows_length() {
    let factors = |network: &Network| {
        let add = network.public().nodes().iter().find(|node| node.name == "centred").unwrap();
        let FixedOp::Add { factors } = add.op else { panic!("{add:?}") };
        factors
    };
    for base in [QuantizationOptions::powers_of_two(), QuantizationOptions::default()] {
        for (length, factor) in [(32, 32), (96, 3), (128, 2), (100, 25)] {
            let network = centred(length).compiled(-1.0, &at_bits(8, base.clone()));
            assert_eq!(factors(&network)[0], factor, "of {length}");
            let error = centred(length).error(&network, -1.0, 1.0);
            assert!(error < 0.02, "{error} of {length}");
        }
    }
    // With all of a row's length in the others' integers, no ring would have room for so many.
    let network = centred(384).compiled(-1.0, &at_bits(14, QuantizationOptions::powers_of_two()));
    assert_eq!(factors(&network)[0], 3);
}

/// Where what its row's length leaves in the others' integers is too much for any ring, they are rounded first.
#[test]
fn what_a_mean_is_taken_off_is_rounded_where_no_ring_has_room() {
    let rounded = |network: &Network| network.public().nodes().iter().any(|node| node.name == "x1/rescale");
    let options = |bits| {
        at_bits(bits, QuantizationOptions { max_weight_bits: 16, ..QuantizationOptions::powers_of_two() })
    };
    let roomy = centred(509).compiled(-1.0, &options(12));
    assert!(!rounded(&roomy));
    let network = centred(509)
        .compiled(-1.0, &QuantizationOptions { min_weight_bits: 15, max_weight_bits: 16, ..options(16) });
    assert!(rounded(&network));
    let error = centred(509).error(&network, -1.0, 1.0);
    assert!(error < 1e-3, "{error}");
}

#[test]
fn rows_of_zeros_and_constants_stay_what_they_are() {
    for mut sketch in [over_squares(5, ROOT), over_deviations(6), over_sums(7)] {
        let low = if sketch.graph.nodes[0].name == "mean" && sketch.graph.nodes[1].name == "inverse" {
            0.0
        } else {
            -1.0
        };
        let network = sketch.compiled(low, &at_bits(9, QuantizationOptions::powers_of_two()));
        let float = FloatExecutor::new(&sketch.graph, &sketch.tensors).unwrap();
        let fixed = FixedExecutor::new(&network).unwrap();
        let mut some = sketch.random.reals(LINES * LENGTH, low, 1.0);
        some[LENGTH..2 * LENGTH].fill(0.0);
        for x in [vec![0.0; LINES * LENGTH], some] {
            let (scores, run) = (float.run(&x).unwrap(), fixed.run_real(&x).unwrap());
            for (score, integer) in scores.iter().zip(&run.output) {
                let off = f64::from(*score) - *integer as f64 * network.output_scale();
                assert!(off.abs() < 0.02, "{scores:?} {run:?}");
            }
        }
    }
}

/// What is multiplied with the inverse has the bits more, and nothing else has.
#[test]
fn what_is_normalised_keeps_more_bits() {
    let options = at_bits(8, QuantizationOptions::powers_of_two());
    let network = over_squares(8, ROOT).compiled(-1.0, &options);
    let steps = |network: &Network| network.public().input().high;
    let squares = rows(8).op("squares", Op::Square).op("mean", Op::GlobalAveragePool);
    let root = Op::Function(Function::Sqrt);
    let plain = squares.op("root", root).op("flat", Op::Flatten).dense("scores", 3).compiled(-1.0, &options);
    assert_eq!(steps(&network), 16 * steps(&plain));
    let functions: Vec<&str> = network
        .public()
        .nodes()
        .iter()
        .filter(|node| matches!(node.op, FixedOp::Function(_)))
        .map(|node| &*node.name)
        .collect();
    assert_eq!(functions, ["inverse/small", "inverse/large"]);
}
