//! Mode `cheetah` over sockets: every message of a handshake and of a prediction, with exact rounding and with faithful rounding, changed
//! in every way that ends before a time limit.

use lanner::{Client, ClientConfig, ErrorKind};
use lanner_attacks::guard;
use lanner_attacks::live::{Target, offer, shouter, suffer};
use lanner_attacks::models::{Subject, faithful, transfers};
use lanner_attacks::mutation::{Attack, Mutation};
use lanner_attacks::script::{Frame, Tape};
use lanner_attacks::session::{Conversation, Victim, check_honest};
use lanner_attacks::verdict::Verdict;
use lanner_net::memory;
use lanner_primitives::{Prg, Seed};
use lanner_session::handshake::{Greeting, ModelRequest, answer};
use lanner_wire::Channel;

/// Every change of each of these messages that needs no time limit to end, with what it is called.
fn attacks<'a>(
    frames: &'a [Frame],
    conversation: &'a Conversation,
) -> impl Iterator<Item = (Attack, String)> + 'a {
    let all = (0..frames.len()).flat_map(|index| Mutation::ALL.map(|mutation| (index, mutation)));
    all.filter_map(move |(index, mutation)| {
        let attack = Attack::on(frames, index, mutation, conversation)?;
        let what = format!("message {index} ({:02x}), {mutation:?}", frames[index].kind.0);
        (attack.verdict != Verdict::TimedOut).then_some((attack, what))
    })
}

/// As in `messages`, where the same is done without sockets.
fn attack_predictions(subject: &Subject) {
    guard::start();
    let conversation = Conversation::prepared_predictions(subject, RUNS);
    let record = conversation.record();
    for victim in [Victim::Client, Victim::Server] {
        for (attack, what) in attacks(record.heard_by(victim), &conversation) {
            let (party, what) = (conversation.party(victim), format!("{victim:?}: {what}"));
            let verdict = attack.verdict;
            let failure = guard::bounded(&what, move || suffer(&party, &attack.bytes, attack.end));
            assert!(verdict.allows(failure.as_ref()), "{what}: {verdict:?}, but {failure:?}");
        }
    }
    check_honest(subject);
}

/// More than a party hears messages times mutations.
const RUNS: usize = 400;

#[test]
fn either_party_of_an_exact_prediction_refuses_or_goes_on() {
    attack_predictions(&transfers());
}

#[test]
fn either_party_of_a_faithful_prediction_refuses_or_goes_on() {
    attack_predictions(&faithful());
}

/// What both parties of a handshake say, the client and the server.
fn handshake(subject: &Subject) -> [Vec<Frame>; 2] {
    let (client, mut server) = memory::pair();
    let offers = [offer(subject)];
    let rng = |number| Prg::new(Seed::from_bytes([number; 16]));
    std::thread::scope(|scope| {
        scope.spawn(|| answer(&mut server, None, &offers, &mut rng(1)).unwrap());
        let mut tape = Tape::new(client);
        let greeting = Greeting::send(&mut tape, &mut rng(2)).unwrap();
        let request = ModelRequest { name: offers[0].model.name.clone(), pin: None };
        let welcomed = greeting.request(&mut tape, None, &request).unwrap();
        welcomed.agree(&mut tape, offers[0].parameters).unwrap();
        tape.flush().unwrap();
        [tape.sent, tape.received]
    })
}

/// A recorded handshake is of another nonce: no change of it leads to a session, and the server serves on.
#[test]
fn no_change_of_a_recorded_handshake_leads_to_a_session_with_a_server() {
    guard::start();
    let subject = transfers();
    let [frames, _] = handshake(&subject);
    let target = Target::plaintext(&[&subject], 1.0);
    for (attempts, (attack, what)) in (1..).zip(attacks(&frames, &Conversation::session(&subject))) {
        let farewell = target.shout(&attack.bytes, attack.end);
        eprintln!("{what}: {farewell:?}");
        target.wait_for(|stats| (stats.failures, stats.predictions) == (attempts, 0));
    }
    target.check_serving(&subject);
}

#[test]
fn no_change_of_a_recorded_handshake_leads_to_a_session_with_a_client() {
    guard::start();
    let subject = transfers();
    let [_, frames] = handshake(&subject);
    for (attack, what) in attacks(&frames, &Conversation::session(&subject)) {
        let address = shouter(attack.bytes, attack.end);
        let failed =
            guard::bounded(&what, move || Client::connect(&ClientConfig::plaintext(&address)).map(drop));
        let kind = failed.map_err(|error| error.kind);
        assert!(matches!(kind, Err(ErrorKind::Peer | ErrorKind::Transport)), "{what}: {kind:?}");
    }
}
