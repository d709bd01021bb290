//! Sums that cannot wrap: whatever input is accepted, a result is right, or told to be saturated.

use lanner_graph::elementwise::LeakyRelu;
use lanner_graph::{FloatExecutor, Op};
use lanner_network::{Evidence, FixedExecutor, FixedOp, FixedRun, Network};

use super::branches::residual;
use super::{Sketch, small_network};
use crate::{QuantizationOptions, compile};

/// Compiled on samples that cover a part of what is accepted.
fn compiled(sketch: &mut Sketch, options: &QuantizationOptions) -> Network {
    let calibration = sketch.samples(30, 0.0, 1.0);
    compile(&sketch.graph, &sketch.tensors, &calibration, options).unwrap()
}

/// Corners of the accepted range, and inputs that scale up to them, as the integers that they are.
fn inputs(sketch: &mut Sketch, network: &Network) -> Vec<Vec<i64>> {
    let input = network.public().input();
    let length: usize = input.shape.iter().product();
    let mut inputs = vec![vec![input.high; length], vec![input.low; length]];
    for number in 0..60 {
        let of_corner = |x: f32| if x < 0.5 { input.low } else { input.high };
        let scaled = |x: f32| (f64::from(x) * input.high as f64 * f64::from(number) / 60.0) as i64;
        let drawn = sketch.random.reals(length, 0.0, 1.0);
        inputs.push(drawn.iter().map(|x| if number % 2 == 0 { of_corner(*x) } else { scaled(*x) }).collect());
    }
    inputs
}

/// Of each input what fixed point makes of it, and how far that is from the float graph's, over the largest score.
fn runs(sketch: &mut Sketch, network: &Network) -> Vec<(FixedRun, f64)> {
    let inputs = inputs(sketch, network);
    let (fixed, float) =
        (FixedExecutor::new(network).unwrap(), FloatExecutor::new(&sketch.graph, &sketch.tensors).unwrap());
    let unit = network.public().input().scale.unit();
    let of_input = |input: &Vec<i64>| {
        let real: Vec<f32> = input.iter().map(|x| (*x as f64 * unit) as f32).collect();
        let (run, scores) = (fixed.run(input).unwrap(), float.run(&real).unwrap());
        let largest = scores.iter().fold(1e-9, |largest: f64, score| largest.max(f64::from(score.abs())));
        let errors = run.output.iter().zip(&scores);
        let errors = errors.map(|(y, score)| (*y as f64 * network.output_scale() - f64::from(*score)).abs());
        let error = errors.fold(0.0, f64::max) / largest;
        (run, error)
    };
    inputs.iter().map(of_input).collect()
}

#[test]
fn every_accepted_input_has_the_right_result_or_one_told_to_be_saturated() {
    let (mut saturated, mut right) = (0, 0);
    for (mut sketch, most) in [
        (small_network(1), 0.06),
        (residual(31), 0.1),
        (Sketch::new(&[6], 3).dense("a", 12).relu("r").dense("b", 12).relu("s").dense("c", 3), 0.06),
    ] {
        let network = compiled(&mut sketch, &QuantizationOptions::default());
        assert_eq!(network.unproved().count(), 0);
        for (run, error) in runs(&mut sketch, &network) {
            assert_eq!(run.overflow_count(), 0);
            assert!(run.is_saturated() || error < most, "{error}");
            if run.is_saturated() { saturated += 1 } else { right += 1 }
        }
    }
    assert!(saturated > 0 && right > 20, "{saturated} {right}");
}

/// Without upper bounds, corners of the range leave rings that are chosen by samples.
#[test]
fn sums_wrap_where_nothing_saturates() {
    let options = QuantizationOptions { saturates: false, ..QuantizationOptions::default() };
    let mut wrapped = 0;
    for seed in 1..8 {
        let mut sketch =
            Sketch::new(&[30], seed).dense("a", 40).relu("r").dense("b", 30).relu("s").dense("c", 3);
        let network = compiled(&mut sketch, &options);
        wrapped += runs(&mut sketch, &network).iter().filter(|(run, _)| run.overflow_count() > 0).count();
        let network = compiled(&mut sketch, &QuantizationOptions::default());
        assert!(runs(&mut sketch, &network).iter().all(|(run, _)| run.overflow_count() == 0));
    }
    assert!(wrapped > 0);
}

/// What saturates is a power of two less one, at least twice what calibration saw; and it is told apart from a bound of the graph's own.
#[test]
fn upper_bounds_leave_twice_what_calibration_saw() {
    let mut sketch = small_network(4);
    let network = compiled(&mut sketch, &QuantizationOptions::default());
    let (nodes, values) = (network.public().nodes(), network.values());
    let mut bounds = 0;
    for (index, node) in nodes.iter().enumerate().filter(|(_, node)| matches!(node.op, FixedOp::Clip(_))) {
        assert!(values[index + 1].saturates && node.name.ends_with("/saturate"));
        let FixedOp::Rescale { .. } = nodes[index + 1].op else { panic!("no rescale behind {}", node.name) };
        let rescaled = &values[index + 2];
        assert!((rescaled.high + 1).unsigned_abs().is_power_of_two());
        let [_, seen] = rescaled.calibrated;
        assert!((2 * seen - 1..=4 * seen + 2).contains(&rescaled.high), "{} of {seen}", rescaled.high);
        assert_eq!(rescaled.evidence, Evidence::Proved);
        bounds += 1;
    }
    assert!(bounds >= 2);
    // A manifest says so; another operator cannot.
    let (manifest, tensors) = network.to_parts().unwrap();
    let json = manifest.to_json().unwrap();
    assert_eq!(json.matches(r#""saturates":true"#).count(), bounds);
    let read =
        Network::from_parts(lanner_network::NetworkManifest::from_json(&json).unwrap(), &tensors).unwrap();
    assert_eq!(read, network);
}

/// Modulo a power of two a bound is a number of three bits and zeros, and leaves about half as much again.
#[test]
fn upper_bounds_of_few_bits_are_cheap_to_compare_with() {
    let options = QuantizationOptions { saturates: true, ..QuantizationOptions::powers_of_two() };
    let mut saturated = 0;
    for mut sketch in [small_network(4), residual(31)] {
        let network = compiled(&mut sketch, &options);
        assert_eq!(network.unproved().count(), 0);
        let nodes = network.public().nodes();
        for (index, node) in nodes.iter().enumerate() {
            let FixedOp::Clip(clip) = &node.op else { continue };
            let FixedOp::Rescale { shift } = nodes[index + 1].op else {
                panic!("no rescale behind {}", node.name)
            };
            let high = clip.high >> shift;
            assert_eq!(high << shift, clip.high);
            assert!(high >> high.trailing_zeros() < 8, "{high}");
            let [_, seen] = network.values()[index + 2].calibrated;
            assert!(3 * high >= 4 * (seen as i64) - 3 && 2 * high <= 4 * seen as i64 + 2, "{high} of {seen}");
            saturated += 1;
        }
        for (run, error) in runs(&mut sketch, &network) {
            assert_eq!(run.overflow_count(), 0);
            assert!(run.is_saturated() || error < 0.1, "{error}");
        }
    }
    assert!(saturated >= 3, "{saturated}");
}

/// A slope below zero has no upper bound: behind some layers there is no ring for a proof, and what calibration saw must do.
#[test]
fn layers_without_upper_bounds_are_proved_as_far_as_rings_reach() {
    let leaky = || Op::LeakyRelu(LeakyRelu { alpha: 0.3 });
    let mut sketch = Sketch::new(&[64], 9);
    for layer in 0..8 {
        sketch = sketch.dense(&format!("fc{layer}"), 64).op(&format!("leaky{layer}"), leaky());
    }
    let mut sketch = sketch.dense("last", 4);
    let network = compiled(&mut sketch, &QuantizationOptions::default());
    let unproved: Vec<&str> = network.unproved().map(|value| value.name.as_str()).collect();
    assert!(!unproved.is_empty() && !unproved.contains(&"fc0"), "{unproved:?}");
    // What follows takes no larger rings for nothing.
    let options = QuantizationOptions { saturates: false, ..QuantizationOptions::default() };
    let rings = [&network, &compiled(&mut sketch, &options)].map(|network| {
        let public = network.public();
        [public.nodes().len() - 2, public.nodes().len()].map(|value| public.accumulator(value))
    });
    assert_eq!(rings[0], rings[1]);
}
