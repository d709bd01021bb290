//! The step function and the layer behind it in one: comparisons of several leaves, which choose among rows of weights.

use lanner_primitives::Ring;
use lanner_testkit::Transcript;

use crate::chosen::{Layer, groups};
use crate::common::{Party as End, rng};
use crate::transcripts::{EXTREMES, OPPOSITES, Shares, check_masks, check_uniform, kinds, transcript};

/// Groups, rows and columns, and bits of the values and of the outputs. The number of comparisons is a multiple of 64: no bit fills up a byte or a word.
const SIDES: [usize; 3] = [2, 3, 128];
const RINGS: [u32; 2] = [9, 24];

/// Widths of values in messages: of comparisons, and weights.
const WIDTHS: [usize; 2] = [8, 24];

fn session(number: u8, shares: Shares) -> Transcript {
    let layer = Layer::new(&groups(SIDES), RINGS, &mut rng(1));
    let ring = Ring::Pow2(RINGS[0]);
    let [client, server] = [shares.client, shares.server].map(|edge| edge.share(ring, layer.inputs()));
    let mut channels = End::pair();
    layer.play(&mut channels, [&client, &server], 100 + 2 * number);
    transcript(&channels)
}

#[test]
fn choices_are_uniform_whatever_the_shares() {
    check_uniform(session, &kinds::of_compare(&WIDTHS), OPPOSITES);
}

#[test]
fn choices_need_their_masks() {
    let kinds = (0x70..=0x72).chain([0x74]).flat_map(|kind| [("client", kind), ("server", kind)]);
    let due: Vec<_> = kinds.filter(|kind| ![("client", 0x71), ("server", 0x70)].contains(kind)).collect();
    check_masks(session, &kinds::of_compare(&WIDTHS), &due);
}

/// Material that serves two inputs.
#[test]
fn material_that_is_used_twice_is_found() {
    let mut twice = session(1, EXTREMES[0]);
    twice.extend(session(1, OPPOSITES[0]));
    let faults = twice.faults(&kinds::of_compare(&WIDTHS));
    for kind in (0x70..=0x72).chain([0x74]) {
        assert!(faults.iter().any(|fault| fault.kind == kind), "{kind:02x}");
    }
}
