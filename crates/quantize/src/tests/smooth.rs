//! Smooth functions and products of two values, compiled.

use lanner_graph::Op;
use lanner_graph::elementwise::{Function, Ramp};
use lanner_network::{CompileError, FixedExecutor, FixedOp, Network, Precision, Tensor};

use super::Sketch;
use super::compiled::{agreement, ops};
use crate::{Aim, QuantizationOptions, Told, compile, compile_to};

fn functions() -> Vec<Op> {
    let ramps = [
        Ramp::Gelu { approximate: false },
        Ramp::Gelu { approximate: true },
        Ramp::Swish { alpha: 1.0 },
        Ramp::Swish { alpha: 1.7 },
        Ramp::Softplus,
        Ramp::Elu { alpha: 1.0 },
        Ramp::Elu { alpha: 0.3 },
        Ramp::Selu { alpha: 1.673_263_2, gamma: 1.050_701 },
        Ramp::Celu { alpha: 0.5 },
        Ramp::Mish,
    ];
    let functions = [Function::Sigmoid, Function::Tanh, Function::Erf, Function::Softsign, Function::Exp]
        .map(Op::Function);
    ramps.map(Op::Ramp).into_iter().chain(functions).collect()
}

pub(super) fn at_bits(sketch: &mut Sketch, bits: u32) -> Result<Network, CompileError> {
    let calibration = sketch.samples(60, 0.0, 1.0);
    // Rings for proofs leave weights other bits than the fewest.
    let base = QuantizationOptions { saturates: false, ..QuantizationOptions::powers_of_two() };
    let (activation_bits, min_weight_bits) = (bits, bits.min(15));
    let max_weight_bits = (bits + 4).min(16);
    let options = QuantizationOptions { activation_bits, min_weight_bits, max_weight_bits, ..base };
    compile(&sketch.graph, &sketch.tensors, &calibration, &options)
}

#[test]
fn every_function_between_layers_agrees_and_more_bits_agree_more() {
    for (seed, op) in (40..).zip(functions()) {
        let name = op.name();
        let errors = [8, 12].map(|bits| {
            let mut sketch = Sketch::new(&[2, 6, 6], seed)
                .conv("a", 5, 3, 1, 1)
                .op("f", op.clone())
                .average_pool("p", 2)
                .flatten("flat")
                .dense("b", 6);
            let network = at_bits(&mut sketch, bits).unwrap();
            assert!(ops(&network).contains(&"Function"), "{name}");
            agreement(&mut sketch, &network).0
        });
        assert!(errors[0] < 0.04 && errors[1] < 0.003, "{name}: {errors:?}");
    }
}

/// Behind the last layer a function's output is the network's.
#[test]
fn a_function_may_be_the_end() {
    for (seed, op) in (60..).zip(functions()) {
        let name = op.name();
        let mut sketch = Sketch::new(&[6], seed).dense("a", 8).relu("r").dense("b", 5).op("f", op);
        let network = at_bits(&mut sketch, 10).unwrap();
        let (error, _) = agreement(&mut sketch, &network);
        assert!(error < 0.01, "{name}: {error}");
    }
}

#[test]
fn functions_of_functions_and_of_sums_agree() {
    let mut sketch = Sketch::new(&[6], 3)
        .dense("a", 8)
        .op("t", Op::Function(Function::Tanh))
        .op("s", Op::Function(Function::Sigmoid))
        .dense("b", 8)
        .join("sum", Op::Add, &["b", "s"])
        .op("g", Op::Ramp(Ramp::Gelu { approximate: false }))
        .join("more", Op::Add, &["g", "s"])
        .dense("c", 4)
        .op("l", Op::Function(Function::Erf));
    let network = at_bits(&mut sketch, 10).unwrap();
    let (error, _) = agreement(&mut sketch, &network);
    assert!(error < 0.01, "{error}");
}

/// Gates: a product of two branches, and of a value with a function of it.
#[test]
fn products_of_two_values_agree() {
    for bits in [8, 12] {
        let mut gated = Sketch::new(&[6], 4)
            .dense("a", 8)
            .op("t", Op::Function(Function::Sigmoid))
            .resume("x")
            .dense("b", 8)
            .join("gate", Op::Mul, &["b", "t"])
            .relu("r")
            .dense("c", 8)
            .join("again", Op::Mul, &["c", "gate"])
            .join("sum", Op::Add, &["again", "gate"])
            .dense("d", 4);
        let network = at_bits(&mut gated, bits).unwrap();
        assert_eq!(ops(&network).iter().filter(|name| **name == "Mul").count(), 2);
        let (error, _) = agreement(&mut gated, &network);
        assert!(error < [0.03, 0.003][usize::from(bits == 12)], "{bits}: {error}");
        let mut end = Sketch::new(&[6], 5).dense("a", 8).op("t", Op::Function(Function::Sigmoid)).join(
            "silu",
            Op::Mul,
            &["a", "t"],
        );
        let network = at_bits(&mut end, bits).unwrap();
        let (error, _) = agreement(&mut end, &network);
        assert!(error < [0.03, 0.003][usize::from(bits == 12)], "{bits}: {error}");
    }
}

/// The domain of a bounded function does not depend on what calibration saw: far outside it is right, too.
#[test]
fn bounded_functions_are_right_far_outside_what_calibration_saw() {
    for op in [Op::Function(Function::Sigmoid), Op::Ramp(Ramp::Gelu { approximate: false })] {
        let mut sketch = Sketch::new(&[6], 6).dense("a", 8);
        let steep = Tensor::new(vec![], vec![20.0]).unwrap();
        sketch.tensors.insert("steep", steep).unwrap();
        let value = "steep".to_owned();
        let mut sketch = sketch.op("m", Op::MulConstant { value }).op("f", op).dense("b", 5);
        let calibration = sketch.samples(60, 0.0, 0.5);
        let range = Some([0.0, 1.0]);
        let base = QuantizationOptions::powers_of_two();
        let options = QuantizationOptions { input_range: range, activation_bits: 10, ..base };
        let network = compile(&sketch.graph, &sketch.tensors, &calibration, &options).unwrap();
        let (error, _) = agreement(&mut sketch, &network);
        assert!(error < 0.02, "{error}");
    }
}

/// Sums in front of them do not leave their ring either, however small those on the samples are.
#[test]
fn sums_in_front_of_functions_with_limits_have_room_for_accepted_inputs() {
    for op in [Function::Sigmoid, Function::Tanh, Function::Erf] {
        let mut sketch = Sketch::new(&[6], 6).dense("a", 8).op("f", Op::Function(op)).dense("b", 5);
        let calibration = sketch.samples(60, 0.0, 0.2);
        let base = QuantizationOptions::powers_of_two();
        let options = QuantizationOptions { input_range: Some([0.0, 1.0]), activation_bits: 10, ..base };
        let network = compile(&sketch.graph, &sketch.tensors, &calibration, &options).unwrap();
        let sums = network.public().nodes().iter().position(|node| node.name == "a").unwrap();
        let executor = FixedExecutor::new(&network).unwrap();
        for x in sketch.samples(100, 0.0, 1.0).chunks(6) {
            assert_eq!(executor.run_real(x).unwrap().overflows[sums], 0);
        }
    }
}

/// An input beyond the domain of a function without a limit has no right value.
#[test]
fn inputs_beyond_an_open_domain_are_counted() {
    let mut sketch = Sketch::new(&[3], 7).dense("a", 4).op("f", Op::Function(Function::Exp)).dense("b", 2);
    let calibration = sketch.samples(60, 0.0, 0.1);
    let base = QuantizationOptions::powers_of_two();
    let options = QuantizationOptions { input_range: Some([-8.0, 8.0]), ..base };
    let network = compile(&sketch.graph, &sketch.tensors, &calibration, &options).unwrap();
    let nodes = network.public().nodes();
    let function = nodes.iter().position(|node| matches!(node.op, FixedOp::Function(_))).unwrap();
    let fit = network.values()[function + 1].function.unwrap();
    assert!(fit.error <= 1.0 && fit.open == [false, true], "{fit:?}");
    let executor = FixedExecutor::new(&network).unwrap();
    assert_eq!(executor.run_real(&[0.05; 3]).unwrap().overflow_count(), 0);
    let counts =
        [[8.0_f32; 3], [-8.0; 3], [8.0, -8.0, 8.0]].map(|x| executor.run_real(&x).unwrap().overflows);
    assert!(counts.iter().any(|counts| counts[function] > 0), "{counts:?}");
}

#[test]
fn functions_that_are_not_defined_for_what_calibration_saw_are_refused() {
    let mut sketch =
        Sketch::new(&[3], 8).dense("a", 4).op("f", Op::Function(Function::Reciprocal)).dense("b", 2);
    let error = at_bits(&mut sketch, 8).unwrap_err();
    assert!(error.to_string().starts_with("node `f`: Reciprocal with inputs from -"), "{error}");
}

#[test]
fn positive_values_have_roots_and_logarithms() {
    let ops = [
        Op::Function(Function::Log),
        Op::Function(Function::Sqrt),
        Op::Function(Function::Reciprocal),
        Op::Function(Function::Power { exponent: -0.5, term: 0.0 }),
        Op::Function(Function::Power { exponent: 1.5, term: 0.0 }),
    ];
    for (seed, op) in (70..).zip(ops) {
        let name = op.name();
        let mut sketch = Sketch::new(&[6], seed)
            .dense("a", 8)
            .op("s", Op::Function(Function::Sigmoid))
            .dense("c", 8)
            .op("e", Op::Function(Function::Exp))
            .op("f", op)
            .dense("b", 5);
        let network = at_bits(&mut sketch, 10).unwrap();
        let (error, _) = agreement(&mut sketch, &network);
        assert!(error < 0.02, "{name}: {error}");
    }
}

#[test]
fn a_precision_is_reached_with_functions() {
    for error in [0.01, 0.001] {
        let mut sketch = Sketch::new(&[2, 6, 6], 9)
            .conv("a", 5, 3, 1, 1)
            .op("g", Op::Ramp(Ramp::Gelu { approximate: false }))
            .conv("b", 4, 3, 1, 0)
            .op("s", Op::Function(Function::Sigmoid))
            .flatten("f")
            .dense("c", 6);
        let calibration = sketch.samples(64, 0.0, 1.0);
        let aim = Aim { precision: Precision::Error(error), demanded: true, told: Told::Scores };
        let options = QuantizationOptions::powers_of_two();
        let network =
            compile_to(&sketch.graph, &sketch.tensors, &calibration, &options, aim, &|_| Ok(0)).unwrap();
        assert!(network.reached().unwrap().error <= error);
    }
}
