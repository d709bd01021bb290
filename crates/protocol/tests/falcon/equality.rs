//! Every variant over clear slots equals the convolution.

use lanner_packed::falcon::{Packing, Variant};
use lanner_step::Convolution;
use proptest::prelude::*;

use crate::falcon::clear::{convolution, layer, operand};

/// `2^14 * 63` and `2^14 * 2047` divide one less.
const PRIMES: [u64; 2] = [1_032_193, 33_538_049];

/// Every variant that fits.
fn packings(shape: &Convolution, prime: u64, slots: usize) -> Vec<Packing> {
    let folded = (1..=shape.group_outputs().min(slots)).map(|copies| Variant::Folded { copies });
    let variants = folded.chain([Variant::Literal]);
    variants.filter_map(|variant| Packing::new(shape, prime, slots, variant).ok()).collect()
}

fn check(shape: &Convolution, prime: u64, slots: usize) {
    let (weights, input) = (operand(shape.weights(), 1), operand(shape.inputs(), 2));
    let truth = shape.apply(&weights, &input).unwrap();
    let packings = packings(shape, prime, slots);
    assert!(packings.len() >= 2, "{shape:?}");
    for packing in packings {
        let (got, counted) = layer(&packing, &weights, &input);
        assert!(got == truth, "{shape:?} {prime} {slots} {:?}", packing.variant());
        let operations = packing.operations();
        assert_eq!(
            (counted.products.get(), counted.additions.get()),
            (operations.multiplications, operations.additions)
        );
        assert_eq!(packing.ciphertexts(), [operations.input_ciphertexts, operations.output_ciphertexts]);
    }
}

#[test]
fn layers_of_the_networks_equal_their_convolutions() {
    check(&convolution([1, 5], [28, 28], [5, 5]), PRIMES[0], 4096);
    let strided =
        Convolution { strides: [2, 2], pads: [1, 1, 2, 2], ..convolution([1, 5], [28, 28], [5, 5]) };
    check(&strided, PRIMES[1], 4096);
    check(&convolution([16, 16], [12, 12], [5, 5]), PRIMES[0], 4096);
    check(&Convolution::fully_connected(256, 100), PRIMES[1], 1024);
    check(&Convolution::fully_connected(100, 10), PRIMES[0], 64);
}

#[test]
fn images_larger_than_a_ciphertext_are_cut_by_frequency() {
    check(&convolution([2, 3], [14, 14], [3, 3]), PRIMES[0], 64);
    check(&Convolution { pads: [1; 4], ..convolution([3, 2], [9, 20], [3, 3]) }, PRIMES[1], 128);
    check(&Convolution { groups: 2, ..convolution([4, 4], [14, 14], [3, 3]) }, PRIMES[0], 64);
}

#[test]
fn a_layer_of_padding_alone_is_refused() {
    // Only one of two taps ever reads a pixel: that is fine; none is not.
    check(&Convolution { pads: [4, 0, 0, 0], ..convolution([1, 2], [1, 4], [5, 1]) }, PRIMES[0], 64);
    let shape = Convolution { pads: [3, 0, 0, 0], strides: [8, 1], ..convolution([1, 1], [2, 4], [2, 1]) };
    assert!(Packing::new(&shape, PRIMES[0], 64, Variant::Literal).is_err());
    let shape = convolution([1, 2], [3, 3], [2, 2]);
    for copies in [0, 3, 100] {
        assert!(Packing::new(&shape, PRIMES[0], 64, Variant::Folded { copies }).is_err());
    }
}

fn shapes() -> impl Strategy<Value = Convolution> {
    let axis = (1_usize..12, 1_usize..5, 1_usize..4, 1_usize..4, 0_usize..5, 0_usize..5);
    let channels = (1_usize..4, 1_usize..4, 1_usize..4);
    (axis.clone(), axis, channels).prop_map(|(v, h, (inputs, outputs, groups))| Convolution {
        in_channels: inputs * groups,
        out_channels: outputs * groups,
        image: [v.0, h.0],
        kernel: [v.1, h.1],
        strides: [v.2, h.2],
        pads: [v.4, h.4, v.5, h.5],
        dilations: [v.3, h.3],
        groups,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn any_shape_equals_its_convolution(shape in shapes(), slots in 6_u32..10, first: bool) {
        prop_assume!(shape.output_image().is_ok());
        let prime = PRIMES[usize::from(first)];
        // Refused only where an output reads no pixel at all.
        let nothing = Packing::new(&shape, prime, 64, Variant::Literal).is_err();
        prop_assume!(!nothing);
        check(&shape, prime, 1 << slots);
    }
}
