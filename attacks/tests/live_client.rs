//! Cheating servers against the façade's client on loopback: an error of the right kind, in time.

use lanner::{Client, ClientConfig, ErrorKind};
use lanner_attacks::live::{Cheater, cheating_server, impostor, offer};
use lanner_attacks::models::{Subject, circuits, transfers};
use lanner_attacks::mutation::{Attack, Mutation};
use lanner_attacks::session::{Conversation, Victim};
use lanner_attacks::verdict::{Content, Verdict};
use lanner_attacks::{extent, guard};

/// One of each family; `messages` has them all.
const MUTATIONS: [Mutation; 5] = [
    Mutation::WrongKind,
    Mutation::HugeLength,
    Mutation::Refusal,
    Mutation::DepartureWithin,
    Mutation::Content(Content::Ones),
];

/// Changes every message that the client hears in the ways that `mutations` has for its number.
fn attack_a_client<'m>(subject: &Subject, mutations: impl Fn(usize) -> Vec<&'m Mutation>) {
    guard::start();
    let conversation = Conversation::session(subject);
    let record = conversation.record();
    let frames = record.heard_by(Victim::Client);
    for (index, frame) in frames.iter().enumerate() {
        for mutation in mutations(index) {
            let server = Cheater::of(&conversation, Victim::Client, frames, index, *mutation);
            let Some(server) = server else { continue };
            let what = format!("message {index} ({:02x}), {mutation:?}", frame.kind.0);
            check_client(subject, server, &what);
        }
    }
}

/// The client of such a server fails with an error of the right kind.
fn check_client(subject: &Subject, server: Cheater, what: &str) {
    let verdict = server.attack().verdict;
    let (address, serving) = cheating_server(offer(subject), server);
    let sample = subject.sample.clone();
    let failure = guard::bounded(what, move || {
        let mut client = Client::connect(&ClientConfig::plaintext(&address))?;
        client.predict(&sample).map(drop)
    });
    let kind = failure.err().map(|error| error.kind);
    let expected = match verdict {
        Verdict::Unexpected(_)
        | Verdict::Malformed
        | Verdict::Refused
        | Verdict::Dishonest
        | Verdict::Caught => Some(ErrorKind::Peer),
        Verdict::Disconnected => Some(ErrorKind::Transport),
        // Random bits may be no class's index.
        _ => None,
    };
    // A server whose own transfers no longer fit the client's finds the client's proof wrong, and leaves, be it before the client finds its.
    let left = !serving.join().unwrap();
    let is_seen_by_both = matches!(verdict, Verdict::Dishonest | Verdict::Caught);
    let allowed = match kind {
        None | Some(ErrorKind::Peer) => expected.is_none(),
        Some(ErrorKind::Transport) => left && (expected.is_none() || is_seen_by_both),
        _ => false,
    };
    assert!(kind == expected || allowed, "{what}: {kind:?}");
}

#[test]
fn a_client_names_what_a_server_did() {
    attack_a_client(&circuits(), |index| {
        if extent::is_whole() { MUTATIONS.iter().collect() } else { vec![of(index), of(index + 2)] }
    });
}

/// A way of changing a message, each in turn.
fn of(number: usize) -> &'static Mutation {
    &MUTATIONS[number % MUTATIONS.len()]
}

/// Its sessions have twice as many messages and take twice as long: each message is changed in one or two of the ways.
#[test]
fn a_client_of_transfers_names_what_a_server_did() {
    attack_a_client(&transfers(), |index| {
        if extent::is_whole() { vec![of(index), of(index + 2)] } else { vec![of(index)] }
    });
}

#[test]
fn a_client_waits_for_no_server_longer_than_it_was_told() {
    guard::start();
    let subject = circuits();
    let conversation = Conversation::session(&subject);
    let record = conversation.record();
    let frames = record.heard_by(Victim::Client);
    for index in [0, frames.len() / 2, frames.len() - 1] {
        let attack = Attack::on(frames, index, Mutation::SilenceWithin, &conversation).unwrap();
        let address = impostor(offer(&subject), attack.bytes, attack.end);
        let config = ClientConfig { timeout: Some(1.0), ..ClientConfig::plaintext(&address) };
        let sample = subject.sample.clone();
        let error = guard::bounded("a silent server", move || {
            let mut client = Client::connect(&config)?;
            client.predict(&sample).map(drop)
        });
        assert_eq!(error.unwrap_err().kind, ErrorKind::Transport);
    }
}
