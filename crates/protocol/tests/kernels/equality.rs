//! Every kernel over clear slots equals the convolution.

use lanner_packed::gazelle::Kernel;
use lanner_packed::gazelle::packing::Packing;
use lanner_step::{Convolution, Samples};
use proptest::prelude::*;

use crate::kernels::clear::{convolution, operand, packed};

fn check(shape: &Convolution, slots: usize) {
    let (weights, input) = (operand(shape.weights(), 1), operand(shape.inputs(), 2));
    let truth = shape.apply(&weights, &input).unwrap();
    // Padding may make a frame too large for the slots.
    let diagonals = Packing::new(shape, slots, 1).unwrap().diagonals();
    for kernel in Kernel::all(shape, diagonals) {
        let packing = match Packing::of(shape, slots, kernel) {
            Err(_) if kernel == Kernel::PaddedSiso => continue,
            packing => packing.unwrap(),
        };
        assert!(packed(&packing, &weights, &input) == truth, "{shape:?} {:?}", packing.kernel());
    }
}

#[test]
fn layers_of_the_mnist_networks_equal_their_convolutions() {
    let strided =
        |out, strides, pads| Convolution { strides, pads, ..convolution([1, out], [28, 28], [5, 5]) };
    check(&strided(16, [1, 1], [0; 4]), 4096);
    check(&strided(5, [2, 2], [1, 1, 2, 2]), 4096);
    check(&Convolution { pads: [0; 4], ..convolution([16, 16], [12, 12], [5, 5]) }, 4096);
    check(&Convolution::fully_connected(256, 100), 2048);
    check(&Convolution::fully_connected(100, 10), 2048);
}

#[test]
fn images_that_do_not_fit_are_cut_into_overlapping_frames() {
    let frames = |shape: &Convolution, slots, expected| {
        let packing = Packing::new(shape, slots, 1).unwrap();
        assert_eq!(packing.frames(), expected, "{shape:?}");
        check(shape, slots);
    };
    frames(&convolution([3, 2], [20, 20], [3, 3]), 256, 5);
    frames(&convolution([1, 1], [6, 60], [3, 3]), 256, 4);
    let strided = Convolution { strides: [2, 2], ..convolution([2, 3], [33, 29], [5, 5]) };
    frames(&strided, 256, 3);
    let dilated =
        Convolution { dilations: [2, 3], pads: [2, 3, 2, 3], ..convolution([2, 2], [24, 24], [3, 3]) };
    frames(&dilated, 1024, 2);
}

#[test]
fn wide_images_lay_out_at_the_ring_in_use() {
    let wide =
        Convolution { strides: [2, 2], pads: [3, 3, 3, 3], ..convolution([3, 64], [224, 224], [7, 7]) };
    let packing = Packing::of(&wide, 8192, Kernel::Separable { baby: 1 }).unwrap();
    assert!(packing.frames() <= 9, "{}", packing.frames());
    assert_eq!(Packing::new(&convolution([1, 1], [64, 64], [3, 3]), 8192, 1).unwrap().frames(), 1);
    assert_eq!(Packing::new(&convolution([1, 1], [65, 65], [3, 3]), 8192, 1).unwrap().frames(), 2);
}

#[test]
fn batches_equal_the_convolution_of_each_image() {
    let shapes = [
        convolution([2, 3], [6, 5], [3, 3]),
        Convolution { strides: [2, 1], dilations: [1, 2], ..convolution([2, 2], [7, 7], [2, 3]) },
        Convolution { groups: 2, ..convolution([4, 2], [5, 5], [3, 1]) },
    ];
    for (shape, images) in shapes.iter().zip([5, 9, 17]) {
        let weights = operand(shape.weights(), 3);
        let input = operand(images * shape.inputs(), 4);
        let each = input.chunks(shape.inputs()).flat_map(|image| shape.apply(&weights, image).unwrap());
        let packing = Packing::of(shape, 512, Kernel::Batched { images }).unwrap();
        assert!(packed(&packing, &weights, &input) == each.collect::<Vec<_>>(), "{shape:?}");
    }
}

/// Samples that share slots, whatever the kernel: each has the layer's output, one sample after the other.
#[test]
fn samples_share_slots_in_every_kernel() {
    let shapes = [
        Convolution::fully_connected(40, 9),
        convolution([3, 5], [6, 5], [3, 3]),
        Convolution { strides: [2, 1], pads: [1, 0, 2, 1], ..convolution([2, 2], [7, 7], [2, 3]) },
        Convolution { groups: 2, dilations: [2, 1], ..convolution([4, 2], [5, 5], [3, 1]) },
    ];
    for (shape, count) in shapes.iter().zip([16, 4, 2, 8]) {
        let samples = Samples::try_from(count).unwrap();
        let weights = operand(shape.weights(), 3);
        let input = operand(count * shape.inputs(), 4);
        let each = input.chunks(shape.inputs()).flat_map(|sample| shape.apply(&weights, sample).unwrap());
        let each: Vec<_> = each.collect();
        for packing in Packing::choices(shape, 1024, samples).unwrap() {
            assert_eq!(packing.slots(), 1024);
            assert!(packed(&packing, &weights, &input) == each, "{shape:?} {:?}", packing.kernel());
        }
    }
}

#[test]
fn impossible_layouts_are_refused() {
    let mut shape = Convolution::fully_connected(4, 4);
    assert!(Packing::new(&shape, 16, 3).is_err());
    assert!(Packing::of(&shape, 16, Kernel::InputRotations).is_err());
    shape.image = [5, 5];
    assert!(Packing::of(&shape, 128, Kernel::Hybrid).is_err());
    assert!(Packing::of(&shape, 128, Kernel::Batched { images: 0 }).is_err());
    assert!(Packing::new(&Convolution { groups: 3, ..shape.clone() }, 128, 1).is_err());
    shape.kernel = [6, 6];
    assert!(Packing::new(&shape, 1024, 1).is_err());
    // Not even one output's window fits half the slots.
    assert!(Packing::new(&convolution([1, 1], [40, 40], [20, 20]), 256, 1).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn kernels_equal_the_convolution(
        channels in (1usize..10, 1usize..10),
        image in (1usize..9, 1usize..9),
        kernel in (1usize..5, 1usize..5),
        strides in (1usize..4, 1usize..4),
        dilations in (1usize..4, 1usize..4),
        pads in (0usize..3, 0usize..3, 0usize..3, 0usize..3),
        slots in 6u32..10,
    ) {
        let shape = Convolution {
            in_channels: channels.0,
            out_channels: channels.1,
            image: [image.0, image.1],
            kernel: [kernel.0, kernel.1],
            strides: [strides.0, strides.1],
            pads: [pads.0, pads.1, pads.2, pads.3],
            dilations: [dilations.0, dilations.1],
            groups: 1,
        };
        prop_assume!(shape.output_image().is_ok());
        prop_assume!(Packing::new(&shape, 1 << slots, 1).is_ok());
        check(&shape, 1 << slots);
    }

    #[test]
    fn grouped_kernels_equal_the_convolution(
        groups in 1usize..7,
        per_group in (1usize..4, 1usize..4),
        image in (1usize..7, 1usize..7),
        kernel in (1usize..4, 1usize..4),
        strides in (1usize..3, 1usize..3),
        pads in (0usize..2, 0usize..2),
        slots in 6u32..10,
    ) {
        let shape = Convolution {
            strides: [strides.0, strides.1],
            pads: [pads.0, pads.1, pads.0, pads.1],
            groups,
            ..convolution(
                [groups * per_group.0, groups * per_group.1],
                [image.0, image.1],
                [kernel.0, kernel.1],
            )
        };
        prop_assume!(shape.output_image().is_ok());
        prop_assume!(Packing::new(&shape, 1 << slots, 1).is_ok());
        check(&shape, 1 << slots);
    }

    #[test]
    fn matrix_kernels_equal_the_matrix(inputs in 1usize..80, outputs in 1usize..80) {
        check(&Convolution::fully_connected(inputs, outputs), 64);
    }
}
