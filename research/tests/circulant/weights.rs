//! Circulant blocks are found exactly, and what is not circulant is refused.

use lanner_research::circulant::BlockCirculant;
use lanner_step::Convolution;
use proptest::prelude::*;

use crate::circulant::layers::{circulant, convolution};

proptest! {
    #[test]
    fn blocks_are_found_and_one_changed_weight_is_noticed(
        channels in [4_usize..40, 4_usize..40],
        kernel in 1_usize..3,
        bits in 1_u32..3,
        changed in any::<prop::sample::Index>(),
    ) {
        let shape = convolution(channels, [kernel; 2], [kernel; 2], [1, 1]);
        let block = 1 << bits;
        let mut weights = circulant(&shape, block, 3, 1 << 20);
        let found = BlockCirculant::largest(&shape, &weights).unwrap();
        prop_assert_eq!(found.block(), block);
        prop_assert_eq!(found.blocks(), [channels[1].div_ceil(block), channels[0].div_ceil(block)]);
        // A weight of the first block, which is whole.
        let (output, input) = (changed.index(block), changed.index(block * block) / block);
        weights[(output * channels[0] + input) * kernel * kernel] += 1;
        prop_assert!(BlockCirculant::of(&shape, &weights, block).is_err());
    }
}

#[test]
fn what_is_no_circulant_layer_is_refused() {
    let shape = convolution([4, 4], [1, 1], [1, 1], [1, 1]);
    let weights = circulant(&shape, 4, 3, 1000);
    assert!(BlockCirculant::of(&shape, &weights, 4).is_ok());
    assert!(BlockCirculant::of(&shape, &weights, 0).is_err(), "no block");
    assert!(BlockCirculant::of(&shape, &weights[1..], 4).is_err(), "a weight is missing");
    let dense: Vec<i64> = (0..16).collect();
    assert!(BlockCirculant::largest(&shape, &dense).is_err());
    let grouped = Convolution { groups: 2, ..shape };
    assert!(BlockCirculant::of(&grouped, &weights[..8], 2).is_err(), "groups");
}
