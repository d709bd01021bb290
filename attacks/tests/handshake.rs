//! The handshake: every message changed in every way, every bit flipped, and messages that no honest party makes.

use std::sync::Arc;

use lanner_attacks::guard;
use lanner_attacks::mutation::{Attack, Mutation};
use lanner_attacks::script::{End, Frame, Script, bytes_of};
use lanner_attacks::session::{Conversation, Victim};
use lanner_primitives::{Prg, Seed};
use lanner_session::handshake::{
    Greeting, HandshakeError, ModelEntry, ModelRequest, Offer, WIRE_VERSION, answer,
};
use lanner_wire::{Channel, ChannelError, Refusal};

const BINDING: Option<[u8; 32]> = Some([9; 32]);
const PARAMETERS: [u8; 32] = [4; 32];
const HELLO: u16 = 1;
const LIST: u16 = 2;
const MODELS: u16 = 3;
const REQUEST: u16 = 4;
const WELCOME: u16 = 5;
const CONFIRM: u16 = 6;
const PROBE: u16 = 7;
const PROBED: u16 = 8;

fn rng(seed: u8) -> Prg {
    Prg::new(Seed::from_bytes([seed; 16]))
}

fn offers() -> Vec<Offer> {
    let offer = |name: &str, byte| Offer {
        model: ModelEntry { name: name.into(), commitment: [byte; 32] },
        parameters: PARAMETERS,
        manifest: format!("{{\"name\":\"{name}\"}}").into_bytes(),
    };
    vec![offer("oak", 1), offer("yew", 2)]
}

/// A server whose randomness comes from `seed`, so that a recorded client's messages fit it.
fn serve(channel: &mut dyn Channel, seed: u8, binding: Option<[u8; 32]>) -> Result<(), HandshakeError> {
    answer(channel, binding, &offers(), &mut rng(seed)).map(drop)
}

/// A client that measures the network, lists the models, pins one and asks for it.
fn ask(channel: &mut dyn Channel, seed: u8, binding: Option<[u8; 32]>) -> Result<(), HandshakeError> {
    let mut greeting = Greeting::send(channel, &mut rng(seed))?;
    greeting.probe(channel, &[3; 5], 7)?;
    greeting.list(channel)?;
    let request = ModelRequest { name: "yew".into(), pin: Some([2; 32]) };
    greeting.request(channel, binding, &request)?.agree(channel, PARAMETERS)?;
    Ok(channel.flush()?)
}

fn run(victim: Victim, channel: &mut dyn Channel) -> Result<(), HandshakeError> {
    match victim {
        Victim::Client => ask(channel, 1, BINDING),
        Victim::Server => serve(channel, 2, BINDING),
    }
}

fn conversation() -> Conversation {
    Conversation::new(
        Arc::new(|channel| Ok(run(Victim::Client, channel)?)),
        Arc::new(|channel| Ok(run(Victim::Server, channel)?)),
    )
}

/// What `victim` hears in an honest handshake.
fn heard_by(victim: Victim) -> Vec<Frame> {
    guard::start();
    conversation().record().heard_by(victim).to_vec()
}

/// Runs a party against a peer that says this.
fn suffer(victim: Victim, bytes: Vec<u8>, end: End) -> Result<(), HandshakeError> {
    let mut channel = Script::patient(bytes, end);
    guard::bounded("a handshake", move || run(victim, &mut channel))
}

/// The error of a party that hears this instead of message `kind`, and what comes after it.
fn instead(victim: Victim, kind: u16, payload: &[u8]) -> HandshakeError {
    let mut frames = heard_by(victim);
    let frame = frames.iter_mut().find(|frame| frame.kind.0 == kind).unwrap();
    payload.clone_into(&mut frame.payload);
    suffer(victim, bytes_of(&frames), End::Silence).unwrap_err()
}

const VICTIMS: [Victim; 2] = [Victim::Client, Victim::Server];

#[test]
fn an_honest_record_is_accepted() {
    for victim in VICTIMS {
        suffer(victim, bytes_of(&heard_by(victim)), End::Silence).unwrap();
    }
}

#[test]
fn no_changed_message_leads_to_a_session() {
    for victim in VICTIMS {
        let frames = heard_by(victim);
        for (index, frame) in frames.iter().enumerate() {
            for mutation in Mutation::ALL {
                // The contents are in `no_flipped_bit_leads_to_a_session`.
                let Some(attack) = Attack::on(&frames, index, mutation, &conversation()) else { continue };
                let last = index + 1 == frames.len();
                let harmless = match (frame.kind.0, mutation) {
                    // A client may ask for the list, and probe, as often as it likes, or not at all.
                    (LIST | PROBE, Mutation::Twice | Mutation::Omitted) => victim == Victim::Server,
                    // A probe means nothing, however long it is.
                    (PROBE, Mutation::Swapped | Mutation::Shorter | Mutation::Longer) => true,
                    // What comes after the handshake is the session's.
                    (_, Mutation::Twice) => last,
                    _ => false,
                };
                let outcome = suffer(victim, attack.bytes, attack.end);
                let what = format!("{victim:?}: message {index} ({:02x}), {mutation:?}", frame.kind.0);
                assert_eq!(outcome.is_ok(), harmless, "{what}: {outcome:?}");
                let Err(error) = outcome else { continue };
                assert!(names(&error, mutation), "{what}: {error}");
            }
        }
    }
}

/// Whether the error says what happened, for changes that leave no doubt.
fn names(error: &HandshakeError, mutation: Mutation) -> bool {
    use Mutation as M;
    if matches!(error, HandshakeError::OnlyListed) {
        return matches!(mutation, M::Departure | M::DepartureInHeader);
    }
    let HandshakeError::Channel(error) = error else {
        return matches!(mutation, M::Shorter | M::Empty | M::Twice | M::Omitted | M::Swapped);
    };
    match mutation {
        M::Silence | M::SilenceWithin => matches!(error, ChannelError::TimedOut),
        M::Departure | M::DepartureWithin | M::DepartureInHeader => {
            matches!(error, ChannelError::Disconnected)
        }
        M::Refusal => matches!(error, ChannelError::Refused(Refusal::Refused)),
        M::WrongKind | M::HugeLength => matches!(error, ChannelError::Unexpected { .. }),
        // Without the last message the peer is silent.
        M::Omitted => matches!(error, ChannelError::Unexpected { .. } | ChannelError::TimedOut),
        _ => matches!(error, ChannelError::Unexpected { .. } | ChannelError::Malformed { .. }),
    }
}

#[test]
fn no_flipped_bit_leads_to_a_session() {
    for victim in VICTIMS {
        let frames = heard_by(victim);
        for (index, frame) in frames.iter().enumerate() {
            for bit in 0..8 * frame.payload.len() {
                let mut changed = frames.clone();
                changed[index].payload[bit / 8] ^= 1 << (bit % 8);
                let outcome = run(victim, &mut Script::patient(bytes_of(&changed), End::Silence));
                // The list is a help to people; the pin, not the list, says which model it is. A probe measures the network.
                assert!(
                    outcome.is_err() || matches!(frame.kind.0, MODELS | PROBE | PROBED),
                    "{victim:?}: bit {bit} of {:02x}",
                    frame.kind.0
                );
            }
        }
    }
}

#[test]
fn a_replayed_handshake_does_not_confirm() {
    // Another run of the same party draws another nonce.
    let mut to_server = Script::patient(bytes_of(&heard_by(Victim::Server)), End::Silence);
    assert!(matches!(serve(&mut to_server, 3, BINDING), Err(HandshakeError::Confirmation)));
    let mut to_client = Script::patient(bytes_of(&heard_by(Victim::Client)), End::Silence);
    assert!(matches!(ask(&mut to_client, 3, BINDING), Err(HandshakeError::Confirmation)));
}

#[test]
fn a_handshake_carried_over_to_another_connection_does_not_confirm() {
    for binding in [None, Some([8; 32])] {
        let mut to_server = Script::patient(bytes_of(&heard_by(Victim::Server)), End::Silence);
        assert!(matches!(serve(&mut to_server, 2, binding), Err(HandshakeError::Confirmation)));
        let mut to_client = Script::patient(bytes_of(&heard_by(Victim::Client)), End::Silence);
        assert!(matches!(ask(&mut to_client, 1, binding), Err(HandshakeError::Confirmation)));
    }
}

/// A party's own messages sent back to it.
#[test]
fn a_reflected_handshake_is_refused() {
    for (victim, peer) in [(Victim::Client, Victim::Server), (Victim::Server, Victim::Client)] {
        let reflected = bytes_of(&heard_by(peer)[..1]);
        let error = suffer(victim, reflected, End::Silence).unwrap_err();
        assert!(matches!(error, HandshakeError::Role { .. }), "{victim:?}: {error}");
    }
}

fn hello(magic: &[u8], version: u32, role: u8, rest: usize) -> Vec<u8> {
    [magic, &version.to_le_bytes(), &[role], &vec![7; rest]].concat()
}

#[test]
fn a_hello_of_another_protocol_version_or_role_is_named() {
    for (victim, own, other) in [(Victim::Client, 1, 2), (Victim::Server, 2, 1)] {
        let error = |payload: &[u8]| instead(victim, HELLO, payload);
        for version in [0, WIRE_VERSION + 1, u32::MAX] {
            let error = error(&hello(b"lanner\r\n", version, other, 500));
            assert!(matches!(error, HandshakeError::Version { theirs, .. } if theirs == version), "{error}");
        }
        assert!(matches!(error(&hello(b"lanner\n\n", WIRE_VERSION, other, 32)), HandshakeError::Stranger));
        assert!(matches!(error(b"HTTP/1.1 400 Bad Request"), HandshakeError::Stranger));
        assert!(matches!(error(&hello(b"lanner\r\n", WIRE_VERSION, own, 32)), HandshakeError::Role { .. }));
        for malformed in [
            hello(b"lanner\r\n", WIRE_VERSION, 3, 32),
            hello(b"lanner\r\n", WIRE_VERSION, other, 31),
            hello(b"lanner\r\n", WIRE_VERSION, other, 33),
        ] {
            assert!(is_malformed(&error(&malformed)));
        }
        assert!(is_unexpected(&error(&hello(b"lanner\r\n", WIRE_VERSION, other, 2000))));
    }
}

fn is_malformed(error: &HandshakeError) -> bool {
    matches!(error, HandshakeError::Channel(ChannelError::Malformed { .. }))
}

fn is_unexpected(error: &HandshakeError) -> bool {
    matches!(error, HandshakeError::Channel(ChannelError::Unexpected { .. }))
}

/// A text behind its length, or behind another.
fn text(length: u32, text: &[u8]) -> Vec<u8> {
    [&length.to_le_bytes(), text].concat()
}

#[test]
fn a_request_for_another_model_is_refused() {
    let error = |parts: &[&[u8]]| instead(Victim::Server, REQUEST, &parts.concat());
    assert!(matches!(error(&[&text(3, b"elm"), &[0]]), HandshakeError::UnknownModel { .. }));
    // Without a name there must be only one.
    assert!(matches!(error(&[&text(0, b""), &[0]]), HandshakeError::UnknownModel { .. }));
    assert!(matches!(error(&[&text(3, b"yew"), &[1], &[1; 32]]), HandshakeError::WrongModel { .. }));
    assert!(matches!(error(&[&text(3, b"oak"), &[0]]), HandshakeError::Confirmation));
}

#[test]
fn a_malformed_request_is_refused() {
    let error = |parts: &[&[u8]]| instead(Victim::Server, REQUEST, &parts.concat());
    for parts in [
        &[&text(u32::MAX, b"yew")[..], &[0]][..],
        &[&text(257, &[b'x'; 257]), &[0]],
        &[&text(4, b"yew\xff"), &[0]],
        &[&text(3, b"yew"), &[2]],
        &[&text(3, b"yew"), &[1], &[2; 31]],
        &[&text(3, b"yew"), &[0], &[0]],
        &[],
    ] {
        assert!(is_malformed(&error(parts)), "{parts:?}");
    }
    assert!(is_unexpected(&error(&[&text(256, &[b'x'; 256]), &[0; 64]])));
}

#[test]
fn questions_without_end_are_cut_off() {
    let mut frames = heard_by(Victim::Server);
    let list = Frame::new(LIST, []);
    frames.splice(1..3, std::iter::repeat_n(list, 10_000));
    assert!(is_malformed(&suffer(Victim::Server, bytes_of(&frames), End::Silence).unwrap_err()));
}

#[test]
fn a_probe_that_wants_too_much_is_refused() {
    let error = |payload: &[u8]| instead(Victim::Server, PROBE, payload);
    for wanted in [(1 << 20) + 1, u32::MAX] {
        assert!(is_malformed(&error(&wanted.to_le_bytes())));
    }
    for length in [0, 3, 4 + (1 << 20) + 1] {
        assert!(is_unexpected(&error(&vec![0; length])), "{length}");
    }
    for length in [0, 6, 8] {
        assert!(is_unexpected(&instead(Victim::Client, PROBED, &vec![0; length])), "{length}");
    }
}

#[test]
fn a_probe_behind_which_more_comes_is_refused() {
    let bytes = bytes_of(&heard_by(Victim::Server));
    assert!(run(Victim::Server, &mut Script::patient(bytes.clone(), End::Silence)).is_ok());
    let error = run(Victim::Server, &mut Script::channel(bytes, End::Silence)).unwrap_err();
    assert!(is_malformed(&error), "{error}");
}

fn welcome(name: &[u8], commitment: u8, manifest: &[u8]) -> Vec<u8> {
    [name, &[commitment; 32], &PARAMETERS, &[5; 16], manifest].concat()
}

#[test]
fn a_welcome_to_another_model_is_refused() {
    let error = |payload: &[u8]| instead(Victim::Client, WELCOME, payload);
    assert!(matches!(
        error(&welcome(&text(3, b"yew"), 1, &text(2, b"{}"))),
        HandshakeError::WrongModel { .. }
    ));
    assert!(matches!(
        error(&welcome(&text(3, b"oak"), 2, &text(2, b"{}"))),
        HandshakeError::UnknownModel { .. }
    ));
    // The right model, but not the manifest and the session's name that the confirmation is for.
    assert!(matches!(error(&welcome(&text(3, b"yew"), 2, &text(2, b"{}"))), HandshakeError::Confirmation));
}

#[test]
fn a_malformed_welcome_is_refused() {
    let error = |payload: &[u8]| instead(Victim::Client, WELCOME, payload);
    for payload in [
        welcome(&text(u32::MAX, b"yew"), 2, &text(2, b"{}")),
        welcome(&text(257, &[b'x'; 257]), 2, &text(2, b"{}")),
        welcome(&text(3, b"\xff\xfe\xfd"), 2, &text(2, b"{}")),
        welcome(&text(3, b"yew"), 2, &text(u32::MAX, b"{}")),
        welcome(&text(3, b"yew"), 2, &text((4 << 20) + 1, b"{}")),
        welcome(&text(3, b"yew"), 2, &text(3, b"{}")),
        welcome(&text(3, b"yew"), 2, &text(1, b"{}")),
        welcome(&text(3, b"yew"), 2, &[]),
    ] {
        assert!(is_malformed(&error(&payload)));
    }
    let longest = welcome(&text(256, &[b'x'; 256]), 2, &text(4 << 20, &vec![b' '; 4 << 20]));
    assert!(is_unexpected(&error(&[&longest[..], &[0]].concat())));
    assert!(matches!(error(&longest), HandshakeError::UnknownModel { .. }));
}

#[test]
fn a_malformed_list_of_models_is_refused() {
    let error = |payload: &[u8]| instead(Victim::Client, MODELS, payload);
    let entry = [&text(3, b"yew")[..], &[2; 32]].concat();
    for payload in [
        text(u32::MAX, &entry),
        text(1025, &entry.repeat(1025)),
        text(2, &entry),
        text(1, &entry.repeat(2)),
        text(1, &[&text(4, b"yew\xff")[..], &[2; 32]].concat()),
        vec![],
    ] {
        assert!(is_malformed(&error(&payload)));
    }
}

#[test]
fn another_confirmation_is_refused() {
    for victim in VICTIMS {
        for payload in [[0; 16], [0xff; 16]] {
            assert!(matches!(instead(victim, CONFIRM, &payload), HandshakeError::Confirmation));
        }
    }
}

#[test]
fn a_client_that_derives_other_parameters_says_so() {
    let mut channel = Script::patient(bytes_of(&heard_by(Victim::Client)), End::Silence);
    let mut greeting = Greeting::send(&mut channel, &mut rng(1)).unwrap();
    greeting.probe(&mut channel, &[3; 5], 7).unwrap();
    greeting.list(&mut channel).unwrap();
    let request = ModelRequest { name: "yew".into(), pin: Some([2; 32]) };
    let welcomed = greeting.request(&mut channel, BINDING, &request).unwrap();
    assert!(matches!(welcomed.agree(&mut channel, [5; 32]), Err(HandshakeError::Parameters)));
}
