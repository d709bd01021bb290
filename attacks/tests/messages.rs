//! After the handshake: every message of either party, changed in every way.

use lanner_attacks::guard;
use lanner_attacks::models::{best, circuits, frequency, probability, squares};
use lanner_attacks::mutation::{Attack, Mutation};
use lanner_attacks::script::Script;
use lanner_attacks::session::{Conversation, Victim, check_honest};
use lanner_attacks::verdict::Failure;
use lanner_protocol::nonlinear::compare::{Layer, Rounding};
use lanner_protocol::nonlinear::windows::Windows;
use lanner_protocol::nonlinear::yao::Function;

/// Runs a party against a peer that says what the attack says; returns how it failed.
fn suffer(conversation: &Conversation, victim: Victim, attack: &Attack, what: &str) -> Option<Failure> {
    let mut channel = Script::channel(attack.bytes.clone(), attack.end);
    let party = conversation.party(victim);
    guard::bounded(what, move || party(&mut channel).err())
}

/// Changes every message of these kinds that `victim` hears, in every way.
fn attack_messages(conversation: &Conversation, victim: Victim, kinds: impl Fn(u16) -> bool) {
    guard::start();
    let record = conversation.record();
    let frames = record.heard_by(victim);
    let attacked = frames.iter().enumerate().filter(|(_, frame)| kinds(frame.kind.0));
    for (index, frame) in attacked {
        for mutation in Mutation::ALL {
            let Some(attack) = Attack::on(frames, index, mutation, conversation) else { continue };
            let what = format!("{victim:?}: message {index} ({:02x}), {mutation:?}", frame.kind.0);
            let failure = suffer(conversation, victim, &attack, &what);
            assert!(attack.verdict.allows(failure.as_ref()), "{what}: {:?}, but {failure:?}", attack.verdict);
        }
    }
}

/// What the network of squares has and that of circuits has not: ciphertexts of squares, and scores that are revealed.
fn of_squares(kind: u16) -> bool {
    matches!(kind, 0x40..=0x43 | 0x62)
}

/// Keys and ciphertexts of other parameters.
fn of_frequency(kind: u16) -> bool {
    matches!(kind, 0x30 | 0x31 | 0x40..=0x43)
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
    attack_messages(&Conversation::session(&subject), Victim::Server, |_| true);
    check_honest(&subject);
}

#[test]
fn a_client_of_circuits_refuses_or_goes_on() {
    let subject = circuits();
    attack_messages(&Conversation::session(&subject), Victim::Client, |_| true);
    check_honest(&subject);
}

#[test]
fn a_server_of_squares_refuses_or_goes_on() {
    let subject = squares();
    attack_messages(&Conversation::session(&subject), Victim::Server, of_squares);
    check_honest(&subject);
}

#[test]
fn a_client_of_squares_refuses_or_goes_on() {
    let subject = squares();
    attack_messages(&Conversation::session(&subject), Victim::Client, of_squares);
    check_honest(&subject);
}

#[test]
fn either_party_of_the_frequency_domain_refuses_or_goes_on() {
    let subject = frequency();
    for victim in [Victim::Client, Victim::Server] {
        attack_messages(&Conversation::session(&subject), victim, of_frequency);
    }
    check_honest(&subject);
}

#[test]
fn either_party_of_a_probability_or_a_top_k_refuses_or_goes_on() {
    for subject in [probability(), best()] {
        for victim in [Victim::Client, Victim::Server] {
            attack_messages(&Conversation::session(&subject), victim, of_outputs);
        }
        check_honest(&subject);
    }
}

#[test]
fn either_party_of_chosen_transfers_refuses_or_goes_on() {
    for victim in [Victim::Client, Victim::Server] {
        attack_messages(&Conversation::chosen_transfers(), victim, of_transfers);
    }
}

#[test]
fn either_party_of_silent_transfers_refuses_or_goes_on() {
    for victim in [Victim::Client, Victim::Server] {
        attack_messages(&Conversation::silent_transfers(), victim, of_transfers);
    }
}

/// A maximum of windows with its bounds and rescaling, and squares.
fn comparisons() -> [Conversation; 2] {
    let windows = Windows { channels: 1, image: [2, 3], kernel: [2, 2], strides: [1, 1], pads: [0; 4] };
    let function = Function { relu: true, slope: None, high: Some(100), shift: 5 };
    let activation = Layer::activation(function, &windows, 20, 13, Rounding::Exact).unwrap();
    [
        Conversation::comparisons(activation, 6, 20, RUNS),
        Conversation::comparisons(Layer::square(3, 11).unwrap(), 3, 11, RUNS),
    ]
}

/// More than there are messages of a layer times mutations.
const RUNS: usize = 800;

#[test]
fn either_party_of_comparisons_refuses_or_goes_on() {
    for conversation in comparisons() {
        for victim in [Victim::Client, Victim::Server] {
            attack_messages(&conversation, victim, |_| true);
        }
    }
}

/// The table of kinds in docs/wire-format.md: whoever adds one attacks it here.
#[test]
fn every_kind_of_message_is_attacked() {
    guard::start();
    let sessions = [circuits(), squares()].map(|subject| Conversation::session(&subject));
    let transfers = [Conversation::chosen_transfers(), Conversation::silent_transfers()];
    let records =
        sessions.iter().chain(&transfers).chain(&comparisons()).map(Conversation::record).collect::<Vec<_>>();
    let heard = |kind: &u16| {
        let both = [Victim::Client, Victim::Server];
        let mut lists = records.iter().flat_map(|record| both.map(|victim| record.heard_by(victim)));
        lists.any(|frames| frames.iter().any(|frame| frame.kind.0 == *kind))
    };
    // Those of the handshake are in `handshake`.
    let missed: Vec<u16> = documented_kinds().into_iter().filter(|kind| *kind > 6 && !heard(kind)).collect();
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
