//! Compiled networks compute what their floats do, on the integers that `docs/numerics.md` prescribes.

use lanner_graph::elementwise::Clip;
use lanner_graph::{FloatExecutor, Op};
use lanner_network::{
    Accumulator, CompileError, Evidence, FixedExecutor, FixedOp, InputError, Integers, Network, arg_max,
    rescale,
};

use super::{Random, Sketch, small_network};
use crate::{QuantizationOptions, compile};

pub(super) fn compiled(sketch: &mut Sketch) -> Network {
    let calibration = sketch.samples(40, 0.0, 1.0);
    compile(&sketch.graph, &sketch.tensors, &calibration, &QuantizationOptions::default()).unwrap()
}

/// The largest error over the largest score, and how many labels of 100 agree.
pub(super) fn agreement(sketch: &mut Sketch, network: &Network) -> (f64, usize) {
    let float = FloatExecutor::new(&sketch.graph, &sketch.tensors).unwrap();
    let fixed = FixedExecutor::new(network).unwrap();
    let (mut error, mut largest, mut same) = (0.0_f64, 0.0_f64, 0);
    for _ in 0..100 {
        let x = sketch.random.reals(float.input_len(), 0.0, 1.0);
        let (scores, run) = (float.run(&x).unwrap(), fixed.run_real(&x).unwrap());
        assert_eq!(run.overflow_count(), 0);
        for (score, integer) in scores.iter().zip(&run.output) {
            let exact = f64::from(*score);
            error = error.max((exact - *integer as f64 * network.output_scale()).abs());
            largest = largest.max(exact.abs());
        }
        let best = (0..scores.len()).fold(0, |best, i| if scores[i] > scores[best] { i } else { best });
        same += usize::from(best == run.label());
    }
    (error / largest, same)
}

pub(super) fn ops(network: &Network) -> Vec<&'static str> {
    network.public().nodes().iter().map(|node| node.op.name()).collect()
}

#[test]
fn a_small_network_keeps_its_labels_in_twenty_bits() {
    let step = ["MaxPool", "Relu", "Rescale"];
    let expected =
        [&["Conv2d"], &step[..], &["Conv2d"], &step, &["Reshape", "Linear", "Relu", "Rescale", "Linear"]];
    for saturates in [false, true] {
        let mut sketch = small_network(1);
        let calibration = sketch.samples(40, 0.0, 1.0);
        let options = QuantizationOptions { saturates, ..QuantizationOptions::default() };
        let network = compile(&sketch.graph, &sketch.tensors, &calibration, &options).unwrap();
        let found = ops(&network);
        let without_bounds: Vec<&str> = found.iter().copied().filter(|op| *op != "Clip").collect();
        assert_eq!(without_bounds, expected.concat());
        // Proofs take two bits more of the layers that need them.
        assert_eq!(found.len() - without_bounds.len(), if saturates { 2 } else { 0 });
        let bits = |value: usize| network.public().accumulator(value).bits();
        let most = (0..=found.len()).map(bits).max();
        assert_eq!(most, Some(if saturates { 22 } else { 20 }));
        let (error, same) = agreement(&mut sketch, &network);
        assert!(error < 0.03 && same >= 97, "{error} {same}");
    }
}

#[test]
fn an_output_is_rounded_to_the_unit_that_is_asked_for() {
    for rings in [QuantizationOptions::default(), QuantizationOptions::powers_of_two()] {
        let mut sketch = small_network(1);
        let calibration = sketch.samples(40, 0.0, 1.0);
        let compiled = |output_unit| {
            let options = QuantizationOptions { output_unit, ..rings.clone() };
            compile(&sketch.graph, &sketch.tensors, &calibration, &options).unwrap()
        };
        let whole = compiled(None);
        for unit in [0.5, 0.01] {
            let rounded = compiled(Some(unit));
            assert_eq!(ops(&rounded).last(), Some(&"Rescale"));
            assert!((unit / 2.0..=unit).contains(&rounded.output_scale()), "{}", rounded.output_scale());
            // Half a unit beside what the sums are off by.
            let float = FloatExecutor::new(&sketch.graph, &sketch.tensors).unwrap();
            let x = &calibration[..float.input_len()];
            let scores = float.run(x).unwrap();
            let error = |network: &Network| {
                let run = FixedExecutor::new(network).unwrap().run_real(x).unwrap();
                let scale = network.output_scale();
                let errors = run.output.iter().zip(&scores);
                errors.map(|(y, score)| (*y as f64 * scale - f64::from(*score)).abs()).fold(0.0, f64::max)
            };
            assert!(error(&rounded) <= error(&whole) + 0.51 * unit);
        }
        // Sums of a unit that is coarser already.
        assert_eq!(ops(&compiled(Some(1e-9))), ops(&whole));
    }
}

#[test]
fn average_pools_and_residual_scales_are_exact_up_to_rounding() {
    let mut sketch = Sketch::new(&[2, 12, 12], 2)
        .batch_norm("bn0", [0.5, 1.5])
        .conv("c1", 6, 3, 1, 1)
        .batch_norm("bn1", [-1.5, 1.5])
        .relu("r1")
        .average_pool("p1", 2)
        .conv("c2", 6, 3, 1, 0)
        .average_pool("p2", 2)
        .conv("c3", 8, 2, 1, 0)
        .op("r3", Op::Clip(Clip { min: Some(0.0), max: Some(0.4) }))
        .op("gap", Op::GlobalAveragePool)
        .flatten("f")
        .dense("fc", 10);
    let network = compiled(&mut sketch);
    let expected = [
        "Conv2d", "Relu", "Rescale", "SumPool", "Conv2d", "SumPool", "Rescale", "Conv2d", "Relu", "Clip",
        "Rescale", "SumPool", "Reshape", "Linear",
    ];
    assert_eq!(ops(&network), expected);
    let (error, _) = agreement(&mut sketch, &network);
    assert!(error < 0.05, "{error}");
}

#[test]
fn operators_before_the_first_layer_compile() {
    let mut sketch = Sketch::new(&[1, 8, 8], 3).average_pool("p", 2).relu("r").flatten("f").dense("fc", 4);
    let network = compiled(&mut sketch);
    assert_eq!(ops(&network), ["SumPool", "Relu", "Reshape", "Linear"]);
    let (error, _) = agreement(&mut sketch, &network);
    assert!(error < 0.03, "{error}");
}

#[test]
fn every_integer_follows_from_the_public_rules() {
    // One dense layer of known integers: scale 1/255 at the input, weights that quantise exactly.
    let mut sketch = Sketch::new(&[2], 4).dense("fc", 2).relu("r").dense("out", 1);
    let network = compiled(&mut sketch);
    let nodes = network.public().nodes();
    let FixedOp::Rescale { shift } = nodes[2].op else { panic!("{:?}", nodes[2].op) };
    let (first, second) = (network.weights(0).unwrap(), network.weights(3).unwrap());
    let x = network.public().input().quantize(&[0.25, 0.75]).unwrap();
    let hidden: Vec<i64> = (0..2)
        .map(|row| {
            first.weight()[2 * row] * x[0] + first.weight()[2 * row + 1] * x[1] + first.bias()[row] as i64
        })
        .map(|sum| rescale(sum.max(0), shift))
        .collect();
    let expected = second.weight()[0] * hidden[0] + second.weight()[1] * hidden[1] + second.bias()[0] as i64;
    assert_eq!(FixedExecutor::new(&network).unwrap().run(&x).unwrap().output, [i128::from(expected)]);
}

#[test]
fn rescale_rounds_halves_up_and_floors_negatives() {
    for (x, shift, expected) in [
        (5, 0, 5),
        (-5, 0, -5),
        (5, 1, 3),
        (-5, 1, -2),
        (4, 3, 1),
        (3, 3, 0),
        (-4, 3, 0),
        (-5, 3, -1),
        (-12, 3, -1),
        (-13, 3, -2),
        (507_904, 10, 496),
        (-507_904, 10, -496),
        (0, 20, 0),
        (1 << 40, 40, 1),
        (-1, 40, 0),
    ] {
        assert_eq!(rescale(x, shift), expected, "{x} >> {shift}");
        let exact = (x as f64 / f64::from(2.0_f32).powi(shift as i32) + 0.5).floor();
        assert_eq!(rescale(x, shift), if shift == 0 { x } else { exact as i64 });
    }
}

#[test]
fn arg_max_ties_go_to_the_lowest_index() {
    assert_eq!(arg_max(&[3, 9, 9, -1]), 1);
    assert_eq!(arg_max(&[-5, -5]), 0);
    assert_eq!(arg_max::<i64>(&[]), 0);
}

#[test]
fn proved_bounds_hold_at_the_worst_input() {
    let mut sketch = Sketch::new(&[1, 5, 5], 5).conv("c", 3, 5, 1, 0).relu("r").flatten("f").dense("fc", 2);
    let network = compiled(&mut sketch);
    let report = &network.values()[1];
    assert_eq!(report.evidence, Evidence::Proved);
    let (input, layer) = (network.public().input(), network.weights(0).unwrap());
    let executor = FixedExecutor::new(&network).unwrap();
    let mut reached = (0, 0);
    for channel in layer.weight().chunks_exact(25) {
        for sign in [1, -1] {
            let x: Vec<i64> =
                channel.iter().map(|w| if w * sign > 0 { input.high } else { input.low }).collect();
            let visit = |value: usize, integers: Integers<'_>| {
                if value == 1 {
                    let [low, high] = integers.ends();
                    reached = (reached.0.min(low), reached.1.max(high));
                }
            };
            assert_eq!(executor.trace(&x, visit).unwrap().overflows, vec![0; network.public().nodes().len()]);
        }
    }
    assert_eq!(reached, (report.low, report.high));
}

#[test]
fn sums_beyond_the_ring_are_counted_and_come_back_into_it() {
    let mut sketch = small_network(6);
    // Calibrated on faint inputs that excite little; the accepted range is then left by nothing but the sums.
    let dim = sketch.samples(4, 0.0, 0.02);
    let mut calibration = dim.clone();
    calibration[0] = 1.0;
    let run = |saturates| {
        let options = QuantizationOptions { saturates, ..QuantizationOptions::default() };
        let network = compile(&sketch.graph, &sketch.tensors, &calibration, &options).unwrap();
        let run = FixedExecutor::new(&network).unwrap().run_real(&vec![1.0; dim.len() / 4]).unwrap();
        (network, run)
    };
    // Where what is too large saturates, nothing comes back.
    let (_, saturated) = run(true);
    assert_eq!(saturated.overflow_count(), 0);
    assert!(saturated.is_saturated());
    let (network, run) = run(false);
    assert!(run.overflow_count() > 0 && run.saturated_count() == 0);
    let p = network.public().accumulator(network.public().nodes().len()).modulus() as i128;
    assert!(run.output.iter().all(|y| y.abs() <= p / 2));
}

#[test]
fn wide_layers_take_larger_rings_only_where_they_must() {
    // 2,000 equal weights leave a 20-bit ring fewer than 8 bits for the weights.
    let mut sketch = Sketch::new(&[2000], 7);
    let weight = vec![0.01; 2000 * 2];
    sketch.tensors.insert("w", lanner_network::Tensor::new(vec![2000, 2], weight).unwrap()).unwrap();
    let mut sketch = sketch.op("fc", Op::MatMul { weight: "w".into(), bias: None });
    let network = compiled(&mut sketch);
    assert!(network.public().accumulator(1).bits() > 20);
    let calibration = sketch.samples(8, 0.0, 1.0);
    let only = QuantizationOptions {
        accumulators: vec![Accumulator::from_modulus(1_032_193).unwrap()],
        ..QuantizationOptions::default()
    };
    let error = compile(&sketch.graph, &sketch.tensors, &calibration, &only).unwrap_err();
    assert!(matches!(&error, CompileError::RangeOverflow { node, .. } if node == "fc"), "{error}");
    assert!(error.to_string().starts_with("layer `fc`: its sums reach "));
}

#[test]
fn inputs_are_accepted_up_to_twice_the_calibrated_range() {
    let network = compiled(&mut small_network(8));
    let input = network.public().input();
    let mut x = vec![0.5; 196];
    x[3] = input.limits()[1] as f32;
    assert!(input.limits()[1] > 1.9 && input.limits()[0] == 0.0);
    assert_eq!(input.quantize(&x).unwrap()[3], input.high);
    for value in [2.5, -0.1, f32::MAX] {
        x[3] = value;
        assert!(matches!(input.quantize(&x), Err(InputError::OutOfRange { index: 3, .. })), "{value}");
    }
    x[3] = f32::INFINITY;
    assert_eq!(input.quantize(&x), Err(InputError::NotFinite { index: 3 }));
    assert!(matches!(input.check(&[0; 195]), Err(InputError::Length { .. })));
    assert!(matches!(input.check(&[-1; 196]), Err(InputError::OutOfRange { .. })));
}

#[test]
fn activation_bits_set_the_precision() {
    let mut sketch = small_network(9);
    let calibration = sketch.samples(40, 0.0, 1.0);
    let mut errors = Vec::new();
    for activation_bits in [4, 8, 12] {
        let options = QuantizationOptions { activation_bits, ..QuantizationOptions::default() };
        let network = compile(&sketch.graph, &sketch.tensors, &calibration, &options).unwrap();
        sketch.random = Random(77);
        errors.push(agreement(&mut sketch, &network).0);
    }
    assert!(errors[0] > errors[1] && errors[1] > errors[2], "{errors:?}");
}

#[test]
fn compilation_is_deterministic() {
    let network = compiled(&mut small_network(10));
    assert_eq!(network, compiled(&mut small_network(10)));
}

#[test]
fn zero_weights_and_dead_layers_compile() {
    let mut sketch = Sketch::new(&[3], 11).dense("a", 4).relu("r").dense("b", 2);
    for name in ["a.w", "a.b"] {
        let shape = sketch.tensors.get(name).unwrap().shape().to_vec();
        let zeros = vec![0.0; shape.iter().product()];
        sketch.tensors.insert(name, lanner_network::Tensor::new(shape, zeros).unwrap()).unwrap();
    }
    let network = compiled(&mut sketch);
    let (error, _) = agreement(&mut sketch, &network);
    assert!(error < 0.01, "{error}");
}
