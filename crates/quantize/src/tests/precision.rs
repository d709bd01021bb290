//! What precision takes: bits are searched for, and what is missed is said.

use lanner_network::{Accumulator, CompileError, Network, NetworkManifest, Precision, PublicNetwork};

use lanner_graph::Op;

use super::branches::residual;
use super::{Sketch, small_network};
use crate::{Aim, Calibration, Cost, NoRoom, QuantizationOptions, Told, compile_to};

/// The bits of all rings.
fn ring_bits(network: &PublicNetwork) -> u64 {
    network.nodes().iter().map(|node| u64::from(node.accumulator.bits())).sum()
}

/// The cost of a mode that has room for all.
const ROOMY: fn(&PublicNetwork) -> Result<u64, NoRoom> = |network| Ok(ring_bits(network));

fn no_room(node: &str) -> NoRoom {
    let [reason, fix] = ["a ring is wide", "allow wide rings"].map(str::to_owned);
    NoRoom { node: node.to_owned(), reason, fix }
}

fn aim(precision: Precision) -> Aim {
    Aim { precision, demanded: true, told: Told::Scores }
}

fn options(powers: bool) -> QuantizationOptions {
    if powers { QuantizationOptions::powers_of_two() } else { QuantizationOptions::default() }
}

/// Compiles on the same samples each time.
fn compiled(
    mut sketch: Sketch,
    options: &QuantizationOptions,
    aim: Aim,
    cost: &Cost<'_>,
) -> Result<Network, CompileError> {
    let calibration = sketch.samples(64, 0.0, 1.0);
    compile_to(&sketch.graph, &sketch.tensors, &calibration, options, aim, cost)
}

/// The fewest bits of a layer's weights.
fn fewest_weight_bits(network: &Network) -> u32 {
    network.values().iter().filter_map(|value| Some(value.weights?.bits)).min().unwrap()
}

#[test]
fn a_smaller_error_takes_wider_rings_and_is_reached() {
    for powers in [false, true] {
        for sketch in [|| small_network(1), || residual(31)] {
            let mut before = Vec::new();
            for error in [0.1, 0.02, 0.005, 0.001] {
                let aim = aim(Precision::Error(error));
                let network = compiled(sketch(), &options(powers), aim, &ROOMY).unwrap();
                let reached = network.reached().unwrap();
                assert!(reached.is_met() && reached.error <= error, "{reached:?}");
                assert_eq!((reached.samples, reached.asked), (64, aim.precision));
                before.push(ring_bits(network.public()));
            }
            assert!(before.is_sorted() && before[0] < before[3], "{before:?}");
        }
    }
}

/// Two blocks of the same shapes, each with a product of secrets' matrices.
fn products() -> Sketch {
    ["first", "second"].into_iter().fold(Sketch::new(&[8], 7), |sketch, name| {
        let (at, [left, right, product]) =
            (sketch.graph.output.clone(), ["left", "right", "product"].map(|part| format!("{name} {part}")));
        sketch
            .dense(&format!("{left} layer"), 24)
            .op(&left, Op::Reshape { shape: vec![2, 3, 4] })
            .resume(&at)
            .dense(&format!("{right} layer"), 24)
            .op(&right, Op::Reshape { shape: vec![2, 4, 3] })
            .join(&product, Op::MatrixProduct, &[&left, &right])
            .op(&format!("{product} flat"), Op::Flatten)
            .dense(name, 8)
    })
}

#[test]
fn what_is_alike_has_fewer_bits_where_the_precision_allows_it() {
    let searched = compiled(products(), &options(true), aim(Precision::Error(0.02)), &ROOMY).unwrap();
    let reached = searched.reached().unwrap();
    assert!(reached.is_met(), "{reached:?}");
    // The fewest bits, the same for all, with which the same is reached.
    let uniform = (Precision::FEWEST_BITS..=Precision::MOST_BITS)
        .map(|bits| compiled(products(), &options(true), aim(Precision::Bits(bits)), &ROOMY).unwrap())
        .find(|network| network.reached().unwrap().error <= 0.02)
        .unwrap();
    let [fewer, more] = [&searched, &uniform].map(|network| ring_bits(network.public()));
    assert!(fewer < more, "{fewer} {more}");
}

#[test]
fn the_search_repeats_itself() {
    let network = || compiled(residual(31), &options(true), aim(Precision::Error(0.003)), &ROOMY).unwrap();
    assert_eq!(network(), network());
}

#[test]
fn a_number_of_bits_is_that_of_activations_and_the_fewest_of_weights() {
    for bits in [6, 9, 13] {
        let network = compiled(small_network(1), &options(true), aim(Precision::Bits(bits)), &ROOMY).unwrap();
        assert!(fewest_weight_bits(&network) >= bits);
        assert_eq!(network.reached().unwrap().asked, Precision::Bits(bits));
        for (index, node) in network.public().nodes().iter().enumerate() {
            if node.op.is_linear() && index > 0 {
                let [low, high] = network.values()[node.inputs[0]].calibrated;
                let spanned = u128::BITS - high.abs_diff(low).leading_zeros();
                assert!(spanned == bits || spanned + 1 == bits, "{}: {spanned} of {bits}", node.name);
            }
        }
    }
}

#[test]
fn weights_keep_to_what_their_ring_says() {
    for bits in Precision::FEWEST_BITS..=Precision::MOST_BITS {
        let network = compiled(small_network(2), &options(true), aim(Precision::Bits(bits)), &ROOMY).unwrap();
        let mut widest = 0;
        for (node, value) in network.public().nodes().iter().zip(&network.values()[1..]) {
            let Some(weights) = value.weights else { continue };
            assert!(weights.bits <= node.accumulator.weight_bits(), "{}: {weights:?}", value.name);
            widest = widest.max(weights.bits);
        }
        assert!(widest >= bits.min(15));
    }
}

#[test]
fn what_no_ring_has_room_for_is_refused_by_the_layers_name_or_taken_as_it_is() {
    let accumulators = Accumulator::powers_of_two().filter(|ring| ring.bits() <= 22).collect();
    let narrow = QuantizationOptions { accumulators, ..options(true) };
    let asked = aim(Precision::Error(0.001));
    let refused = compiled(small_network(1), &narrow, asked, &ROOMY).unwrap_err();
    let CompileError::Precision { node, bits, asked: said, lost: 0, .. } = &refused else {
        panic!("{refused}");
    };
    assert_eq!(&**said, "0.1%");
    assert!(
        (7..=10).contains(bits) && ["conv1", "conv2", "fc1", "fc2"].contains(&node.as_str()),
        "{refused}"
    );
    let told = format!("{refused}; {}", refused.fix());
    let next = format!("with {}: layer `", bits + 1);
    for word in
        [&next, "the largest ring allows", "0.1%", "⟦precision=1%⟧", "lanner debug", "⟦allow_imprecise⟧"]
    {
        assert!(told.contains(word), "{word}: {told}");
    }
    let taken = compiled(small_network(1), &narrow, Aim { demanded: false, ..asked }, &ROOMY).unwrap();
    let reached = taken.reached().unwrap();
    assert!(!reached.is_met() && reached.error > 0.001 && reached.error < 0.05, "{reached:?}");
}

#[test]
fn a_value_that_no_ring_proves_is_named() {
    let committed = QuantizationOptions::one_prime();
    let refused = compiled(small_network(1), &committed, aim(Precision::Error(1e-9)), &ROOMY).unwrap_err();
    assert!(matches!(&refused, CompileError::Precision { node, .. } if !node.is_empty()), "{refused}");
}

#[test]
fn a_mode_without_room_limits_the_bits() {
    let cost = |network: &PublicNetwork| {
        let wide = network.nodes().iter().find(|node| node.accumulator.bits() > 24);
        wide.map_or_else(|| ROOMY(network), |node| Err(no_room(&node.name)))
    };
    let network = compiled(small_network(1), &options(true), aim(Precision::Error(0.02)), &cost).unwrap();
    assert!(network.public().nodes().iter().all(|node| node.accumulator.bits() <= 24));
    let refused =
        compiled(small_network(1), &options(true), aim(Precision::Error(0.0005)), &cost).unwrap_err();
    assert!(matches!(&refused, CompileError::Precision { node, .. } if !node.is_empty()), "{refused}");
    let told = format!("{refused}; {}", refused.fix());
    assert!(told.contains("the mode has no room for "), "{told}");
    assert!(told.contains(": a ring is wide") && told.contains("; allow wide rings; "), "{told}");
    // What has no room at all is for the mode to refuse.
    let nowhere = |_: &PublicNetwork| Err(no_room("conv1"));
    assert!(compiled(small_network(1), &options(true), aim(Precision::Error(0.9)), &nowhere).is_ok());
}

#[test]
fn what_is_tried_is_told() {
    let (mut sketch, told) = (small_network(1), std::sync::Mutex::new(Vec::new()));
    let samples = sketch.samples(64, 0.0, 1.0);
    let tell = |what: &str| told.lock().unwrap().push(what.to_owned());
    let calibration = Calibration { tell: &tell, ..(&samples).into() };
    let (options, aim) = (options(true), aim(Precision::Error(0.02)));
    compile_to(&sketch.graph, &sketch.tensors, calibration, &options, aim, &ROOMY).unwrap();
    let told = told.into_inner().unwrap();
    assert!(told.len() > 2 && told[0].starts_with("calibrating: 11 bits, "), "{told:?}");
    assert!(told.iter().any(|what| what.contains(", 64 samples")), "{told:?}");
    assert!(told.iter().any(|what| what.contains(" bits, fewer in some layers, ")), "{told:?}");
}

#[test]
fn precisions_that_are_none_are_refused() {
    let wrong = [
        Precision::Bits(5),
        Precision::Bits(17),
        Precision::Error(0.0),
        Precision::Error(1.0),
        Precision::Error(f64::NAN),
    ];
    for precision in wrong {
        let refused = compiled(small_network(1), &options(true), aim(precision), &ROOMY).unwrap_err();
        assert!(matches!(refused, CompileError::Option { option: "precision", .. }), "{refused}");
    }
}

#[test]
fn the_owners_half_alone_knows_what_is_reached() {
    let network = compiled(small_network(1), &options(true), aim(Precision::Error(0.02)), &ROOMY).unwrap();
    let (manifest, weights) = network.to_parts().unwrap();
    let json = manifest.to_json().unwrap();
    let read = Network::from_parts(NetworkManifest::from_json(&json).unwrap(), &weights).unwrap();
    assert_eq!(read, network);
    assert!(json.contains("labels_kept"));
    let public = network.public().to_json().unwrap();
    assert!(!public.contains("reached") && !public.contains("labels_kept") && !public.contains("0.02"));
}
