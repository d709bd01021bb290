//! Cheating clients against the façade's server on loopback: it refuses each, says no more than that, and serves on.

use std::collections::BTreeSet;
use std::thread;

use lanner::ErrorKind;
use lanner_attacks::live::{Cheater, Farewell, Target};
use lanner_attacks::models::{Subject, circuits, squares, transfers};
use lanner_attacks::mutation::Mutation;
use lanner_attacks::script::{End, Frame, bytes_of};
use lanner_attacks::session::{Conversation, Victim};
use lanner_attacks::verdict::{Content, Verdict, is_checked};
use lanner_attacks::{extent, guard};
use lanner_wire::{Kind, Refusal};

/// One of each family; `messages` has them all.
const MUTATIONS: [Mutation; 7] = [
    Mutation::WrongKind,
    Mutation::HugeLength,
    Mutation::Twice,
    Mutation::Omitted,
    Mutation::DepartureWithin,
    Mutation::Content(Content::Ones),
    Mutation::Content(Content::Noise),
];

/// A client of `subject` cheats with a message of a kind; returns whether the server refused it: in words, or in silence where a check failed. An attack that
/// would go on to the time limit is left to [`stalling_clients_hold_up_nobody`].
fn cheat(target: &Target, subject: &Subject, client: &Cheater, kind: Kind, what: &str) -> bool {
    let verdict = client.attack().verdict;
    if verdict == Verdict::TimedOut {
        return false;
    }
    let (farewell, stayed) = target.face(subject, client);
    // After the first ciphertext a reason could depend on a secret.
    let allowed = [Farewell::Refused(Refusal::Refused), Farewell::Closed];
    assert!(allowed.contains(&farewell), "{what}: {farewell:?}");
    let told = farewell == allowed[0];
    match verdict {
        Verdict::Unexpected(_) | Verdict::Malformed => {
            assert!(told || is_checked(kind), "{what}: {farewell:?}");
        }
        // Who fails a check hears nothing. Of transfers that fit no more, the client may find the server's wrong first.
        Verdict::Dishonest => assert!(!told || !stayed, "{what}: {farewell:?}"),
        Verdict::Unnoticed if stayed => assert!(!told, "{what}: {farewell:?}"),
        _ => {}
    }
    told || is_checked(kind)
}

/// Changes messages that the server hears in the ways that `mutations` has for each, and lets an honest client ask after
/// every so many of them.
fn attack_a_server<'m>(
    subject: &Subject,
    mutations: impl Fn(usize) -> Vec<&'m Mutation>,
    honest_after: usize,
) {
    attack(&Target::plaintext(&[subject], 2.0), subject, mutations, honest_after);
}

fn attack<'m>(
    target: &Target,
    subject: &Subject,
    mutations: impl Fn(usize) -> Vec<&'m Mutation>,
    honest_after: usize,
) {
    guard::start();
    let conversation = Conversation::session(subject);
    let record = conversation.record();
    let frames = record.heard_by(Victim::Server);
    let (mut refused, mut attacked, mut met) = (0, 0, BTreeSet::new());
    for (index, frame) in frames.iter().enumerate() {
        if !met.insert(frame.kind.0) && !extent::has(index) {
            continue;
        }
        for mutation in mutations(attacked) {
            let client = Cheater::of(&conversation, Victim::Server, frames, index, *mutation);
            let Some(client) = client else { continue };
            let what = format!("message {index} ({:02x}), {mutation:?}", frame.kind.0);
            refused += usize::from(cheat(target, subject, &client, frame.kind, &what));
        }
        attacked += 1;
        assert!(refused >= attacked, "message {index}");
        if attacked % honest_after == 0 {
            target.check_serving(subject);
        }
    }
    target.check_serving(subject);
    target.wait_for(|stats| stats.failures > attacked as u64);
}

/// Each message is refused once, and changed in one more way.
fn two_ways(index: usize) -> Vec<&'static Mutation> {
    vec![&MUTATIONS[index % 2], &MUTATIONS[2 + index % (MUTATIONS.len() - 2)]]
}

#[test]
fn a_server_of_circuits_serves_on_after_every_attack() {
    let ways = |index| if extent::is_whole() { MUTATIONS.iter().collect() } else { two_ways(index) };
    attack_a_server(&circuits(), ways, 1);
}

/// Its sessions have twice as many messages and take twice as long.
#[test]
fn a_server_of_transfers_serves_on_after_every_attack() {
    attack_a_server(&transfers(), two_ways, 8);
}

#[test]
fn a_server_behind_web_sockets_serves_on_after_every_attack() {
    let subject = squares();
    attack(&Target::behind_web_sockets(&[&subject], 2.0), &subject, two_ways, 1);
}

/// The honest messages of another session, set-up and all: their trees fit no other base transfers.
#[test]
fn a_session_that_is_replayed_is_refused() {
    guard::start();
    for subject in [circuits(), transfers()] {
        let record = Conversation::session(&subject).record();
        let target = Target::plaintext(&[&subject], 5.0);
        let bytes = bytes_of(record.heard_by(Victim::Server));
        for _ in 0..2 {
            // A check fails, of which nobody is told.
            assert_eq!(target.cheat(&subject, &bytes, End::Departure), Farewell::Closed);
        }
        target.check_serving(&subject);
    }
}

#[test]
fn stalling_clients_hold_up_nobody() {
    guard::start();
    let subject = circuits();
    let conversation = Conversation::session(&subject);
    let record = conversation.record();
    let frames = record.heard_by(Victim::Server);
    let target = Target::plaintext(&[&subject], 3.0);
    // Between requests a client may think as long as it likes.
    let mut met = BTreeSet::from([0x20]);
    thread::scope(|scope| {
        for (index, frame) in frames.iter().enumerate() {
            if !met.insert(frame.kind.0) {
                continue;
            }
            let silent = Mutation::SilenceWithin;
            let client = Cheater::of(&conversation, Victim::Server, frames, index, silent).unwrap();
            let (target, subject) = (&target, &subject);
            scope.spawn(move || {
                let (farewell, _) = target.face(subject, &client);
                assert_eq!(farewell, Farewell::Refused(Refusal::Refused), "message {index}");
            });
        }
        target.check_serving(&subject);
    });
    target.check_serving(&subject);
}

#[test]
fn bytes_after_the_end_of_a_session_are_nothing() {
    guard::start();
    let subject = squares();
    let bytes =
        bytes_of(&[Frame::new(0x20, [1]), Frame::new(0x20, [2]), Frame::new(0x7777, vec![0xff; 1 << 20])]);
    let target = Target::plaintext(&[&subject], 5.0);
    assert_eq!(target.outstay(&subject, &bytes), Farewell::Closed);
    target.wait_for(|stats| (stats.predictions, stats.failures) == (1, 0));
    target.check_serving(&subject);
}

#[test]
fn strangers_are_turned_away() {
    guard::start();
    let subject = squares();
    let target = Target::plaintext(&[&subject], 5.0);
    let http = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let tls = [22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3, 0, 0, 0, 0, 0];
    for bytes in [&http[..], &tls[..], &[0xff; 4096], &[0; 6], &[1, 0, 0, 0, 0, 0, 6]] {
        let _ = target.shout(bytes, End::Departure);
    }
    // A model that is not there, a pin of another.
    for (model, pin_model) in [(Some("oak"), None), (None, Some("0f".repeat(32)))] {
        let model = model.map_or_else(|| subject.model.manifest().name.clone(), str::to_owned);
        let config = lanner::ClientConfig { model: Some(model), pin_model, ..target.config(&subject) };
        let error = lanner::Client::connect(&config).err().unwrap();
        assert_eq!(error.kind, ErrorKind::Peer, "{error}");
    }
    target.check_serving(&subject);
}
