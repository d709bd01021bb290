//! Cheating servers against the façade's client on loopback: an error of the right kind, in time.

use lanner::{Client, ClientConfig, ErrorKind};
use lanner_attacks::guard;
use lanner_attacks::live::{impostor, offer};
use lanner_attacks::models::circuits;
use lanner_attacks::mutation::{Attack, Mutation};
use lanner_attacks::session::{Conversation, Victim};
use lanner_attacks::verdict::{Content, Verdict};

/// One of each family; `messages` has them all.
const MUTATIONS: [Mutation; 5] = [
    Mutation::WrongKind,
    Mutation::HugeLength,
    Mutation::Refusal,
    Mutation::DepartureWithin,
    Mutation::Content(Content::Ones),
];

#[test]
fn a_client_names_what_a_server_did() {
    guard::start();
    let subject = circuits();
    let conversation = Conversation::session(&subject);
    let record = conversation.record();
    let frames = record.heard_by(Victim::Client);
    for (index, frame) in frames.iter().enumerate() {
        for mutation in MUTATIONS {
            let Some(attack) = Attack::on(frames, index, mutation, &conversation) else { continue };
            let address = impostor(offer(&subject), attack.bytes, attack.end);
            let sample = subject.sample.clone();
            let what = format!("message {index} ({:02x}), {mutation:?}", frame.kind.0);
            let failure = guard::bounded(&what, move || {
                let mut client = Client::connect(&ClientConfig::plaintext(&address))?;
                client.predict(&sample).map(drop)
            });
            let kind = failure.err().map(|error| error.kind);
            let expected = match attack.verdict {
                Verdict::Unexpected(_) | Verdict::Malformed | Verdict::Refused => Some(ErrorKind::Peer),
                Verdict::Disconnected => Some(ErrorKind::Transport),
                // Random bits may be no class's index.
                _ => None,
            };
            let unnoticed = expected.is_none() && matches!(kind, None | Some(ErrorKind::Peer));
            assert!(kind == expected || unnoticed, "{what}: {kind:?}");
        }
    }
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
