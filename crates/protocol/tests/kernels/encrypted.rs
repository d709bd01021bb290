//! Every kernel under BFV: values, and noise below the bound, whatever the weights.

use std::sync::OnceLock;

use lanner_bfv::{
    Ciphertext, EvaluationKeys, Evaluator, GaloisElement, Multiplier, ParameterSet, Parameters, SecretKey,
    SlotEncoder,
};
use lanner_packed::gazelle::packing::{Packing, Weighting};
use lanner_packed::gazelle::scheme::evaluate;
use lanner_packed::gazelle::{EncryptedSlots, Kernel, output_noise};
use lanner_primitives::{Prg, Ring, Seed};
use lanner_step::{Convolution, galois_element};

use crate::kernels::clear::{convolution, operand};

const T: u64 = 1_032_193;
const RING: Ring = Ring::Prime(T);

fn parameters() -> &'static Parameters {
    static PARAMETERS: OnceLock<Parameters> = OnceLock::new();
    PARAMETERS.get_or_init(|| ParameterSet::B.parameters().unwrap())
}

/// Runs a kernel under BFV and compares what its output slots hold with the convolution modulo `T`.
fn check(packing: &Packing, weights: &[i64], input: &[i64]) {
    let mut rng = Prg::new(Seed::from_bytes([7; 16]));
    let secret = SecretKey::generate(parameters(), &mut rng);
    let encoder = SlotEncoder::new(parameters(), T).unwrap();
    let elements: Vec<GaloisElement> =
        packing.keys().into_iter().map(|rotation| galois_element(rotation, 8192).unwrap()).collect();
    let keys = EvaluationKeys::generate(&secret, &elements, &mut rng).unwrap();
    let embed = |values: Vec<i64>| -> Vec<u64> { values.into_iter().map(|x| RING.embed(x)).collect() };
    let multiplier = |index| match packing.weighting(index, weights) {
        Weighting::Slots(values) => encoder.multiplier(&embed(values)).unwrap(),
        Weighting::Constant(value) => Multiplier::constant(parameters(), value, T / 2).unwrap(),
    };
    let multipliers: Vec<_> = (0..packing.multipliers()).map(multiplier).collect();
    let evaluator = Evaluator::new(parameters());
    let zero = encoder.encode(&vec![0; 8192]).unwrap();
    let mut encrypt = |c: usize| -> Ciphertext {
        let slots = packing.input_slots(c).into_iter().map(|slot| slot.map_or(0, |i| input[i])).collect();
        let fresh = secret.encrypt(&encoder.encode(&embed(slots)).unwrap(), &mut rng).unwrap().expand();
        evaluator.add_plain(&fresh, &zero).unwrap()
    };
    let inputs: Vec<_> = (0..packing.operations().input_ciphertexts).map(&mut encrypt).collect();
    let bound = output_noise(packing, parameters(), T).unwrap();
    let scheme = EncryptedSlots::new(parameters(), &keys);
    let outputs = evaluate(&scheme, packing, &multipliers, &inputs).unwrap();
    for output in &outputs {
        // The bound made ahead of time covers what the operations carried along, and that covers what there is.
        assert!(output.noise().deviation() <= bound.deviation() * (1.0 + 1e-9), "{:?}", packing.kernel());
        let measured = secret.noise_bits(output, encoder.modulus()).unwrap();
        assert!(measured <= output.noise().infinity(8192).log2(), "{:?}", packing.kernel());
    }
    let decode = |output| encoder.decode(&secret.decrypt(output, encoder.modulus()).unwrap()).unwrap();
    let slots: Vec<Vec<u64>> = outputs.iter().map(decode).collect();
    let images = input.chunks(packing.shape().inputs());
    let truth = images.flat_map(|image| packing.shape().apply(weights, image).unwrap());
    let places = packing.output_slots().into_iter().map(|(c, slot)| slots[c][slot]);
    assert!(places.eq(truth.map(|y| RING.embed(y))), "{:?} {:?}", packing.shape(), packing.kernel());
}

/// All kernels on one shape, with ordinary weights.
fn check_all(shape: &Convolution, others: &[Kernel]) {
    let mut packings = Packing::all(shape, 8192).unwrap();
    packings.extend(others.iter().map(|kernel| Packing::of(shape, 8192, *kernel).unwrap()));
    for packing in packings {
        let input = operand(packing.inputs(), 2);
        check(&packing, &operand(shape.weights(), 1), &input);
    }
}

#[test]
fn matrix_kernels_equal_the_matrix() {
    check_all(&Convolution::fully_connected(30, 5), &[]);
}

#[test]
fn convolution_kernels_equal_the_convolution() {
    let others = [Kernel::Batched { images: 3 }];
    check_all(&convolution([2, 3], [32, 30], [3, 3]), &others);
    check_all(&convolution([1, 1], [28, 28], [3, 2]), &others);
}

#[test]
fn strides_groups_dilations_and_frames_equal_the_convolution() {
    let shapes = [
        Convolution { strides: [2, 2], dilations: [1, 2], ..convolution([3, 4], [31, 31], [3, 2]) },
        Convolution { groups: 8, ..convolution([8, 8], [28, 28], [3, 3]) },
        convolution([2, 1], [70, 70], [1, 3]),
    ];
    for shape in shapes {
        for kernel in [Kernel::OutputRotations, Kernel::Separable { baby: 1 }] {
            let packing = Packing::of(&shape, 8192, kernel).unwrap();
            check(&packing, &operand(shape.weights(), 1), &operand(shape.inputs(), 2));
        }
    }
}

#[test]
fn worst_weights_and_inputs_stay_within_the_bound() {
    let shape = convolution([4, 4], [20, 20], [3, 3]);
    let half = (T / 2) as i64;
    for kernel in [
        Kernel::InputRotations,
        Kernel::OutputRotationsPerInput,
        Kernel::OutputRotations,
        Kernel::Separable { baby: 1 },
        Kernel::OneChannel,
        Kernel::PaddedSiso,
    ] {
        let packing = Packing::of(&shape, 8192, kernel).unwrap();
        for weight in [half, -half] {
            check(&packing, &vec![weight; shape.weights()], &vec![-half; shape.inputs()]);
        }
    }
}

#[test]
fn constants_make_less_noise() {
    let shape = convolution([1, 1], [20, 20], [3, 3]);
    let bits = |kernel| {
        let packing = Packing::of(&shape, 8192, kernel).unwrap();
        output_noise(&packing, parameters(), T).unwrap().deviation().log2()
    };
    // A constant has one coefficient where a dense plaintext has 8192.
    let saved = bits(Kernel::PackedSiso) - bits(Kernel::Batched { images: 8 });
    assert!((6.0..7.0).contains(&saved), "{saved}");
}
