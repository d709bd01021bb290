//! The client's requests: out of turn, too many, unknown.

use std::slice;
use std::sync::Arc;

use lanner_attacks::guard;
use lanner_attacks::models::{Subject, circuits, transfers};
use lanner_attacks::script::{End, Frame, Script, bytes_of};
use lanner_attacks::session::{Conversation, Victim, check_honest, serve};
use lanner_attacks::verdict::{Cause, Failure};
use lanner_primitives::{Prg, Seed};
use lanner_session::requests::{MAX_PREPARED, Requester, Responder};
use lanner_wire::Channel;

const REQUEST: u16 = 0x20;
const PREPARE: u8 = 1;
const END: u8 = 3;
const KEEP: u8 = 4;
const PREDICT_KEPT: u8 = 5;
const SET_UP: u8 = 6;
const SET_UP_AGAIN: u8 = 7;
const PAIR: u8 = 8;
const RESUME: u8 = 9;
const SET_UP_UPLOADED: u8 = 10;
const PREDICT_UNPREPARED: u8 = 12;
const KEPT_NAME: u16 = 0x21;
const UPLOAD_HASH: u16 = 0x25;

/// What an honest client says in each part of a session, each with its request.
struct Parts {
    setup: Vec<Frame>,
    prepare: Vec<Frame>,
    predict: Vec<Frame>,
}

impl Parts {
    fn of(subject: &Subject) -> Self {
        let record = Conversation::session(subject).record();
        let mut parts: Vec<Vec<Frame>> = Vec::new();
        for frame in record.heard_by(Victim::Server) {
            if frame.kind.0 == REQUEST {
                parts.push(Vec::new());
            }
            parts.last_mut().unwrap().push(frame.clone());
        }
        let [setup, prepare, predict, _end] = parts.try_into().unwrap();
        Self { setup, prepare, predict }
    }
}

fn request(code: u8) -> Vec<Frame> {
    vec![Frame::new(REQUEST, [code])]
}

/// Serves a client that says these parts and then is silent.
fn suffer(subject: &Subject, parts: &[&[Frame]]) -> Result<(), Failure> {
    let mut channel = Script::channel(bytes_of(&parts.concat()), End::Silence);
    let serve = Conversation::session(subject).party(Victim::Server);
    guard::bounded("a requester", move || serve(&mut channel))
}

/// What an honest client says that prepares so often, and then ends its session.
fn said_by_who_prepares(subject: &Subject, times: usize) -> Vec<Frame> {
    let (plan, served) = (Arc::clone(&subject.plan), Arc::clone(&subject.served));
    let client = move |channel: &mut dyn Channel| {
        let mut requester = Requester::new(Arc::clone(&plan), Prg::new(Seed::from_bytes([12; 16])));
        for _ in 0..times {
            requester.prepare(channel)?;
        }
        Ok(requester.end(channel)?)
    };
    let server = move |channel: &mut dyn Channel| Ok(serve(channel, Arc::clone(&served))?);
    Conversation::new(Arc::new(client), Arc::new(server)).record().heard_by(Victim::Server).to_vec()
}

fn cause(outcome: Result<(), Failure>) -> Cause {
    outcome.unwrap_err().cause
}

const OUT_OF_TURN: Cause = Cause::Malformed("request: out of turn");

#[test]
fn a_prediction_needs_material_of_its_own() {
    guard::start();
    for subject in [circuits(), transfers()] {
        let Parts { setup, prepare, predict } = Parts::of(&subject);
        assert_eq!(cause(suffer(&subject, &[&setup, &predict])), OUT_OF_TURN);
        assert_eq!(cause(suffer(&subject, &[&request(PREDICT_UNPREPARED)])), OUT_OF_TURN);
        // Once used, material is gone.
        assert_eq!(cause(suffer(&subject, &[&setup, &prepare, &predict, &predict])), OUT_OF_TURN);
        check_honest(&subject);
    }
}

#[test]
fn no_more_is_prepared_than_a_session_may_hold() {
    guard::start();
    let subject = circuits();
    let said = said_by_who_prepares(&subject, MAX_PREPARED);
    let (end, prepared) = said.split_last().unwrap();
    suffer(&subject, &[prepared, slice::from_ref(end)]).unwrap();
    assert_eq!(cause(suffer(&subject, &[prepared, &request(PREPARE)])), OUT_OF_TURN);
    check_honest(&subject);
}

#[test]
fn no_other_codes_are_requests() {
    guard::start();
    for code in 0..=u8::MAX {
        let more = match code {
            SET_UP_UPLOADED => Frame::new(UPLOAD_HASH, [0; 32]),
            _ => Frame::new(KEPT_NAME, [0; 16]),
        };
        let said = [request(code), vec![more]].concat();
        let mut channel = Script::channel(bytes_of(&said), End::Silence);
        let known = (PREPARE..=SET_UP_UPLOADED).contains(&code) || code == PREDICT_UNPREPARED;
        assert_eq!(Responder::receive(&mut channel).is_ok(), known, "{code}");
    }
}

#[test]
fn who_is_no_pair_keeps_nothing() {
    guard::start();
    let subject = circuits();
    let Parts { setup, prepare, predict } = Parts::of(&subject);
    let name = |length| [request(PREDICT_KEPT), vec![Frame::new(KEPT_NAME, vec![9; length])]].concat();
    // A server without a store tells whoever wants a pairing, as often as it is asked for.
    let pair = [request(PAIR), request(PAIR)].concat();
    suffer(&subject, &[&setup, &pair, &prepare, &pair, &predict, &request(END)]).unwrap();
    for asked in [request(KEEP), name(16), request(RESUME)] {
        assert_eq!(cause(suffer(&subject, &[&setup, &asked])), OUT_OF_TURN);
    }
    for asked in [request(SET_UP_AGAIN), request(PAIR), request(KEEP), name(16)] {
        assert_eq!(cause(suffer(&subject, &[&asked])), OUT_OF_TURN);
    }
    for length in [0, 15, 17] {
        assert!(matches!(cause(suffer(&subject, &[&setup, &name(length)])), Cause::Unexpected(_)));
    }
    check_honest(&subject);
}

#[test]
fn a_session_may_end_at_any_time() {
    guard::start();
    let subject = circuits();
    let Parts { setup, prepare, .. } = Parts::of(&subject);
    suffer(&subject, &[&setup, &request(END)]).unwrap();
    suffer(&subject, &[&setup, &prepare, &request(END)]).unwrap();
    suffer(&subject, &[&setup, &request(END), &prepare, &request(0xff)]).unwrap();
}

#[test]
fn a_set_up_is_due_once_and_before_what_needs_it() {
    guard::start();
    let subject = circuits();
    let Parts { setup, prepare, .. } = Parts::of(&subject);
    assert_eq!(cause(suffer(&subject, &[&request(PREPARE), &setup])), OUT_OF_TURN);
    let hash = |length| vec![Frame::new(UPLOAD_HASH, vec![7; length])];
    let uploaded = [request(SET_UP_UPLOADED), hash(32)].concat();
    for again in [request(SET_UP), uploaded] {
        assert_eq!(cause(suffer(&subject, &[&setup, &again])), OUT_OF_TURN);
    }
    for length in [0, 31, 33] {
        let asked = [request(SET_UP_UPLOADED), hash(length)].concat();
        assert!(matches!(cause(suffer(&subject, &[&asked])), Cause::Unexpected(_)));
    }
    let due = Cause::Unexpected(request(PREPARE)[0].kind);
    assert_eq!(cause(suffer(&subject, &[&setup[1..]])), due);
    assert_eq!(cause(suffer(&subject, &[&setup, &prepare[1..]])), due);
    // A second request in the middle of a set-up, and of a preparation.
    for (before, part) in [(&[][..], &setup), (&setup, &prepare)] {
        let due = Cause::Unexpected(part[1].kind);
        assert_eq!(cause(suffer(&subject, &[before, &part[..1], part])), due);
    }
}

/// The messages of one preparation in another: their transfers are others.
#[test]
fn a_preparation_that_is_replayed_in_the_next_is_refused() {
    guard::start();
    let subject = circuits();
    let Parts { setup, prepare, predict } = Parts::of(&subject);
    suffer(&subject, &[&setup, &prepare, &predict, &request(END)]).unwrap();
    assert_eq!(cause(suffer(&subject, &[&setup, &prepare, &prepare])), Cause::Dishonest);
    assert_eq!(cause(suffer(&subject, &[&setup, &prepare, &predict, &prepare])), Cause::Dishonest);
    check_honest(&subject);
}
