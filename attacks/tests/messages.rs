//! After the handshake: every message of either party, changed in every way.

use std::collections::BTreeSet;

use lanner_attacks::lanes::Lanes;
use lanner_attacks::models::{
    Subject, best, circuits, encrypted, faithful, frequency, likely, lookups, matrices, probability,
    products, several, squares, transfers, trees, ways,
};
use lanner_attacks::mutation::{Attack, Mutation};
use lanner_attacks::script::{Frame, Script};
use lanner_attacks::session::{Conversation, Victim, check_honest};
use lanner_attacks::verdict::{Content, Failure};
use lanner_attacks::{extent, guard};
use lanner_step::{Function, Windows};
use lanner_transfers::{Factors, Layer, Polynomials, Rounding};

/// Runs a party against a peer that says what the attack says; returns how it failed.
fn suffer(conversation: &Conversation, victim: Victim, attack: &Attack, what: &str) -> Option<Failure> {
    let mut channel = Script::channel(attack.bytes.clone(), attack.end);
    let party = conversation.party(victim);
    guard::bounded(what, move || party(&mut channel).err())
}

/// Changes every message of these kinds that a victim hears, in these ways. What both say is recorded once: a party that was
/// attacked may be out of step with the other.
fn attack_messages(
    conversation: &Conversation,
    victims: &[Victim],
    kinds: impl Fn(u16) -> bool,
    mutations: &[Mutation],
) {
    guard::start();
    let record = conversation.record();
    let heard = |victim| record.heard_by(victim).iter().map(|frame| frame.kind.0).collect::<BTreeSet<_>>();
    let by_both = &heard(Victim::Client) & &heard(Victim::Server);
    for victim in victims {
        attack_victim(conversation, *victim, record.heard_by(*victim), &by_both, &kinds, mutations);
    }
}

fn attack_victim(
    conversation: &Conversation,
    victim: Victim,
    frames: &[Frame],
    by_both: &BTreeSet<u16>,
    kinds: impl Fn(u16) -> bool,
    mutations: &[Mutation],
) {
    let attacked = frames.iter().enumerate().filter(|(_, frame)| kinds(frame.kind.0));
    let (mut met, every) = (BTreeSet::new(), extent::is_whole());
    for (number, (index, frame)) in attacked.enumerate() {
        // Every way for the first message of its kind, half of them for each victim if both hear it; one after the other for those behind it.
        let is_first = met.insert(frame.kind.0);
        for (way, mutation) in mutations.iter().enumerate() {
            let in_turn = extent::has(number) && way == number % mutations.len();
            let in_half =
                !by_both.contains(&frame.kind.0) || way % 2 == usize::from(victim == Victim::Client);
            if !(every || in_turn || is_first && in_half) {
                continue;
            }
            let Some(attack) = Attack::on(frames, index, *mutation, conversation) else { continue };
            let what = format!("{victim:?}: message {index} ({:02x}), {mutation:?}", frame.kind.0);
            let failure = suffer(conversation, victim, &attack, &what);
            assert!(attack.verdict.allows(failure.as_ref()), "{what}: {:?}, but {failure:?}", attack.verdict);
        }
    }
}

/// The set-up, the requests, and transfers, which are checked, are attacked in whole sessions, in every way. So is the rest in ways that end a
/// session early; in every way it is by [`attack_predictions`], which sets up once where it can.
fn attack_session(subject: &Subject, victim: Victim) {
    let conversation = Conversation::session(subject);
    let alone = |kind| matches!(kind, 0x20) || of_set_up(kind) || is_checked(kind);
    attack_messages(&conversation, &[victim], alone, &Mutation::ALL);
    attack_messages(&conversation, &[victim], |kind| !alone(kind), &[Mutation::Swapped, Mutation::Departure]);
}

/// Changes messages of these kinds of a preparation and of a prediction in every way.
///
/// A server of circuits takes corrections of transfers once, and ends its session when they come again: what it hears in a prediction is changed
/// in predictions prepared beforehand, what it hears in a preparation in whole sessions. The corrections themselves are in [`attack_session`].
fn attack_predictions(subject: &Subject, kinds: impl Fn(u16) -> bool) {
    attack_messages(&Conversation::predictions(subject), &[Victim::Client], &kinds, &Mutation::ALL);
    let session = Conversation::session(subject);
    let record = session.record();
    if !record.heard_by(Victim::Server).iter().any(|frame| is_checked(frame.kind.0)) {
        attack_messages(&Conversation::predictions(subject), &[Victim::Server], &kinds, &Mutation::ALL);
        return;
    }
    let online = Conversation::prepared_predictions(subject, extent::of(ONLINE_RUNS));
    let heard = online.record();
    let heard: BTreeSet<u16> = heard.heard_by(Victim::Server).iter().map(|frame| frame.kind.0).collect();
    attack_messages(&online, &[Victim::Server], &kinds, &Mutation::ALL);
    let elsewhere = |kind| heard.contains(&kind) || of_set_up(kind) || is_checked(kind) || kind == 0x20;
    attack_messages(&session, &[Victim::Server], |kind| kinds(kind) && !elsewhere(kind), &Mutation::ALL);
}

/// More than a server hears messages of a prediction times mutations.
const ONLINE_RUNS: usize = 400;

/// Base transfers, trees, keys.
fn of_set_up(kind: u16) -> bool {
    matches!(kind, 0x10..=0x13 | 0x30..=0x32)
}

/// Corrections of transfers, and their proofs.
fn is_checked(kind: u16) -> bool {
    matches!(kind, 0x14 | 0x16)
}

const VICTIMS: [Victim; 2] = [Victim::Client, Victim::Server];

/// Keys and ciphertexts: of other parameters.
fn of_keys(kind: u16) -> bool {
    matches!(kind, 0x30 | 0x31)
}

/// What an output has beside the layer before it.
fn of_outputs(kind: u16) -> bool {
    matches!(kind, 0x17 | 0x50..=0x53 | 0x60)
}

/// What transfers have beyond those in a session.
fn of_transfers(kind: u16) -> bool {
    matches!(kind, 0x15 | 0x16 | 0x18)
}

#[test]
fn a_server_of_circuits_refuses_or_goes_on() {
    let subject = circuits();
    attack_session(&subject, Victim::Server);
    check_honest(&subject);
}

#[test]
fn a_client_of_circuits_refuses_or_goes_on() {
    let subject = circuits();
    attack_session(&subject, Victim::Client);
    check_honest(&subject);
}

#[test]
fn either_party_of_a_prediction_by_circuits_refuses_or_goes_on() {
    attack_predictions(&circuits(), |_| true);
}

/// What the network of squares has and that of circuits has not: ciphertexts of squares, and scores that are revealed.
#[test]
fn either_party_of_squares_refuses_or_goes_on() {
    let subject = squares();
    attack_predictions(&subject, |_| true);
    check_honest(&subject);
}

#[test]
fn either_party_of_the_frequency_domain_refuses_or_goes_on() {
    let subject = frequency();
    attack_messages(&Conversation::session(&subject), &[Victim::Server], of_keys, &Mutation::ALL);
    attack_predictions(&subject, |kind| matches!(kind, 0x40..=0x43));
    check_honest(&subject);
}

#[test]
fn either_party_of_a_probability_a_top_k_or_several_labels_refuses_or_goes_on() {
    for subject in [probability(), best(), likely(), several()] {
        attack_predictions(&subject, of_outputs);
        check_honest(&subject);
    }
}

/// The set-up and the preparation of both directions' transfers; nothing else is set up for this network.
#[test]
fn a_server_of_products_refuses_or_goes_on() {
    attack_preparation(Victim::Server);
}

#[test]
fn a_client_of_products_refuses_or_goes_on() {
    attack_preparation(Victim::Client);
}

fn attack_preparation(victim: Victim) {
    let subject = products();
    let ahead = |kind| matches!(kind, 0x10..=0x32 | 0x42 | 0x43);
    attack_messages(&Conversation::session(&subject), &[victim], ahead, &Mutation::ALL);
    check_honest(&subject);
}

/// Coefficient encodings, and between them activations, maxima, squares and a label; both roundings.
#[test]
fn either_party_of_a_prediction_by_transfers_refuses_or_goes_on() {
    for (subject, runs) in [(transfers(), 600), (faithful(), 600), (products(), 300), (lookups(), 600)] {
        let conversation = Conversation::prepared_predictions(&subject, extent::of(runs));
        attack_messages(&conversation, &VICTIMS, |_| true, &Mutation::ALL);
        check_honest(&subject);
    }
}

/// Layers that pick elements, and steps that choose what leaves say; ways that are layers of blocks.
#[test]
fn either_party_of_trees_refuses_or_goes_on() {
    for subject in [trees(), ways()] {
        let conversation = Conversation::prepared_predictions(&subject, extent::of(300));
        attack_messages(&conversation, &VICTIMS, |_| true, &Mutation::ALL);
        check_honest(&subject);
    }
}

/// Ciphertexts of both matrices of a product, and the answers.
#[test]
fn either_party_of_a_product_of_matrices_refuses_or_goes_on() {
    let subject = matrices();
    let conversation = Conversation::prepared_predictions(&subject, extent::of(300));
    attack_messages(&conversation, &VICTIMS, |kind| matches!(kind, 0x40..=0x43), &Mutation::ALL);
    check_honest(&subject);
}

/// Comparison keys while they are made.
#[test]
fn either_party_of_keys_refuses_or_goes_on() {
    let subject = lookups();
    attack_messages(
        &Conversation::session(&subject),
        &VICTIMS,
        |kind| matches!(kind, 0x77..=0x79),
        &Mutation::ALL,
    );
    check_honest(&subject);
}

#[test]
fn either_party_of_silent_transfers_refuses_or_goes_on() {
    attack_messages(&Conversation::silent_transfers(), &VICTIMS, of_transfers, &Mutation::ALL);
}

/// A maximum of windows with its bounds and rescaling, squares, and a function by a lookup of lines and one of factors.
fn comparisons(runs: usize) -> [Conversation; 3] {
    let windows = Windows { channels: 1, image: [2, 3], kernel: [2, 2], strides: [1, 1], pads: [0; 4] };
    let function = Function { relu: true, high: Some(100), shift: 5, ..Function::IDENTITY };
    let activation = Layer::activation(function, &windows, 20, 13, Rounding::Exact).unwrap();
    let factors = Some(Factors { values: vec![3, -5], shift: 1 });
    let polynomials = vec![vec![90, 7], vec![-31, 2]];
    let lines = Polynomials { low: -8, bits: 4, polynomials, shift: 1, factors };
    [
        Conversation::comparisons(Layer::function(&lines, 3, 4, 12, 0).unwrap(), 3, 4, runs),
        Conversation::comparisons(activation, 6, 20, runs),
        Conversation::comparisons(Layer::square(3, 11).unwrap(), 3, 11, runs),
    ]
}

/// More than there are messages of a layer times mutations.
const RUNS: usize = 800;

#[test]
fn either_party_of_comparisons_refuses_or_goes_on() {
    for conversation in comparisons(extent::of(RUNS)) {
        attack_messages(&conversation, &VICTIMS, |_| true, &Mutation::ALL);
    }
}

#[test]
fn either_party_of_a_network_on_ciphertexts_refuses_or_goes_on() {
    let conversation = Conversation::predictions(&encrypted());
    attack_messages(&conversation, &VICTIMS, |kind| matches!(kind, 0x80 | 0x81), &Mutation::ALL);
}

/// The network's own messages: the others are those of other sessions. What ends a session early is the same for all of them.
fn attack_checked(victim: Victim) {
    let own = |kind| (0x90..=0x9a).contains(&kind);
    let some = [Mutation::Longer, Mutation::Content(Content::Ones), Mutation::Content(Content::Flip)];
    let mutations = if extent::is_whole() { &Mutation::ALL[..] } else { &some };
    attack_messages(&Conversation::checked(), &[victim], own, mutations);
}

#[test]
fn a_client_that_is_checked_refuses_or_goes_on() {
    attack_checked(Victim::Client);
}

#[test]
fn a_server_that_checks_its_client_refuses_or_goes_on() {
    attack_checked(Victim::Server);
}

#[test]
fn either_party_of_kept_material_refuses_or_goes_on() {
    let conversation = Conversation::kept(&transfers());
    attack_messages(&conversation, &VICTIMS, |kind| matches!(kind, 0x20..=0x24), &Mutation::ALL);
}

#[test]
fn either_party_of_an_upload_refuses_or_goes_on() {
    let conversation = Conversation::uploading(&transfers());
    attack_messages(&conversation, &VICTIMS, |kind| matches!(kind, 0x22 | 0x25..=0x27), &Mutation::ALL);
}

/// The request, and messages of a prediction and of a preparation that share the connection: that either may be cut, ended or refused is the
/// same for all of them.
#[test]
fn either_party_of_exchanges_that_share_a_connection_refuses_or_goes_on() {
    let conversation = Conversation::together(&transfers());
    // A lane's chunk is due next, whatever it is of.
    let but_order = Mutation::ALL.into_iter().filter(|m| !matches!(m, Mutation::Twice | Mutation::Swapped));
    let but_order: Vec<_> = but_order.collect();
    attack_messages(&conversation, &VICTIMS, |kind| kind == 0x28, &but_order);
    let record = conversation.record();
    for victim in VICTIMS {
        let heard = Lanes::of(record.heard_by(victim)).unwrap();
        for (lane, frames) in heard.lanes().iter().enumerate() {
            let first = if lane == 0 || extent::is_whole() { &Mutation::ALL[..] } else { &ENDS };
            let places = [(0, first), (frames.len() / 2, &ENDS), (frames.len() - 1, &ENDS)];
            let places = places.into_iter().take(if lane == 0 || extent::is_whole() { 3 } else { 2 });
            for (index, mutations) in places {
                for mutation in mutations {
                    let Some(mut attack) = Attack::on(frames, index, *mutation, &conversation) else {
                        continue;
                    };
                    attack.bytes = heard.attacked(lane, &attack);
                    let kind = frames[index].kind.0;
                    let what = format!("{victim:?}: lane {lane}, message {index} ({kind:02x}), {mutation:?}");
                    let failure = suffer(&conversation, victim, &attack, &what);
                    assert!(
                        attack.verdict.allows(failure.as_ref()),
                        "{what}: {:?}, but {failure:?}",
                        attack.verdict
                    );
                }
            }
        }
    }
}

const ENDS: [Mutation; 5] = [
    Mutation::WrongKind,
    Mutation::Refusal,
    Mutation::Omitted,
    Mutation::SilenceWithin,
    Mutation::DepartureWithin,
];

/// The table of kinds in docs/wire-format.md: whoever adds one attacks it here.
#[test]
fn every_kind_of_message_is_attacked() {
    guard::start();
    let sessions =
        [circuits(), squares(), lookups(), encrypted()].map(|subject| Conversation::session(&subject));
    let [kept, uploading, together] =
        [Conversation::kept, Conversation::uploading, Conversation::together].map(|of| of(&transfers()));
    let others = [Conversation::silent_transfers(), Conversation::checked()];
    let records = sessions
        .iter()
        .chain(&others)
        .chain(&comparisons(1))
        .chain([&kept, &uploading, &together])
        .map(Conversation::record)
        .collect::<Vec<_>>();
    let heard = |kind: &u16| {
        let both = [Victim::Client, Victim::Server];
        let mut lists = records.iter().flat_map(|record| both.map(|victim| record.heard_by(victim)));
        let has = |frames: &[Frame]| frames.iter().any(|frame| frame.kind.0 == *kind);
        let on_lanes =
            |frames| Lanes::of(frames).is_some_and(|heard| heard.lanes().iter().any(|lane| has(lane)));
        lists.any(|frames| has(frames) || on_lanes(frames))
    };
    // Those of the handshake are in `handshake`.
    let missed: Vec<u16> = documented_kinds().into_iter().filter(|kind| *kind > 8 && !heard(kind)).collect();
    assert!(missed.is_empty(), "no conversation of attacks/src/session.rs has the kinds {missed:02x?}");
}

/// Rows such as `| 12 to 14 | SoftSpoken... |` and `| 40, 41 | ... |`.
fn documented_kinds() -> Vec<u16> {
    let table =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/wire-format.md")).unwrap();
    let table = table.split("| kind | message |").nth(1).and_then(|rest| rest.split("\n\n").next()).unwrap();
    let numbers = |cell: &str, between: &str| -> Option<Vec<u16>> {
        cell.split(between).map(|number| u16::from_str_radix(number.trim(), 16).ok()).collect()
    };
    let mut kinds = Vec::new();
    for row in table.lines().skip(2) {
        let cell = row.trim_start_matches('|').split('|').next().unwrap();
        match numbers(cell, " to ").or_else(|| numbers(cell, ",")) {
            Some(range) if cell.contains(" to ") => kinds.extend(range[0]..=range[1]),
            Some(list) => kinds.extend(list),
            None => panic!("docs/wire-format.md: {row:?} names no kind"),
        }
    }
    assert!(kinds.len() > 20, "docs/wire-format.md: {kinds:02x?}");
    kinds
}
