//! The step function and the layer behind it in one: comparisons of one leaf, and of several, which choose among weights of one output and of some.

use lanner_primitives::Ring;
use lanner_testkit::Transcript;

use crate::chosen::{Layer, groups};
use crate::common::{Party as End, rng};
use crate::transcripts::{EXTREMES, OPPOSITES, Shares, check_masks, check_uniform, kinds, transcript};

/// Groups, rows and columns, and bits of the values and of the outputs. Numbers of comparisons are multiples of 64: no bit fills up a byte or a word.
const CASES: [([usize; 3], [u32; 2]); 2] = [([256, 1, 1], [4, 32]), ([2, 3, 128], [9, 24])];

/// Widths of values in messages: of comparisons, choices and weights.
const WIDTHS: [usize; 4] = [3, 8, 32, 24];

fn session(number: u8, shares: Shares) -> Transcript {
    let mut said = Transcript::default();
    for (case, (sides, [from, to])) in (0..).zip(CASES) {
        let layer = Layer::new(&groups(sides), [from, to], &mut rng(1));
        let ring = Ring::Pow2(from);
        let [client, server] = [shares.client, shares.server].map(|edge| edge.share(ring, layer.inputs()));
        let mut channels = End::pair();
        layer.play(&mut channels, [&client, &server], 100 + 4 * number + 2 * case);
        said.extend(transcript(&channels));
    }
    said
}

#[test]
fn choices_are_uniform_whatever_the_shares() {
    check_uniform(session, &kinds::of_compare(&WIDTHS), &EXTREMES);
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
