//! Nonlinear layers by oblivious transfer: an activation of every comparison, one with faithful rounding, a guard that is dropped, squares, and
//! functions by lookups.

use lanner_ot::silent::Parameters;
use lanner_primitives::{Ring, Share};
use lanner_step::{Function, Party, Transfers, Windows};
use lanner_testkit::{Transcript, check_bits};
use lanner_transfers::{Factors, Layer, Polynomials, Rounding};
use lanner_wire::pack_bits;

use crate::common::{Party as End, rng, run};
use crate::transcripts::{EXTREMES, Shares, check_masks, check_uniform, kinds, transcript};

/// A layer, and the rings of its input and of its output. Numbers of values are multiples of 64: no bit fills up a byte or a word.
struct Case {
    layer: Layer,
    inputs: usize,
    from: Ring,
    to: Ring,
}

/// A parabola on each of 16 segments of 64 places, over the whole ring.
fn parabolas() -> Layer {
    let polynomials = (0..16).map(|h| vec![997 * h - 7000, 31 * h - 200, 5 - h]).collect();
    let function = Polynomials { low: -512, bits: 10, polynomials, shift: 4, factors: None };
    Layer::function(&function, 256, 10, 24, 0).unwrap()
}

/// Lines on 8 segments of 16 places times 8 factors, over the whole ring: columns and sums in rings of their own, and each party's share times
/// every factor.
fn scaled() -> Layer {
    let polynomials = (0..8).map(|h| vec![900 * h + 5000, 37 * h + 200]).collect();
    let factors = Factors { values: (0..8).map(|g| 13 << g).collect(), shift: 9 };
    let function = Polynomials { low: -512, bits: 10, polynomials, shift: 4, factors: Some(factors) };
    Layer::function(&function, 256, 10, 20, 0).unwrap()
}

/// A table of 16 values, over the whole ring.
fn table() -> Layer {
    let polynomials = (0..16).map(|place| vec![place * place * 13 - 700]).collect();
    Layer::function(&Polynomials { low: -8, bits: 4, polynomials, shift: 0, factors: None }, 256, 4, 12, 0)
        .unwrap()
}

fn cases() -> [Case; 8] {
    let pool = Windows { channels: 1, image: [32, 32], kernel: [2, 2], strides: [2, 2], pads: [0; 4] };
    let each = Windows::each(256);
    let activation = |high, windows: &Windows, from, shift, to, rounding| {
        let function = Function { relu: true, high, shift, ..Function::IDENTITY };
        let layer = Layer::activation(function, windows, from, to, rounding).unwrap();
        Case { layer, inputs: windows.inputs(), from: Ring::Pow2(from), to: Ring::Pow2(to) }
    };
    let matrices = Layer::matrix_product([2, 8, 8, 8], 21).unwrap();
    let (square, drop) = (Layer::square(256, 22).unwrap(), Layer::drop_guard(256, 21, 1).unwrap());
    [
        // Three turns a comparison: either party is first in one.
        activation(Some(100), &pool, 16, 7, 24, Rounding::Exact),
        activation(None, &each, 37, 12, 30, Rounding::Faithful),
        Case { layer: drop, inputs: 256, from: Ring::Pow2(22), to: Ring::Pow2(21) },
        Case { layer: square, inputs: 256, from: Ring::Pow2(22), to: Ring::Pow2(22) },
        Case { layer: parabolas(), inputs: 256, from: Ring::Pow2(10), to: Ring::Pow2(24) },
        Case { layer: matrices, inputs: 256, from: Ring::Pow2(21), to: Ring::Pow2(21) },
        Case { layer: table(), inputs: 256, from: Ring::Pow2(4), to: Ring::Pow2(12) },
        Case { layer: scaled(), inputs: 256, from: Ring::Pow2(10), to: Ring::Pow2(20) },
    ]
}

/// Widths of values in messages: of carries, signs and selections, products, extensions, entries of tables and what they are multiplied with.
const WIDTHS: [usize; 7] = [15, 16, 9, 8, 24, 5, 21];

/// Bits opened against triples.
const OPENED: u16 = 0x72;

/// All layers in one session; what was said, and each one's shares of the outputs.
fn run_all(number: u8, shares: Shares) -> (Transcript, Vec<[Share; 2]>) {
    let party = |end: &mut End, me: Party, share: &dyn Fn(Ring, usize) -> Share| {
        // Of the many pairs of messages that are compared one in a million is beyond its limit by chance: with these seeds none is.
        let rng = &mut rng(60 + 2 * number + u8::from(me == Party::Server));
        let mut transfers = Transfers::setup(end, me, [Parameters::ALL[0]; 2], rng).unwrap();
        let mut outputs = Vec::new();
        for Case { layer, inputs, from, .. } in cases() {
            let request = layer.request(end, &mut transfers).unwrap();
            let material = layer.prepare(end, &mut transfers, request, rng).unwrap();
            outputs.push(layer.online(end, me, material, &[&share(from, inputs)]).unwrap());
        }
        outputs
    };
    let mut channels = End::pair();
    let (client, server) = run(
        &mut channels,
        |end| party(end, Party::Client, &|ring, length| shares.client.share(ring, length)),
        |end| party(end, Party::Server, &|ring, length| shares.server.share(ring, length)),
    );
    let mut said = transcript(&channels);
    // What both open together: each knows its own mask alone.
    for (a, b) in channels.0.sent_of(OPENED).iter().zip(channels.1.sent_of(OPENED)) {
        said.note("both", OPENED, &a.iter().zip(b).map(|(a, b)| a ^ b).collect::<Vec<u8>>());
    }
    (said, client.into_iter().zip(server).map(|(c, s)| [c, s]).collect())
}

pub fn session(number: u8, shares: Shares) -> Transcript {
    run_all(number, shares).0
}

#[test]
fn comparisons_are_uniform_whatever_the_shares() {
    check_uniform(session, &kinds::of_compare(&WIDTHS), &EXTREMES);
}

#[test]
fn comparisons_need_their_masks() {
    let kinds = (0x70..=0x76).flat_map(|kind| [("client", kind), ("server", kind)]);
    check_masks(session, &kinds::of_compare(&WIDTHS), &kinds.collect::<Vec<_>>());
}

/// Material that serves two inputs.
#[test]
fn material_that_is_used_twice_is_found() {
    let mut twice = session(1, EXTREMES[0]);
    twice.extend(session(1, EXTREMES[3]));
    let faults = twice.faults(&kinds::of_compare(&WIDTHS));
    for kind in 0x70..=0x76 {
        assert!(faults.iter().any(|fault| fault.kind == kind), "{kind:02x}");
    }
}

/// What each party holds of a layer's outputs, which it may open later.
#[test]
fn shares_of_outputs_are_uniform_whatever_those_of_the_inputs() {
    for shares in EXTREMES {
        let outputs = run_all(3, shares).1;
        for (case, outputs) in cases().iter().zip(outputs).take(3) {
            let bits = case.to.bits();
            for share in outputs {
                assert_eq!(check_bits(&[&pack_bits(share.values(), bits)], &[bits as usize]), Ok(()));
            }
        }
    }
}
