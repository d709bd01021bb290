//! The rings of what is looked up, and the bits that lookups keep.

use lanner_graph::elementwise::LeakyRelu;
use lanner_graph::{FloatExecutor, Op};
use lanner_network::{Accumulator, CompileError, Evidence, FixedExecutor, FixedOp, Network, PublicNetwork};

use super::branches::{every_operator, residual};
use super::{Sketch, small_network};
use crate::{QuantizationOptions, compile};

fn narrowing(kept_bits: Option<u32>) -> QuantizationOptions {
    QuantizationOptions { narrow: true, kept_bits, ..QuantizationOptions::powers_of_two() }
}

fn compiled(sketch: &Sketch, samples: &[f32], options: &QuantizationOptions) -> Network {
    compile(&sketch.graph, &sketch.tensors, samples, options).unwrap()
}

/// Samples of three networks' inputs.
fn networks() -> Vec<(Sketch, Vec<f32>)> {
    let sketches = [small_network(1), residual(31), every_operator(32)];
    sketches.map(|mut sketch| (sketch.samples(40, 0.0, 1.0), sketch)).map(|(x, sketch)| (sketch, x)).into()
}

/// The integers of all scores of samples, none of which may overflow.
fn scores(network: &Network, samples: &[f32]) -> Vec<Vec<i128>> {
    let executor = FixedExecutor::new(network).unwrap();
    let run = |sample: &[f32]| {
        let run = executor.run_real(sample).unwrap();
        assert_eq!(run.overflow_count(), 0);
        run.output
    };
    samples.chunks(network.public().input().len()).map(run).collect()
}

#[test]
fn narrow_rings_change_no_result_and_take_no_proof() {
    for (mut sketch, samples) in networks() {
        // Slopes below zero are functions behind their rescales where these are looked up.
        for node in &mut sketch.graph.nodes {
            if matches!(node.op, Op::LeakyRelu(_)) {
                node.op = Op::Relu;
            }
        }
        let wide = compiled(&sketch, &samples, &QuantizationOptions::powers_of_two());
        let narrow = compiled(&sketch, &samples, &narrowing(None));
        assert_eq!(scores(&narrow, &samples), scores(&wide, &samples));
        let evidence = |network: &Network| -> Vec<(String, Evidence)> {
            let values = network.values().iter().filter(|value| value.operator != "Narrow");
            values.map(|value| (value.name.clone(), value.evidence)).collect()
        };
        assert_eq!(evidence(&narrow), evidence(&wide));
        let read = PublicNetwork::from_json(&narrow.public().to_json().unwrap()).unwrap();
        assert_eq!(&read, narrow.public());
        let (manifest, weights) = narrow.to_parts().unwrap();
        assert_eq!(Network::from_parts(manifest, &weights).unwrap(), narrow);
    }
}

/// The ring of what each lookup takes has room for twice what calibration saw, and the next smaller one has not.
#[test]
fn what_is_looked_up_has_the_smallest_ring_for_twice_its_range() {
    for (sketch, samples) in networks() {
        for kept in [6, 8, 10] {
            let network = compiled(&sketch, &samples, &narrowing(Some(kept)));
            let public = network.public();
            assert!(public.lookups().count() > 1);
            for lookup in public.lookups() {
                let value = public.nodes()[lookup.first].inputs[0];
                let (report, ring) = (&network.values()[value], public.accumulator(value));
                let twice = 2 * report.calibrated[1].max(-report.calibrated[0]);
                // Differences take a bit more of the ring, and of what is kept none.
                let fills = public.fills(value, lookup.dropped);
                let limit = |ring: Accumulator| {
                    if fills {
                        ring.limit_without_differences(lookup.dropped)
                    } else {
                        ring.limit(lookup.dropped)
                    }
                };
                assert!(twice <= limit(ring));
                assert_eq!(lookup.kept, ring.bits() - u32::from(!fills) - lookup.dropped);
                let smaller = Accumulator::powers_of_two().find(|smaller| smaller.bits() + 1 == ring.bits());
                assert!(smaller.is_none_or(|ring| limit(ring) < twice));
                assert!(lookup.kept <= kept || ring.bits() == 16, "{} of {kept}", lookup.kept);
            }
        }
    }
}

/// A slope below zero that is looked up is a function of what its rescale keeps, to the nearest; other modes' networks have it before the rescale.
#[test]
fn a_slope_is_a_function_of_what_is_kept() {
    let mut sketch = Sketch::new(&[1, 6, 6], 3)
        .conv("a", 2, 3, 1, 0)
        .op("leaky", Op::LeakyRelu(LeakyRelu { alpha: 0.1 }))
        .max_pool("p", 2)
        .flatten("f")
        .dense("b", 12)
        .op("leaky2", Op::LeakyRelu(LeakyRelu { alpha: 0.3 }))
        .dense("c", 3);
    let samples = sketch.samples(40, 0.0, 1.0);
    let names = |network: &Network| -> Vec<&str> {
        let nodes = network.public().nodes().iter().map(|node| node.op.name());
        nodes.filter(|name| !matches!(*name, "Conv2d" | "Linear" | "Reshape" | "Narrow")).collect()
    };
    let wide = compiled(&sketch, &samples, &QuantizationOptions::powers_of_two());
    assert_eq!(names(&wide), ["MaxPool", "LeakyRelu", "Rescale", "LeakyRelu", "Rescale"]);
    for kept in [None, Some(7), Some(10)] {
        let network = compiled(&sketch, &samples, &narrowing(kept));
        assert_eq!(names(&network), ["MaxPool", "Rescale", "Function", "Rescale", "Function"]);
        let public = network.public();
        for lookup in public.lookups() {
            let FixedOp::Function(function) = &public.nodes()[lookup.rescale + 1].op else {
                panic!("{:?}", public.nodes()[lookup.rescale + 1]);
            };
            // Twice what calibration saw has a value, and no lookup keeps more for it.
            let seen = network.values()[lookup.rescale + 1].calibrated;
            assert!(seen[1].max(-seen[0]) <= i128::from(function.last()) / 2 + 1);
            assert_eq!(function.low, -function.last() - 1);
            assert!(function.bits <= lookup.kept && kept.is_none_or(|kept| function.bits <= kept));
            let slope = function.polynomials[0][1] as f64 / f64::from(function.shift).exp2();
            for u in function.low..=function.last() {
                let real = if u < 0 { u as f64 * slope } else { u as f64 };
                assert!((function.at(u) as f64 - real).abs() <= 0.5);
            }
        }
        // Not much farther from the float scores than the other, whose values have 8 bits without a sign: of 7 bits kept 5 are left for that.
        let error = |network: &Network| {
            let executor = FixedExecutor::new(network).unwrap();
            let float = FloatExecutor::new(&sketch.graph, &sketch.tensors).unwrap();
            let each = samples.chunks(36).map(|sample| {
                let run = executor.run_real(sample).unwrap();
                assert_eq!(run.overflow_count(), 0);
                let scores = run.output.iter().map(|score| *score as f64 * network.output_scale());
                let off = scores.zip(float.run(sample).unwrap()).map(|(a, b)| (a - f64::from(b)).abs());
                off.fold(0.0, f64::max)
            });
            each.fold(0.0, f64::max)
        };
        let most = if kept == Some(7) { 16.0 } else { 4.0 };
        assert!(error(&network) <= most * error(&wide), "{kept:?}: {} {}", error(&network), error(&wide));
    }
}

/// Half the room is the margin: beyond it a value counts as an overflow and comes back into its ring.
#[test]
fn what_leaves_its_ring_is_counted() {
    let sketch = Sketch::new(&[2], 5).dense("a", 6).relu("r").dense("b", 2);
    // What is accepted is four times what calibration saw.
    let samples = [1.0, 0.0, 0.0, 1.0, 0.5, 0.0];
    let accumulators = vec![Accumulator::from_modulus(1 << 24).unwrap()];
    let options = QuantizationOptions { accumulators, input_range: Some([0.0, 4.0]), ..narrowing(Some(7)) };
    let network = compiled(&sketch, &samples, &options);
    assert_eq!(scores(&network, &samples).len(), 3);
    let narrow = network.public().nodes().iter().position(|node| node.op == FixedOp::Narrow).unwrap();
    let (ring, limit) = (network.public().accumulator(narrow + 1), network.public().limit(narrow + 1));
    let executor = FixedExecutor::new(&network).unwrap();
    let [mut beyond, mut within] = [0; 2];
    let most = network.public().input().high;
    for (a, b) in (0..=most).flat_map(|a| [(a, 0), (0, a), (a, a)]) {
        let mut values = vec![Vec::new(); network.public().nodes().len() + 1];
        let counted = executor.trace(&[a, b], |value, integers| values[value] = integers.to_vec()).unwrap();
        let (before, after) = (&values[network.public().nodes()[narrow].inputs[0]], &values[narrow + 1]);
        let outside = before.iter().filter(|x| x.abs() > limit).count();
        assert_eq!(counted.overflows[narrow], outside);
        assert!(before.iter().zip(after).all(|(x, y)| if x.abs() > limit {
            ring.centre(*x) == *y
        } else {
            x == y
        }));
        if outside > 0 { beyond += 1 } else { within += 1 }
    }
    assert!(beyond > 0 && within > 0, "{beyond} {within}");
}

#[test]
fn kept_bits_out_of_range_are_refused() {
    let (sketch, samples) = (small_network(1), vec![0.5; 196]);
    for options in [
        narrowing(Some(2)),
        narrowing(Some(17)),
        QuantizationOptions { kept_bits: Some(8), ..QuantizationOptions::powers_of_two() },
    ] {
        let error = compile(&sketch.graph, &sketch.tensors, &samples, &options).unwrap_err();
        assert!(matches!(error, CompileError::Option { option: "kept_bits", .. }), "{error}");
    }
}

#[test]
fn rings_that_are_not_narrower_are_refused() {
    let refused = |from: u64, to: u64| {
        let json = format!(
            r#"{{"format_version":7,"input":{{"name":"x","shape":[4],"scale":{{"grid":0}},"low":0,"high":255,"modulus":{from}}},"nodes":[
            {{"name":"n","op":"Narrow","inputs":[0],"shape":[4],"modulus":{to}}}],"output_scale":0,"head":"scores"}}"#
        );
        PublicNetwork::from_json(&json).is_err()
    };
    assert!(!refused(1 << 20, 1 << 17) && !refused(1 << 20, 1 << 20));
    assert!(refused(1 << 17, 1 << 20) && refused(1_032_193, 114_689) && refused(1 << 20, 114_689));
}
