//! Activations by openings under masks, and the keys that are made for them.

use lanner_ot::silent::Parameters;
use lanner_primitives::Ring;
use lanner_step::{Party, Transfers};
use lanner_tabula::{Activation, Keyed, Maker, Rounding, Shape};
use lanner_testkit::{Domains, Transcript};

use crate::common::{Party as End, rng, run};
use crate::transcripts::{EXTREMES, OPPOSITES, Shares, check_masks, check_uniform, kinds, transcript};

const KEPT: u32 = 8;
const DROPPED: u32 = 8;
const TO: u32 = 24;
const VALUES: usize = 512;

/// A bound, whose values need keys with their thresholds.
pub fn session(number: u8, shares: Shares) -> Transcript {
    session_of(Rounding::Exact, number, shares)
}

fn stochastic(number: u8, shares: Shares) -> Transcript {
    session_of(Rounding::Stochastic, number, shares)
}

fn session_of(rounding: Rounding, number: u8, shares: Shares) -> Transcript {
    let layer = Activation::rounding(rounding, VALUES, [KEPT, DROPPED, TO], Shape::Clip(30)).unwrap();
    let from = Ring::Pow2(KEPT + DROPPED);
    let party = |end: &mut End, me: Party| {
        let rng = &mut rng(60 + 2 * number + u8::from(me == Party::Server));
        let mut transfers = Transfers::setup(end, me, [Parameters::ALL[0]; 2], rng).unwrap();
        let salt = layer.request(end, me, rng).unwrap();
        let material =
            layer.prepare(&mut Maker { channel: end, transfers: &mut transfers, rng }, salt).unwrap();
        let edge = if me == Party::Client { shares.client } else { shares.server };
        layer.online(end, me, material, &edge.share(from, VALUES)).unwrap();
    };
    let mut channels = End::pair();
    run(&mut channels, |end| party(end, Party::Client), |end| party(end, Party::Server));
    transcript(&channels)
}

fn domains() -> Domains {
    let mut domains = kinds::of_compare(&[8, 16, 24]);
    domains.extend([
        (0x77, kinds::bits(&[])),
        (0x78, kinds::bits(&[128])),
        (0x79, kinds::bits(&[8, 24])),
        (0x7a, kinds::bits(&[8, 16])),
    ]);
    domains
}

#[test]
fn openings_and_keys_are_uniform_on_opposite_shares() {
    check_uniform(session, &domains(), OPPOSITES);
    check_uniform(stochastic, &domains(), OPPOSITES);
}

#[test]
#[ignore = "takes fifteen seconds"]
fn openings_and_keys_are_uniform_whatever_the_shares() {
    check_uniform(session, &domains(), &EXTREMES);
    check_uniform(stochastic, &domains(), &EXTREMES);
}

#[test]
fn openings_need_their_masks() {
    for session in [session, stochastic] {
        check_masks(session, &domains(), &[("client", 0x7a), ("server", 0x7a)]);
    }
}
