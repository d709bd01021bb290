//! Smaller rings in front of functions and for products, and tails of absolute values.

use lanner_graph::Op;
use lanner_graph::elementwise::{Function, Ramp};
use lanner_network::{FixedExecutor, FixedOp, Network, PublicNetwork};

use super::Sketch;
use super::compiled::agreement;
use super::smooth::at_bits;

/// The node of a name, and the bits of its ring.
fn ring(network: &Network, name: &str) -> Option<(usize, u32)> {
    let node = network.public().nodes().iter().position(|node| node.name == name)?;
    Some((node, network.public().accumulator(node + 1).bits()))
}

/// The integers of all values that a network makes of an input.
fn trace(network: &Network, input: &[f32]) -> Vec<Vec<i128>> {
    let mut values = Vec::new();
    let input = network.public().input().quantize(input).unwrap();
    let executor = FixedExecutor::new(network).unwrap();
    let beyond = executor.trace(&input, |_, integers| values.push(integers.to_vec())).unwrap();
    assert_eq!(beyond.overflows.iter().sum::<usize>(), 0);
    values
}

/// What a network of a ramp makes of its samples: tails are of absolute values, in the small ring if the rescale is in one, which is returned.
fn check_even_tail(sketch: &mut Sketch, network: &Network) -> bool {
    let public = network.public();
    let (rescale, bits) = ring(network, "a/rescale").unwrap();
    let FixedOp::Rescale { shift } = public.nodes()[rescale].op else { panic!() };
    let is_small = bits + shift == public.accumulator(public.nodes()[rescale].inputs[0]).bits();
    let [relu, size, tail] = ["f/relu", "f/tail/size", "f/tail"].map(|name| ring(network, name).unwrap());
    let moved = ["f/relu/wide", "f/relu/narrow"].map(|name| ring(network, name));
    assert!([relu, size].iter().all(|(_, of)| *of == bits));
    assert_eq!(
        moved.map(|node| node.map(|(_, of)| of)),
        if is_small { [Some(tail.1), Some(bits)] } else { [None; 2] }
    );
    let FixedOp::Function(function) = &public.nodes()[tail.0].op else { panic!() };
    assert_eq!(function.low, 0);
    for sample in sketch.samples(20, 0.0, 1.0).chunks(6) {
        let values = trace(network, sample);
        for (index, x) in values[rescale + 1].iter().enumerate() {
            let of = |(node, _): (usize, u32)| values[node + 1][index];
            assert!([Some(relu)].iter().chain(&moved).flatten().all(|node| of(*node) == *x.max(&0)));
            assert_eq!((of(size), of(tail)), (x.abs(), i128::from(function.at(x.abs() as i64))));
        }
    }
    is_small
}

#[test]
fn even_tails_are_of_absolute_values_in_a_ring_of_the_bits_that_are_left() {
    let even = [
        Ramp::Gelu { approximate: false },
        Ramp::Gelu { approximate: true },
        Ramp::Swish { alpha: 1.3 },
        Ramp::Softplus,
    ];
    for (seed, ramp) in (90..).zip(even) {
        let mut small = 0;
        for bits in [8, 9, 10, 11] {
            let mut sketch =
                Sketch::new(&[6], seed).dense("a", 9).op("f", Op::Ramp(ramp.clone())).dense("b", 5);
            let network = at_bits(&mut sketch, bits).unwrap();
            assert!(agreement(&mut sketch, &network).0 < 0.03, "{ramp:?}");
            small += usize::from(check_even_tail(&mut sketch, &network));
            let read = PublicNetwork::from_json(&network.public().to_json().unwrap()).unwrap();
            assert_eq!(&read, network.public());
            let (manifest, weights) = network.to_parts().unwrap();
            assert_eq!(Network::from_parts(manifest, &weights).unwrap(), network);
        }
        // The domains of the others have no room in the small ring.
        assert_eq!(small > 0, matches!(ramp, Ramp::Gelu { .. }), "{ramp:?}");
    }
}

/// Tails that are not even are of the value itself; so is whatever has no positive part.
#[test]
fn other_functions_take_the_value_itself() {
    for (seed, op) in [(95, Op::Ramp(Ramp::Elu { alpha: 1.0 })), (96, Op::Function(Function::Sigmoid))] {
        let mut sketch = Sketch::new(&[6], seed).dense("a", 9).op("f", op.clone()).dense("b", 5);
        let network = at_bits(&mut sketch, 10).unwrap();
        assert!(
            agreement(&mut sketch, &network).0 < 0.01 && ring(&network, "f/tail/size").is_none(),
            "{op:?}"
        );
    }
}

/// A value that a layer takes, too, keeps its ring: the layer's.
#[test]
fn a_value_that_others_take_keeps_its_ring() {
    let mut sketch = Sketch::new(&[6], 97)
        .dense("a", 9)
        .op("s", Op::Function(Function::Sigmoid))
        .dense("b", 5)
        .resume("a")
        .dense("c", 5)
        .join("sum", Op::Add, &["b", "c"]);
    let network = at_bits(&mut sketch, 9).unwrap();
    assert!(agreement(&mut sketch, &network).0 < 0.01);
    let (rescale, bits) = ring(&network, "a/rescale").unwrap();
    let FixedOp::Rescale { shift } = network.public().nodes()[rescale].op else { panic!() };
    let before = network.public().accumulator(network.public().nodes()[rescale].inputs[0]).bits();
    assert!(bits + shift > before, "{bits} {shift} {before}");
}
