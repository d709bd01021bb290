//! Operation counts: the literal variant's are the paper's, the folded one's those of its sums.

use lanner_bfv::ParameterSet;
use lanner_packed::falcon::{
    Choice, Operations, Packing, Variant, cheapest, choices, offline_cost, online_cost,
};
use lanner_step::{Convolution, Sets};

use crate::falcon::clear::convolution;

const P: u64 = 1_032_193;

fn operations(shape: &Convolution, slots: usize, variant: Variant) -> Operations {
    Packing::new(shape, P, slots, variant).unwrap().operations()
}

const FOLDED: Variant = Variant::Folded { copies: 1 };

fn same(channels: [usize; 2], side: usize) -> Convolution {
    Convolution { pads: [1; 4], ..convolution(channels, [side; 2], [3, 3]) }
}

#[test]
fn circles_are_the_least_that_divide() {
    let circle = |shape: &Convolution| Packing::new(shape, P, 4096, Variant::Literal).unwrap().plane();
    // "Valid": L >= w; "same": L >= w + max(pad).
    assert_eq!(circle(&convolution([1, 5], [28, 28], [5, 5])), ([28, 28], [true, true]));
    assert_eq!(circle(&same([1, 1], 16)), ([18, 18], [true, true]));
    assert_eq!(circle(&same([1, 1], 31)), ([32, 32], [true, true]));
    // Full: L >= w + f - 1.
    let full = Convolution { pads: [4; 4], ..convolution([1, 1], [12, 12], [5, 5]) };
    assert_eq!(circle(&full), ([16, 16], [true, true]));
    // Phases of a stride are planes of half the size: 14 pixels and one of padding.
    let strided =
        Convolution { strides: [2, 2], pads: [1, 1, 2, 2], ..convolution([1, 5], [28, 28], [5, 5]) };
    assert_eq!(circle(&strided), ([16, 16], [true, true]));
    // One pixel for each output, or one output: no transform.
    assert_eq!(circle(&convolution([1, 1], [7, 5], [1, 1])), ([7, 5], [false, false]));
    assert_eq!(circle(&convolution([1, 1], [7, 5], [7, 5])), ([1, 1], [false, false]));
    assert_eq!(
        circle(&Convolution { strides: [2, 2], ..convolution([1, 1], [10, 10], [2, 2]) }),
        ([5, 5], [false; 2])
    );
}

#[test]
fn literal_counts_are_the_papers() {
    for (shape, slots, places) in [
        (convolution([1, 5], [28, 28], [5, 5]), 4096, 28 * 28),
        (convolution([8, 5], [28, 28], [5, 5]), 2048, 28 * 28),
        (same([128, 128], 16), 4096, 18 * 18),
        (same([32, 32], 32), 2048, 36 * 36),
        (Convolution::fully_connected(2048, 1), 2048, 1),
        (Convolution::fully_connected(9000, 3), 4096, 1),
    ] {
        // B' = ceil(L_w L_h c / n) inputs, k B' outputs and products, no additions.
        let inputs = (places * shape.in_channels).div_ceil(slots);
        let products = shape.out_channels * inputs;
        let expected = Operations {
            input_ciphertexts: inputs,
            output_ciphertexts: products,
            multiplications: products,
            additions: 0,
        };
        assert_eq!(operations(&shape, slots, Variant::Literal), expected, "{shape:?}");
    }
}

#[test]
fn folded_counts_are_one_output_for_each_filter_or_set_of_filters() {
    for (shape, slots, places) in [
        (convolution([8, 5], [28, 28], [5, 5]), 4096, 28 * 28),
        (same([128, 128], 16), 4096, 18 * 18),
        (Convolution::fully_connected(9000, 3), 4096, 1),
    ] {
        let channels = slots / places;
        let inputs = shape.in_channels.div_ceil(channels);
        assert_eq!(inputs, (places * shape.in_channels).div_ceil(slots));
        for copies in 1..4 {
            // Copies take the room of channels.
            let inputs = shape.in_channels.div_ceil(channels / copies);
            let outputs = shape.out_channels.div_ceil(copies);
            let expected = Operations {
                input_ciphertexts: inputs,
                output_ciphertexts: outputs,
                multiplications: inputs * outputs,
                additions: (inputs - 1) * outputs,
            };
            assert_eq!(operations(&shape, slots, Variant::Folded { copies }), expected, "{shape:?}");
        }
    }
    let counts = |shape: &Convolution, copies| {
        let Operations { input_ciphertexts, output_ciphertexts, .. } =
            operations(shape, 4096, Variant::Folded { copies });
        [input_ciphertexts, output_ciphertexts]
    };
    // Five copies of one image, and all filters in one ciphertext; four copies of a vector, and four rows.
    assert_eq!(counts(&convolution([1, 5], [28, 28], [5, 5]), 5), [1, 1]);
    assert_eq!(counts(&Convolution::fully_connected(1024, 16), 4), [1, 4]);
    // Groups lie side by side.
    assert_eq!(counts(&Convolution { groups: 24, ..same([24, 24], 16) }, 1), [2, 2]);
}

#[test]
fn choices_are_those_whose_noise_can_be_hidden() {
    let sets = Sets::new().unwrap();
    let shape = same([128, 128], 16);
    let choices = choices(&shape, P, &sets).unwrap();
    let terms = |set, slots, variant| {
        let packing = Packing::new(&shape, P, slots, variant).unwrap();
        let same = |choice: &Choice| (choice.set, choice.variant) == (set, variant);
        choices.iter().any(same).then(|| packing.terms())
    };
    assert_eq!(terms(ParameterSet::A2, 8192, Variant::Literal), Some(1));
    assert_eq!(terms(ParameterSet::B, 8192, FOLDED), Some(6));
    // Three limbs of 40 bits hide nothing under a prime of 37 bits.
    let wide = lanner_packed::falcon::choices(&shape, 137_438_822_401, &sets).unwrap();
    assert!(wide.iter().all(|choice| choice.set == ParameterSet::B));
    assert!(!wide.is_empty());
}

#[test]
fn the_cheapest_choice_is_small_where_it_may_be() {
    let sets = Sets::new().unwrap();
    let cheapest = |shape: &Convolution, prime| {
        let Choice { set, operations, .. } = cheapest(shape, prime, &sets).unwrap();
        (set, [operations.input_ciphertexts, operations.output_ciphertexts])
    };
    assert_eq!(cheapest(&convolution([1, 5], [28, 28], [5, 5]), P), (ParameterSet::A2, [1, 1]));
    assert_eq!(cheapest(&Convolution::fully_connected(2048, 1), P), (ParameterSet::A2, [1, 1]));
    assert_eq!(cheapest(&convolution([1, 5], [28, 28], [5, 5]), 33_538_049).0, ParameterSet::B);
}

/// The table of docs/protocols/falcon.md.
#[test]
fn layers_of_the_paper_take_what_the_document_says() {
    let row = |shape: &Convolution, choice: Option<(ParameterSet, Variant)>| {
        let sets = Sets::new().unwrap();
        let (set, variant) = choice.unwrap_or_else(|| {
            let best = cheapest(shape, P, &sets).unwrap();
            (best.set, best.variant)
        });
        let parameters = sets.get(set).unwrap();
        let packing = Packing::new(shape, P, parameters.degree(), variant).unwrap();
        let copies = if let Variant::Folded { copies } = variant { copies } else { 0 };
        let Operations { input_ciphertexts, output_ciphertexts, multiplications, .. } = packing.operations();
        let offline = offline_cost(&packing, parameters).unwrap();
        let kibibytes = [
            (offline.request.then(offline.answer).bytes() + 512) / 1024,
            (online_cost(&packing, parameters).unwrap().bytes() + 512) / 1024,
        ];
        (set, copies, [input_ciphertexts, output_ciphertexts, multiplications], kibibytes)
    };
    let image = convolution([1, 5], [28, 28], [5, 5]);
    assert_eq!(row(&image, None), (ParameterSet::A2, 5, [1, 1, 1], [40, 160]));
    assert_eq!(
        row(&image, Some((ParameterSet::A2, Variant::Literal))),
        (ParameterSet::A2, 0, [1, 5, 5], [200, 320])
    );
    let deep = same([128, 128], 16);
    assert_eq!(row(&deep, None), (ParameterSet::A2, 4, [22, 32, 704], [1281, 3920]));
    assert_eq!(
        row(&deep, Some((ParameterSet::A2, FOLDED))),
        (ParameterSet::A2, 1, [6, 128, 768], [5121, 5841])
    );
    let inner = convolution([128, 128], [16, 16], [3, 3]);
    assert_eq!(row(&inner, None), (ParameterSet::A2, 4, [16, 32, 512], [1280, 3200]));
    assert_eq!(
        row(&Convolution::fully_connected(2048, 1), None),
        (ParameterSet::A2, 1, [1, 1, 1], [40, 160])
    );
    assert_eq!(
        row(&Convolution::fully_connected(1024, 16), None),
        (ParameterSet::A2, 8, [1, 2, 2], [80, 200])
    );
}
