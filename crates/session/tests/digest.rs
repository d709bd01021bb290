//! Every byte of a session under seeded generators, one session a mode: what changes on the wire is noticed.

use lanner_network::Policy;
use lanner_plan::{Mode, plan};
use lanner_quantize::QuantizationOptions;
use lanner_session::handshake::WIRE_VERSION;
use lanner_tabula as tabula;
use lanner_transfers::Rounding;

use crate::common::{Digested, network, session};
use crate::reveal_saturation;

const JSON: &str = r#"{"format_version":2,"inputs":[{"name":"x","shape":[1,6,6]}],"nodes":[
    {"name":"conv","op":{"Conv":{"weight":"w1","bias":"b1","strides":[1,1],"pads":[1,1,1,1],"dilations":[1,1],"groups":1}},"inputs":["x"]},
    {"name":"relu","op":"Relu","inputs":["conv"]},
    {"name":"pool","op":{"MaxPool":{"kernel":[2,2],"strides":[2,2],"pads":[0,0,0,0]}},"inputs":["relu"]},
    {"name":"flat","op":"Flatten","inputs":["pool"]},
    {"name":"fc","op":{"MatMul":{"weight":"w2","bias":"b2"}},"inputs":["flat"]}],"output":"fc"}"#;
const SHAPES: [(&str, &[usize]); 4] = [("w1", &[2, 1, 3, 3]), ("b1", &[2]), ("w2", &[18, 4]), ("b2", &[4])];

/// The first bytes of both directions' digests.
fn digest(mode: Mode, options: &QuantizationOptions) -> String {
    digest_of(mode, options, Policy::Probability { digits: 2 })
}

fn digest_of(mode: Mode, options: &QuantizationOptions, policy: Policy) -> String {
    let (network, samples) = network(JSON, &SHAPES, 36, options);
    let plan = plan(network.public(), policy, mode).unwrap();
    let input = network.public().input().quantize(&samples[0]).unwrap();
    session(&network, &plan, &input, Digested::new).0.digests()
}

#[test]
fn a_seeded_session_sends_the_same_bytes_as_ever() {
    let (primes, powers) = (QuantizationOptions::default(), QuantizationOptions::powers_of_two());
    let digests = [
        digest(Mode::Gazelle, &primes),
        digest(Mode::Falcon, &primes),
        digest(Mode::Cheetah(Rounding::Exact), &powers),
        digest(Mode::Tabula(tabula::Rounding::Exact), &powers),
        digest_of(Mode::Hardened, &QuantizationOptions::one_prime(), Policy::Label),
    ];
    assert_eq!((WIRE_VERSION, digests.each_ref().map(String::as_str)), SENT);
}

#[test]
fn a_seeded_session_that_reveals_saturation_sends_the_same_bytes_as_ever() {
    let (network, input, plan) = reveal_saturation::example(Mode::Gazelle);
    assert_eq!(session(&network, &plan, &input, Digested::new).0.digests(), REVEALING);
}

const REVEALING: &str = "627288da40bd2d5b 2918f34c16d7d99d";

/// What both parties send, by the wire version. A change of the bytes needs another wire version, and one of what the seeds of kept material give
/// another version of that.
const SENT: (u32, [&str; 5]) = (
    6,
    [
        "cbb525109b356523 d74f6a719d473fcb",
        "9f87881208915fbb ba8f26167e817bf4",
        "fa67c8fa458f78d9 6bd88a4a4221e69b",
        "44a297ea1c1bb2e0 6d26db63b1c5fd41",
        "2a877b3f904948bd d3f1300eb5d7f1f5",
    ],
);
