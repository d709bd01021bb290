//! Every kind of message is uniform whatever choices and correlations are: chi-square tests under fixed seeds, at a level of
//! `10^-6`.

use std::collections::BTreeSet;

use lanner_ot::arithmetic;
use lanner_ot::silent::Parameters;
use lanner_ot::{CorrelatedReceiver, CorrelatedSender, CotReceiver, CotSender, SilentReceiver, SilentSender};
use lanner_primitives::{Bits, Block, Prg, Ring, parallel};
use lanner_testkit::{Domain, Domains, Party, Transcript, run};
use rand_core::SeedableRng;

/// Of constants, as no honest party's are.
#[derive(Clone, Copy)]
struct Inputs {
    delta: Block,
    choices: bool,
    /// Whether correlations are the largest or zero.
    correlations: bool,
}

const DELTAS: [Block; 2] = [Block(1), Block::ONES];

impl Inputs {
    /// All extremes.
    fn all() -> impl Iterator<Item = Self> {
        let of = |n: usize| Self { delta: DELTAS[n & 1], choices: n & 2 != 0, correlations: n & 4 != 0 };
        (0..8).map(of)
    }
}

/// A ring for shares, its largest element, and what its corrections are drawn from.
fn rings() -> [(Ring, u64, Domain); 2] {
    let prime = 1_032_193;
    let residues = Domain::Residues { seed: 0, values: COUNT, moduli: vec![prime] };
    [(Ring::Prime(prime), prime - 1, residues), (Ring::Pow2(37), (1 << 37) - 1, Domain::Bits(vec![37]))]
}

/// What each kind is drawn from. Of arithmetic corrections it depends on the ring.
fn domains(corrections: &Domain) -> Domains {
    let bits = |widths: &[usize]| Domain::Bits(widths.to_vec());
    [
        (0x10, Domain::Points),
        (0x11, Domain::Points),
        (0x12, bits(&[])),
        (0x13, bits(&[128])),
        (0x14, bits(&[128])),
        (0x15, bits(&[])),
        (0x16, bits(&[128])),
        (0x17, corrections.clone()),
        (0x18, bits(&[128])),
    ]
    .into()
}

/// Transfers of each kind: whole blocks of columns, and no bit that fills up a byte.
const COUNT: usize = 2048;
/// More, so that many trees are grown.
const SILENT: usize = 1 << 14;
/// Sessions that are judged together: one has a single salt.
const SESSIONS: u8 = 8;

/// Transfers of every kind in one session, one after the other.
fn session(number: u8, ring: (Ring, u64), inputs: Inputs) -> Transcript {
    transcript(
        |c| send(c, number, ring, inputs),
        |c| receive(c, number, ring.0, &Bits::from_words(COUNT, vec![word(inputs.choices); COUNT / 64])),
    )
}

fn send(c: &mut Party, number: u8, (ring, top): (Ring, u64), inputs: Inputs) {
    let rng = &mut rng(2 * number);
    let mut source = CotSender::setup(c, inputs.delta, rng).unwrap();
    source.extend(c, COUNT, &mut Vec::new()).unwrap();
    let correlations = vec![if inputs.correlations { top } else { 0 }; COUNT];
    arithmetic::send(&mut source, c, ring, &correlations).unwrap();
    arithmetic::send_random(&mut source, c, ring, &correlations).unwrap();
    let mut source = SilentSender::setup(c, source, Parameters::ALL[0], rng).unwrap();
    source.extend_random(c, SILENT, &mut Vec::new()).unwrap();
    source.extend(c, COUNT, &mut Vec::new()).unwrap();
}

fn receive(c: &mut Party, number: u8, ring: Ring, choices: &Bits) {
    let mut source = CotReceiver::setup(c, &mut rng(2 * number + 1)).unwrap();
    source.extend(c, choices, &mut Vec::new()).unwrap();
    arithmetic::receive(&mut source, c, ring, choices).unwrap();
    arithmetic::receive_random(&mut source, c, ring, COUNT).unwrap();
    let mut source = SilentReceiver::setup(c, source, Parameters::ALL[0]).unwrap();
    source.extend_random(c, SILENT, &mut Vec::new()).unwrap();
    source.extend(c, choices, &mut Vec::new()).unwrap();
}

/// What both parties say.
fn transcript(send: impl FnOnce(&mut Party) + Send, receive: impl FnOnce(&mut Party) + Send) -> Transcript {
    // As on three cores, whatever the machine.
    parallel::set_threads(3);
    let mut parties = Party::pair();
    run(&mut parties, send, receive);
    Transcript::of([("sender", &parties.0), ("receiver", &parties.1)])
}

fn rng(number: u8) -> Prg {
    Prg::from_seed([number; 16])
}

const fn word(bit: bool) -> u64 {
    (bit as u64).wrapping_neg()
}

#[test]
fn every_message_is_uniform_whatever_the_inputs() {
    for (number, inputs) in Inputs::all().enumerate() {
        let (ring, top, corrections) = rings()[number.count_ones() as usize % 2].clone();
        let mut all = Transcript::default();
        (0..SESSIONS).for_each(|number| all.extend(session(number, (ring, top), inputs)));
        assert_eq!(all.faults(&domains(&corrections)), []);
    }
}

#[test]
fn every_kind_of_the_crate_is_listed_and_said() {
    let (ring, top, corrections) = rings()[0].clone();
    let said = session(0, (ring, top), Inputs::all().next().unwrap()).kinds();
    let said: BTreeSet<u16> = said.into_iter().map(|(_, kind)| kind).collect();
    let listed: BTreeSet<u16> = domains(&corrections).into_keys().collect();
    let number = |rest: &str| u16::from_str_radix(rest.split_once(')')?.0, 16).ok();
    let kinds: BTreeSet<u16> =
        include_str!("../src/kind.rs").split("= Kind(0x").skip(1).map(|rest| number(rest).unwrap()).collect();
    assert_eq!((&said, &listed), (&kinds, &kinds));
}

/// What is left of messages without what masks them is no longer uniform, so that the test above would find a mask that is missing.
#[test]
fn what_is_masked_is_not_uniform_itself() {
    let (ring, top, corrections) = rings()[1].clone();
    let inputs = Inputs { delta: DELTAS[1], choices: false, correlations: false };
    let honest = session(0, (ring, top), inputs);
    for (other, masked) in [
        (Inputs { choices: true, ..inputs }, &[("receiver", 0x14), ("receiver", 0x15)][..]),
        (Inputs { correlations: true, ..inputs }, &[("sender", 0x17)][..]),
    ] {
        let bare = honest.unmasked_by(&session(0, (ring, top), other)).faults(&domains(&corrections));
        let found: BTreeSet<(&str, u16)> = bare.iter().map(|fault| (fault.party, fault.kind)).collect();
        assert!(masked.iter().all(|kind| found.contains(kind)), "{found:?}");
    }
}
