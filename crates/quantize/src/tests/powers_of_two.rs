//! Networks over `Z_2^l`.

use lanner_network::{Accumulator, CompileError, Evidence, FixedOp, Network, PublicNetwork};

use super::branches::{every_operator, residual};
use super::compiled::agreement;
use super::{Sketch, small_network};
use crate::{QuantizationOptions, compile};

fn compiled(sketch: &mut Sketch) -> Network {
    let calibration = sketch.samples(40, 0.0, 1.0);
    compile(&sketch.graph, &sketch.tensors, &calibration, &QuantizationOptions::powers_of_two()).unwrap()
}

fn rings(network: &Network) -> Vec<Accumulator> {
    (0..=network.public().nodes().len()).map(|value| network.public().accumulator(value)).collect()
}

#[test]
fn networks_keep_their_labels_modulo_powers_of_two() {
    for (mut sketch, most) in [(small_network(1), 0.03), (residual(31), 0.05), (every_operator(32), 0.05)] {
        let network = compiled(&mut sketch);
        assert!(rings(&network).iter().all(|ring| ring.is_power_of_two()));
        let (error, _) = agreement(&mut sketch, &network);
        assert!(error < most, "{error}");
        let bits = network.values().iter().filter_map(|value| Some(value.weights?.bits));
        assert!(bits.max().unwrap() <= 12);
        let read = PublicNetwork::from_json(&network.public().to_json().unwrap()).unwrap();
        assert_eq!(&read, network.public());
    }
}

/// One bit less does not hold some layer.
#[test]
fn each_group_has_the_smallest_ring() {
    let mut sketch = Sketch::new(&[4], 5).dense("a", 6).relu("r").dense("b", 2);
    let calibration = sketch.samples(40, 0.0, 1.0);
    let options = QuantizationOptions { saturates: false, ..QuantizationOptions::powers_of_two() };
    let network = compile(&sketch.graph, &sketch.tensors, &calibration, &options).unwrap();
    let largest = rings(&network).into_iter().max_by_key(|ring| ring.bits()).unwrap();
    assert!(largest.bits() > 16);
    let fewer = Accumulator::powers_of_two().filter(|ring| ring.bits() < largest.bits()).collect();
    let options = QuantizationOptions { accumulators: fewer, ..options };
    let error = compile(&sketch.graph, &sketch.tensors, &calibration, &options).unwrap_err();
    assert!(matches!(error, CompileError::RangeOverflow { .. }), "{error}");
}

/// A proof covers sums that are off by one and values that were rounded up.
#[test]
fn proved_ranges_hold_for_faithful_runs_too() {
    let mut sketch = small_network(3);
    let network = compiled(&mut sketch);
    let (nodes, values) = (network.public().nodes(), network.values());
    let errors = network.faithful_errors();
    for (index, node) in nodes.iter().enumerate() {
        let value = &values[index + 1];
        if value.evidence == Evidence::Proved {
            assert!(value.high.max(-value.low) <= value.limit);
            if let FixedOp::Rescale { shift } = node.op {
                assert_eq!(value.high, (values[index].high >> shift) + 1);
            }
        }
    }
    // A layer adds one; a rescale leaves one where its layer's input was exact, as the first layer's is.
    assert_eq!((errors[0], errors[1]), (0, 1));
    let first = nodes.iter().position(|node| matches!(node.op, FixedOp::Rescale { .. })).unwrap();
    assert_eq!(errors[first + 1], 1);
    assert!(errors.iter().skip(first).all(|error| *error >= 1));
}
