//! The operations of each kernel equal the tables' formulas, at the paper's ring and at ours.

use lanner_packed::gazelle::Kernel;
use lanner_packed::gazelle::packing::Packing;
use lanner_step::Convolution;

use crate::kernels::clear::convolution;

/// Hoisted rotations, rotations, products and output ciphertexts.
fn counts(shape: &Convolution, slots: usize, kernel: Kernel) -> (usize, usize, usize, usize) {
    let operations = Packing::of(shape, slots, kernel).unwrap().operations();
    (
        operations.hoisted_rotations,
        operations.rotations,
        operations.multiplications,
        operations.output_ciphertexts,
    )
}

/// Tables II and VIII: `n_i x n_o`.
const MATRICES: [(usize, usize); 4] = [(2048, 1), (1024, 128), (1024, 16), (128, 16)];

#[test]
fn matrix_kernels_equal_the_table() {
    for (n_i, n_o) in MATRICES {
        let shape = Convolution::fully_connected(n_i, n_o);
        let log = n_i.ilog2() as usize;
        for n in [2048, 8192] {
            assert_eq!(counts(&shape, n, Kernel::Naive), (0, n_o * log, n_o, n_o));
            let packed = (n_o * n_i).div_ceil(n);
            assert_eq!(counts(&shape, n, Kernel::NaiveInputPacked), (0, packed * log, packed, packed));
            assert_eq!(counts(&shape, n, Kernel::Diagonal), (n_i - 1, 0, n_i, 1));
            // Where n_o n_i < n, as if n_o = n / n_i.
            let n_o = n_o.max(n / n_i);
            let d = n_o * n_i / n;
            let folds = (n / n_o).ilog2() as usize;
            assert_eq!(counts(&shape, n, Kernel::Hybrid), (d - 1, folds, d, 1), "{n_i}x{n_o} at {n}");
        }
    }
}

#[test]
fn hybrid_equals_the_printed_numbers() {
    let hybrid = |index: usize, slots| {
        let (inputs, outputs) = MATRICES[index];
        let (hoisted, rotations, products, _) =
            counts(&Convolution::fully_connected(inputs, outputs), slots, Kernel::Hybrid);
        (hoisted, rotations, products)
    };
    let at = |slots| [0, 1, 2, 3].map(|index| hybrid(index, slots));
    assert_eq!(at(2048), [(0, 11, 1), (63, 4, 64), (7, 7, 8), (0, 7, 1)]);
    assert_eq!(at(8192), [(0, 11, 1), (15, 6, 16), (1, 9, 2), (0, 7, 1)]);
}

#[test]
fn baby_steps_and_giant_steps_multiply_to_the_diagonals() {
    let shape = Convolution::fully_connected(1024, 128);
    // d = 64 diagonals at n = 2048: baby - 1 hoisted rotations and 64 / baby - 1 others, beside the four folds.
    for log in 0..=6 {
        let baby = 1 << log;
        let counts = counts(&shape, 2048, Kernel::BabyStepGiantStep { baby });
        assert_eq!(counts, (baby - 1, 64 / baby - 1 + 4, 64, 1));
    }
}

#[test]
fn convolution_kernels_equal_the_table() {
    // The two largest of table X, and one with two ciphertexts: at n = 2048, c_n = 2, 8 and 8 channels fit a ciphertext.
    let cases = [(32, 32, 3), (16, 128, 3), (16, 16, 5)];
    for (image, c, f) in cases {
        let shape = convolution([c, c], [image, image], [f, f]);
        for n in [2048, 8192] {
            let c_n = n / (image * image);
            let (taps, per_ct) = (f * f, c / c_n);
            let products = taps * c * c / c_n;
            assert_eq!(counts(&shape, n, Kernel::OneChannel), (c * (taps - 1), 0, taps * c * c, c));
            if per_ct == 0 {
                continue;
            }
            assert_eq!(
                counts(&shape, n, Kernel::InputRotations),
                ((c_n * taps - 1) * per_ct, 0, products, per_ct)
            );
            assert_eq!(
                counts(&shape, n, Kernel::OutputRotationsPerInput),
                ((taps - 1) * per_ct, (c_n - 1) * per_ct * per_ct, products, per_ct)
            );
            assert_eq!(
                counts(&shape, n, Kernel::OutputRotations),
                ((taps - 1) * per_ct, (c_n - 1) * per_ct, products, per_ct)
            );
            // By columns hoisted, by rows on partial sums: f_h sums for each diagonal.
            assert_eq!(
                counts(&shape, n, Kernel::Separable { baby: 1 }),
                ((f - 1) * per_ct, (f * c_n - 1) * per_ct, products, per_ct)
            );
        }
    }
}

#[test]
fn single_channel_kernels_equal_the_table() {
    let shape = convolution([1, 1], [28, 28], [5, 5]);
    for kernel in [Kernel::PaddedSiso, Kernel::PackedSiso, Kernel::OneChannel] {
        assert_eq!(counts(&shape, 2048, kernel), (24, 0, 25, 1), "{kernel:?}");
    }
    // Padding is packed: (28 + 4)^2 slots, where the packed kernel takes 28^2.
    let carried = |kernel| {
        let packing = Packing::of(&shape, 2048, kernel).unwrap();
        packing.input_slots(0).iter().rposition(Option::is_some).unwrap() + 1
    };
    assert_eq!((carried(Kernel::PackedSiso), carried(Kernel::PaddedSiso)), (28 * 28, 29 * 32 + 30));
    // Four images of one channel at 8192 slots.
    assert_eq!(counts(&shape, 8192, Kernel::Batched { images: 8 }), (24, 0, 25, 1));
    assert_eq!(counts(&shape, 8192, Kernel::Batched { images: 9 }), (48, 0, 50, 2));
}

#[test]
fn strided_convolutions_sum_over_their_phases() {
    // Table X: 28 x 28 x 1, five maps of 5 x 5 at stride 2. Its four phases have 9, 6, 6 and 4 taps.
    let shape = Convolution { strides: [2, 2], pads: [1, 1, 2, 2], ..convolution([1, 5], [28, 28], [5, 5]) };
    let (hoisted, rotations, products, outputs) = counts(&shape, 2048, Kernel::OneChannel);
    assert_eq!((hoisted, rotations, products, outputs), (25 - 4, 0, 5 * 25, 5));
    // A stride that skips whole phases sends only what is read: 1 x 1 at stride 2, as between residual blocks.
    let shape = Convolution { strides: [2, 2], ..convolution([16, 32], [32, 32], [1, 1]) };
    assert_eq!(Packing::of(&shape, 8192, Kernel::OutputRotations).unwrap().operations().input_ciphertexts, 1);
}

#[test]
fn channels_that_never_meet_cost_nothing() {
    let groups = |groups, kernel| {
        let shape = Convolution { groups, ..convolution([32, 32], [16, 16], [3, 3]) };
        counts(&shape, 8192, kernel)
    };
    assert_eq!(groups(1, Kernel::OutputRotations), (8, 31, 9 * 32, 1));
    // Depthwise: one diagonal. Four channels a group: four diagonals.
    assert_eq!(groups(32, Kernel::OutputRotations), (8, 0, 9, 1));
    assert_eq!(groups(8, Kernel::OutputRotations), (8, 3, 9 * 4, 1));
    assert_eq!(groups(8, Kernel::InputRotations), (9 * 4 - 1, 0, 9 * 4, 1));
}

#[test]
fn equal_distances_share_a_key() {
    let shape = convolution([32, 32], [16, 16], [3, 3]);
    let keys = |kernel| Packing::of(&shape, 8192, kernel).unwrap().keys().len();
    assert_eq!(keys(Kernel::InputRotations), 9 * 32 - 1);
    assert_eq!(keys(Kernel::OutputRotationsPerInput), 8 + 31);
    // Eight taps, one step along the channels, the swap.
    assert_eq!(keys(Kernel::OutputRotations), 8 + 2);
    // Left, right, up, down, one step along the channels, the swap.
    assert_eq!(keys(Kernel::Separable { baby: 1 }), 4 + 2);
}
