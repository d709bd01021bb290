//! Networks without rescales, over products of primes: values of up to 93 bits.

use lanner_graph::{FloatExecutor, Op};
use lanner_network::{CompileError, FixedExecutor, Network, NetworkManifest, Precision, PublicNetwork};

use super::{Sketch, small_network};
use crate::{Aim, QuantizationOptions, Told, compile, compile_to, replace_relu};

/// Conv, square, dense, square, dense: the form of the network of Brutzkus et al. 2019 for MNIST, smaller.
fn squares(seed: u64) -> Sketch {
    Sketch::new(&[1, 12, 12], seed)
        .conv("conv", 3, 5, 2, 1)
        .op("square1", Op::Square)
        .flatten("flat")
        .dense("fc1", 12)
        .op("square2", Op::Square)
        .dense("fc2", 5)
}

/// Compiled with so many bits, with the samples.
fn compiled(mut sketch: Sketch, bits: u32) -> (Network, Sketch, Vec<f32>) {
    let samples = sketch.samples(32, 0.0, 1.0);
    let aim = Aim { precision: Precision::Bits(bits), demanded: true, told: Told::Scores };
    let options = QuantizationOptions::without_rescales();
    let network = compile_to(&sketch.graph, &sketch.tensors, &samples, &options, aim, &|_| Ok(0)).unwrap();
    (network, sketch, samples)
}

#[test]
fn there_are_sums_and_products_alone_in_one_ring() {
    for bits in [6, 7, 8] {
        let (network, sketch, samples) = compiled(squares(5), bits);
        let public = network.public();
        let ring = public.input().accumulator;
        assert!(ring.factors().is_some() && public.nodes().iter().all(|node| node.accumulator == ring));
        assert!(!public.nodes().iter().any(|node| node.op.is_nonlinear()));
        let weights: Vec<u32> =
            network.values().iter().filter_map(|value| Some(value.weights?.bits)).collect();
        assert!(weights.iter().all(|has| (bits..=bits + 1).contains(has)), "{weights:?}");
        let float = FloatExecutor::new(&sketch.graph, &sketch.tensors).unwrap();
        let fixed = FixedExecutor::new(&network).unwrap();
        for sample in samples.chunks(144) {
            let (expected, run) = (float.run(sample).unwrap(), fixed.run_real(sample).unwrap());
            assert_eq!(run.overflow_count(), 0);
            for (score, expected) in run.output.iter().zip(&expected) {
                let error = (*score as f64 * network.output_scale() - f64::from(*expected)).abs();
                assert!(error < 4.0 * f64::from(-(bits as i32)).exp2(), "{error} at {bits} bits");
            }
        }
    }
}

/// Every value modulo each prime, by loops over residues that know nothing of the machine's integers.
#[test]
fn values_beyond_64_bits_are_those_modulo_each_prime() {
    let sketch = Sketch::new(&[20], 6).dense("fc1", 12).op("square1", Op::Square).dense("fc2", 9);
    let (network, _, samples) = compiled(sketch.op("square2", Op::Square).dense("fc3", 4), 8);
    let (public, executor) = (network.public(), FixedExecutor::new(&network).unwrap());
    assert!(public.is_wide());
    let mut largest = 0;
    for sample in samples.chunks(20) {
        let input = public.input().quantize(sample).unwrap();
        let output = executor.run(&input).unwrap().output;
        largest = output.iter().fold(largest, |largest, y| largest.max(y.abs()));
        for &prime in public.input().accumulator.factors().unwrap() {
            let residue = |x: i128| x.rem_euclid(prime.into()) as u64;
            let times = |a: u64, b: u64| (u128::from(a) * u128::from(b) % u128::from(prime)) as u64;
            let mut x: Vec<u64> = input.iter().map(|&x| residue(x.into())).collect();
            for index in 0..public.nodes().len() {
                x = match network.weights(index) {
                    None => x.iter().map(|&x| times(x, x)).collect(),
                    Some(layer) => {
                        let rows = layer.weight().chunks(x.len()).zip(layer.bias());
                        let sum = |(row, bias): (&[i64], &i128)| {
                            let products = row.iter().zip(&x).map(|(w, x)| times(residue((*w).into()), *x));
                            products.fold(residue(*bias), |sum, product| (sum + product) % prime)
                        };
                        rows.map(sum).collect()
                    }
                };
            }
            assert!(output.iter().map(|&y| residue(y)).eq(x), "modulo {prime}");
        }
    }
    assert!(largest > i128::from(i64::MAX), "{largest}");
}

#[test]
fn files_hold_all_bits() {
    let (network, ..) = compiled(squares(7), 8);
    assert!(network.public().is_wide());
    let biases = (0..network.public().nodes().len()).filter_map(|node| network.weights(node));
    assert!(biases.flat_map(lanner_network::LinearWeights::bias).any(|bias| i64::try_from(*bias).is_err()));
    let (manifest, bytes) = network.to_parts().unwrap();
    let manifest = NetworkManifest::from_json(&manifest.to_json().unwrap()).unwrap();
    assert_eq!(Network::from_parts(manifest.clone(), &bytes).unwrap().values(), network.values());
    assert_eq!(Network::from_parts(manifest.clone(), &bytes).unwrap().public(), network.public());
    assert!(Network::from_parts(manifest, &bytes[..bytes.len() - 8]).is_err());
    let json = network.public().to_json().unwrap();
    assert_eq!(&PublicNetwork::from_json(&json).unwrap(), network.public());
}

/// Inputs four times as large as those of calibration make sums far beyond the ring: all are counted, and none makes a panic.
#[test]
fn sums_beyond_the_ring_are_counted() {
    let mut sketch = squares(8);
    let samples = sketch.samples(32, 0.0, 0.05);
    let options =
        QuantizationOptions { input_range: Some([0.0, 1.0]), ..QuantizationOptions::without_rescales() };
    let network = compile(&sketch.graph, &sketch.tensors, &samples, &options).unwrap();
    let run = FixedExecutor::new(&network).unwrap().run_real(&[1.0; 144]).unwrap();
    let half = (network.public().input().accumulator.modulus() / 2) as i128;
    assert!(run.overflow_count() > 0 && run.output.iter().all(|y| y.abs() <= half));
}

#[test]
fn what_is_no_polynomial_is_named() {
    let mut sketch = small_network(1);
    let samples = sketch.samples(4, 0.0, 1.0);
    let options = QuantizationOptions::without_rescales();
    let error = compile(&sketch.graph, &sketch.tensors, &samples, &options).unwrap_err();
    let CompileError::UnsupportedOp { node, operator, fix, .. } = &error else { panic!("{error}") };
    assert_eq!((node.as_str(), *operator), ("pool1", "MaxPool"));
    assert!(fix.contains("AveragePool"), "{fix}");
}

/// Costs as much as there are primes.
fn cost(public: &PublicNetwork) -> u64 {
    public.input().accumulator.factors().map_or(0, |primes| primes.len() as u64)
}

/// As precise as asked, in the cheapest ring, with room to spare, and with other bits in each layer.
#[test]
fn bits_by_layer_reach_what_one_number_of_bits_does_not() {
    let mut sketch = squares(5);
    let samples = sketch.samples(64, 0.0, 1.0);
    let options = QuantizationOptions::without_rescales();
    let compile = |precision| {
        let aim = Aim { precision, demanded: true, told: Told::Scores };
        compile_to(&sketch.graph, &sketch.tensors, &samples, &options, aim, &|public| Ok(cost(public)))
    };
    let bits_of = |network: &Network| -> Vec<u32> {
        network.values().iter().filter_map(|value| Some(value.weights?.bits)).collect()
    };
    let ring_of = |network: &Network| network.public().input().accumulator;
    let mut primes = Vec::new();
    for asked in [0.2, 0.05, 0.02] {
        let network = compile(Precision::Error(asked)).unwrap();
        let reached = network.reached().unwrap();
        assert!(reached.is_met() && reached.error <= asked, "{reached:?}");
        let (ring, executor) = (ring_of(&network), FixedExecutor::new(&network).unwrap());
        primes.push(ring.factors().unwrap().len());
        let bits = bits_of(&network);
        assert!(bits.iter().any(|has| *has != bits[0]), "{bits:?}");
        // Twice the largest is what any ring must hold; where much less than all of it is asked there is more room.
        let outputs = samples.chunks(144).flat_map(|sample| executor.run_real(sample).unwrap().output);
        let spare = ring.limit(0) / outputs.map(i128::abs).max().unwrap();
        assert!(spare >= if asked > 0.1 { 7 } else { 2 }, "{spare} times at {asked}");
        // No ring costs as much and is larger.
        let larger = lanner_network::Accumulator::products().filter(|other| other.bits() > ring.bits());
        assert!(larger.into_iter().all(|other| other.factors().unwrap().len() > primes[primes.len() - 1]));
        // One number of bits for all is farther off in a ring of as many bits.
        let uniform = (6..=16).map_while(|bits| compile(Precision::Bits(bits)).ok());
        let uniform = uniform.filter(|network| ring_of(network).bits() <= ring.bits()).last().unwrap();
        assert!(uniform.reached().unwrap().error > reached.error, "{:?} and {reached:?}", uniform.reached());
    }
    assert!(primes.is_sorted() && primes[0] < 3, "{primes:?}");
}

#[test]
fn precision_that_no_ring_holds_is_refused_by_the_layer_with_the_fewest_bits() {
    let mut sketch = squares(5);
    let samples = sketch.samples(64, 0.0, 1.0);
    let options = QuantizationOptions::without_rescales();
    let compile = |demanded| {
        let aim = Aim { precision: Precision::Error(1e-7), demanded, told: Told::Scores };
        compile_to(&sketch.graph, &sketch.tensors, &samples, &options, aim, &|public| Ok(cost(public)))
    };
    let CompileError::Precision { node, bits, .. } = compile(true).unwrap_err() else { panic!() };
    let network = compile(false).unwrap();
    let fewest = network.values().iter().filter_map(|value| Some((value.weights?.bits, &value.name))).min();
    assert!(fewest.is_some_and(|(least, _)| least.abs_diff(bits) <= 1), "{fewest:?} and {bits} of {node}");
    assert_eq!(network.public().input().accumulator.bits(), 93);
}

/// Quadratics are fitted to what samples make of a value, and folded: squares and layers are left, zero padding or not.
#[test]
fn quadratics_in_the_place_of_relus_leave_squares_alone() {
    let mut sketch = Sketch::new(&[1, 8, 8], 11)
        .conv("conv1", 3, 3, 1, 1)
        .op("relu1", Op::Relu)
        .conv("conv2", 4, 3, 2, 1)
        .op("relu2", Op::Relu)
        .flatten("flat")
        .dense("fc", 5);
    let samples = sketch.samples(48, -1.0, 1.0);
    let replaced = replace_relu(&sketch.graph, &sketch.tensors, &samples).unwrap();
    assert_eq!(
        (replaced.relus.as_slice(), replaced.samples),
        (&["relu1".to_owned(), "relu2".to_owned()][..], 48)
    );
    assert!(!replaced.graph.nodes.iter().any(|node| node.op == Op::Relu));
    let (exact, fitted) = (
        FloatExecutor::new(&sketch.graph, &sketch.tensors).unwrap(),
        FloatExecutor::new(&replaced.graph, &replaced.tensors).unwrap(),
    );
    let aim = Aim { precision: Precision::Error(0.1), demanded: true, told: Told::Scores };
    let options = QuantizationOptions::without_rescales();
    let network =
        compile_to(&replaced.graph, &replaced.tensors, &samples, &options, aim, &|_| Ok(0)).unwrap();
    let operators: Vec<&str> = network.public().nodes().iter().map(|node| node.op.name()).collect();
    assert_eq!(operators, ["Conv2d", "Square", "Conv2d", "Square", "Reshape", "Linear"]);
    let (mut kept, mut off, mut scale) = (0, 0.0_f32, 0.0_f32);
    for sample in samples.chunks(64) {
        let (expected, found) = (exact.run(sample).unwrap(), fitted.run(sample).unwrap());
        kept += usize::from(
            crate::closeness::largest_score(&expected) == crate::closeness::largest_score(&found),
        );
        for (a, b) in expected.iter().zip(&found) {
            (off, scale) = (off.max((a - b).abs()), scale.max(a.abs()));
        }
    }
    assert_eq!(replaced.labels_kept, kept);
    assert!(off < scale, "off by {off} of {scale}");
}

/// Of values spread evenly over [-r, r] the best quadratic is 15/32 r x^2 + x/2 + 3/32 r.
#[test]
fn the_quadratic_of_even_values_is_the_known_one() {
    let sketch = Sketch::new(&[401], 1).op("relu", Op::Relu);
    let values: Vec<f32> = (-200..=200).map(|i| i as f32 / 50.0).collect();
    let replaced = replace_relu(&sketch.graph, &sketch.tensors, &values).unwrap();
    let executor = FloatExecutor::new(&replaced.graph, &replaced.tensors).unwrap();
    for (x, y) in values.iter().zip(executor.run(&values).unwrap()) {
        let expected = 15.0 / 32.0 / 4.0 * x * x + x / 2.0 + 3.0 / 32.0 * 4.0;
        assert!((y - expected).abs() < 0.02, "{y} for {expected} at {x}");
    }
    // What is of one sign has a line for its best fit, and stays.
    let positive: Vec<f32> = values.iter().map(|x| x.abs()).collect();
    assert!(replace_relu(&sketch.graph, &sketch.tensors, &positive).unwrap().relus.is_empty());
}

#[test]
fn means_and_transpositions_become_layers() {
    let mut sketch = Sketch::new(&[1, 12, 12], 12)
        .conv("conv", 3, 5, 2, 1)
        .op("square", Op::Square)
        .op(
            "mean",
            Op::AveragePool { kernel: [2, 2], strides: [2, 2], pads: [0; 4], count_include_pad: true },
        )
        .op("turned", Op::Transpose { axes: vec![1, 2, 0] })
        .flatten("flat")
        .dense("fc", 5);
    let samples = sketch.samples(32, 0.0, 1.0);
    let aim = Aim { precision: Precision::Error(0.01), demanded: true, told: Told::Scores };
    let options = QuantizationOptions::without_rescales();
    let network = compile_to(&sketch.graph, &sketch.tensors, &samples, &options, aim, &|_| Ok(0)).unwrap();
    let operators: Vec<&str> = network.public().nodes().iter().map(|node| node.op.name()).collect();
    assert_eq!(operators, ["Conv2d", "Square", "Conv2d", "Reshape", "Reshape", "Linear"]);
}
