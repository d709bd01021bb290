//! The handshake between a client and a server, honest and not.

use std::thread;
use std::time::Duration;

use lanner_net::memory::{MemoryChannel, pair};
use lanner_net::{
    ClientTls, Identity, Limits, Listener, ServerTls, StateDirectory, TcpChannel, Transport, Trust,
};
use lanner_primitives::{Direction, Prg, Seed};
use lanner_session::handshake::{
    Agreement, Greeting, HandshakeError, ModelEntry, ModelRequest, Offer, PROBE_LIMIT, WIRE_VERSION,
    Welcomed, answer,
};
use lanner_wire::{Channel, ChannelError, Kind, Refusal};

const BINDING: Option<[u8; 32]> = Some([9; 32]);
const PARAMETERS: [u8; 32] = [4; 32];
const HELLO: Kind = Kind(1);
const MODEL_REQUEST: Kind = Kind(4);

fn rng(seed: u8) -> Prg {
    Prg::new(Seed::from_bytes([seed; 16]))
}

fn offers() -> Vec<Offer> {
    let offer = |name: &str, byte| Offer {
        model: ModelEntry { name: name.into(), commitment: [byte; 32] },
        parameters: PARAMETERS,
        manifest: format!("{{\"name\":\"{name}\"}}").into_bytes(),
    };
    vec![offer("digits", 1), offer("letters", 2)]
}

type Served = Result<(usize, Agreement), HandshakeError>;

/// Runs a client against a server with the two offers.
fn converse<T>(client: impl FnOnce(&mut MemoryChannel) -> T) -> (T, Served) {
    converse_bound(BINDING, offers(), client)
}

fn converse_bound<T>(
    binding: Option<[u8; 32]>,
    offers: Vec<Offer>,
    client: impl FnOnce(&mut MemoryChannel) -> T,
) -> (T, Served) {
    let (mut near, mut far) = pair();
    let serving = thread::spawn(move || answer(&mut far, binding, &offers, &mut rng(2)));
    let outcome = client(&mut near);
    near.flush().ok();
    drop(near);
    (outcome, serving.join().unwrap())
}

fn request(
    channel: &mut MemoryChannel,
    name: &str,
    pin: Option<[u8; 32]>,
) -> Result<Welcomed, HandshakeError> {
    let greeting = Greeting::send(channel, &mut rng(1))?;
    greeting.request(channel, BINDING, &ModelRequest { name: name.into(), pin })
}

fn probe(agreement: &Agreement) -> [u8; 16] {
    *agreement.seed(3, "mask", 7, Direction::ServerToClient).as_bytes()
}

#[test]
fn both_parties_agree_on_model_session_and_seeds_in_one_round() {
    let (client, server) = converse(|channel| {
        let welcomed = request(channel, "letters", Some([2; 32])).unwrap();
        assert_eq!(welcomed.model().name, "letters");
        assert_eq!(welcomed.manifest(), br#"{"name":"letters"}"#);
        let agreement = welcomed.agree(channel, PARAMETERS).unwrap();
        assert_eq!(channel.traffic().rounds, 1);
        agreement
    });
    let (index, server) = server.unwrap();
    assert_eq!(index, 1);
    assert_eq!(client.id(), server.id());
    assert_eq!(client.transcript(), server.transcript());
    assert_eq!(probe(&client), probe(&server));
    assert_ne!(probe(&client), *client.seed(3, "mask", 8, Direction::ServerToClient).as_bytes());
}

#[test]
fn two_sessions_share_no_seed() {
    let run = |seed| {
        converse(|channel| {
            let greeting = Greeting::send(channel, &mut rng(seed)).unwrap();
            let request = ModelRequest { name: "digits".into(), pin: None };
            greeting.request(channel, BINDING, &request).unwrap().agree(channel, PARAMETERS).unwrap()
        })
        .0
    };
    assert_ne!(probe(&run(10)), probe(&run(11)), "the client's nonce alone makes them differ");
}

#[test]
fn models_are_listed_before_one_is_chosen() {
    let (names, server) = converse(|channel| {
        let mut greeting = Greeting::send(channel, &mut rng(1)).unwrap();
        let models = greeting.list(channel).unwrap();
        assert_eq!(greeting.list(channel).unwrap(), models);
        let chosen = ModelRequest { name: models[0].name.clone(), pin: Some(models[0].commitment) };
        let welcomed = greeting.request(channel, BINDING, &chosen).unwrap();
        welcomed.agree(channel, PARAMETERS).unwrap();
        models.into_iter().map(|model| model.name).collect::<Vec<_>>()
    });
    assert_eq!(names, ["digits", "letters"]);
    assert_eq!(server.unwrap().0, 0);
}

#[test]
fn a_name_may_be_left_out_only_where_there_is_one_model() {
    let (outcome, _) = converse_bound(BINDING, offers()[..1].to_vec(), |channel| {
        request(channel, "", None).unwrap().agree(channel, PARAMETERS).map(drop)
    });
    outcome.unwrap();
    let (outcome, server) = converse(|channel| request(channel, "", None).map(drop));
    assert!(matches!(outcome, Err(HandshakeError::Channel(ChannelError::Refused(Refusal::Model)))));
    assert!(matches!(server, Err(HandshakeError::UnknownModel { .. })));
}

#[test]
fn an_unknown_or_changed_model_is_refused() {
    for (name, pin) in [("faces", None), ("digits", Some([7; 32]))] {
        let (outcome, server) = converse(|channel| request(channel, name, pin).map(drop));
        assert!(matches!(outcome, Err(HandshakeError::Channel(ChannelError::Refused(Refusal::Model)))));
        assert!(server.is_err());
    }
}

#[test]
fn the_client_itself_checks_what_it_pinned() {
    // A server that ignores the pin: it is asked without one.
    let (mut near, mut far) = pair();
    let serving = thread::spawn(move || {
        let hello = far.receive_bounded(HELLO, 1024).unwrap();
        let mut relay = pair();
        let mut unpinned = vec![6, 0, 0, 0];
        unpinned.extend(b"digits\0");
        relay.0.send(HELLO, &hello).unwrap();
        relay.0.send(MODEL_REQUEST, &unpinned).unwrap();
        relay.0.flush().unwrap();
        let asked = thread::spawn(move || answer(&mut relay.1, BINDING, &offers(), &mut rng(2)).map(drop));
        for kind in [HELLO, Kind(5), Kind(6)] {
            let message = relay.0.receive_bounded(kind, 1 << 20).unwrap();
            far.send(kind, &message).unwrap();
        }
        far.flush().unwrap();
        drop(relay.0);
        asked.join().unwrap().unwrap_err();
    });
    let error = request(&mut near, "digits", Some([7; 32])).err().unwrap();
    let HandshakeError::WrongModel { expected, got } = error else { panic!("{error}") };
    assert_eq!((expected, got), ("07".repeat(32), "01".repeat(32)));
    serving.join().unwrap();
}

#[test]
fn probes_are_answered_before_a_model_is_wanted() {
    let (welcomed, served) = converse(|channel| {
        let mut greeting = Greeting::send(channel, &mut rng(1)).unwrap();
        for (sent, wanted) in [(0, 0), (PROBE_LIMIT, 0), (0, PROBE_LIMIT), (1000, 7)] {
            let before = channel.traffic();
            greeting.probe(channel, &vec![3; sent], wanted as u32).unwrap();
            let traffic = channel.traffic().since(before);
            assert!(traffic.sent >= sent as u64 && traffic.received >= wanted as u64);
        }
        assert_eq!(greeting.list(channel).unwrap().len(), 2);
        let question = ModelRequest { name: "digits".into(), pin: None };
        greeting.request(channel, BINDING, &question).unwrap().agree(channel, PARAMETERS).map(drop)
    });
    welcomed.unwrap();
    assert_eq!(served.unwrap().0, 0);
}

#[test]
fn a_client_that_only_probes_has_failed_at_nothing_and_one_that_wants_too_much_has() {
    let ((), served) = converse(|channel| {
        Greeting::send(channel, &mut rng(1)).unwrap().probe(channel, &[], 5).unwrap();
    });
    assert!(matches!(served.err().unwrap(), HandshakeError::OnlyListed));
    for (bytes, wanted) in
        [(vec![0; PROBE_LIMIT + 1], 0), (vec![], PROBE_LIMIT as u32 + 1), (vec![], u32::MAX)]
    {
        let (asked, served) = converse(|channel| {
            channel.send(HELLO, &hello()).unwrap();
            channel.send(Kind(7), &[&wanted.to_le_bytes(), bytes.as_slice()].concat()).unwrap();
            channel.receive_header().and_then(|(_, length)| {
                channel.receive_body(&mut vec![0; length])?;
                channel.receive_header()
            })
        });
        assert!(matches!(asked, Err(ChannelError::Refused(Refusal::Refused))), "{asked:?}");
        served.map(drop).unwrap_err();
    }
    // There is an end to it.
    let (asked, served) = converse(|channel| {
        let mut greeting = Greeting::send(channel, &mut rng(1)).unwrap();
        (0..17).try_for_each(|_| greeting.probe(channel, &[], 1))
    });
    asked.unwrap_err();
    served.map(drop).unwrap_err();
}

/// A client's first message.
fn hello() -> Vec<u8> {
    let (mut near, mut far) = pair();
    Greeting::send(&mut near, &mut rng(1)).unwrap();
    near.flush().unwrap();
    far.receive_bounded(HELLO, 1024).unwrap()
}

#[test]
fn another_version_is_named_on_both_sides() {
    let (outcome, server) = converse(|channel| {
        let mut hello = b"lanner\r\n".to_vec();
        hello.extend((WIRE_VERSION + 1).to_le_bytes());
        hello.extend([0; 200]);
        channel.send(HELLO, &hello).unwrap();
        let theirs = channel.receive_bounded(HELLO, 1024).unwrap();
        assert_eq!(
            theirs[8..12],
            WIRE_VERSION.to_le_bytes(),
            "the server's version comes before the refusal"
        );
        channel.receive(Kind(5), 1).unwrap_err()
    });
    assert!(matches!(outcome, ChannelError::Refused(Refusal::Version)));
    let error = server.err().unwrap();
    assert!(
        matches!(error, HandshakeError::Version { ours: WIRE_VERSION, theirs } if theirs == WIRE_VERSION + 1)
    );
    let named = |version: u32| error.to_string().contains(&version.to_string());
    assert!(named(WIRE_VERSION) && named(WIRE_VERSION + 1), "{error}");

    let (mut near, mut far) = pair();
    let mut hello = b"lanner\r\n".to_vec();
    hello.extend((WIRE_VERSION + 1).to_le_bytes());
    far.send(HELLO, &hello).unwrap();
    far.send(Kind::REFUSED, &[Refusal::Version.code()]).unwrap();
    far.flush().unwrap();
    let error = request(&mut near, "digits", None).err().unwrap();
    assert!(matches!(error, HandshakeError::Version { theirs, .. } if theirs == WIRE_VERSION + 1), "{error}");
}

#[test]
fn other_parameters_are_refused_and_the_server_is_told() {
    let (outcome, server) =
        converse(|channel| request(channel, "digits", None).unwrap().agree(channel, [5; 32]).map(drop));
    assert!(matches!(outcome, Err(HandshakeError::Parameters)));
    assert!(matches!(server, Err(HandshakeError::Channel(ChannelError::Refused(Refusal::Parameters)))));
}

#[test]
fn two_connections_joined_by_somebody_do_not_confirm() {
    let (outcome, server) =
        converse_bound(Some([8; 32]), offers(), |channel| request(channel, "digits", None).map(drop));
    assert!(matches!(outcome, Err(HandshakeError::Confirmation)));
    assert!(server.is_err());
}

#[test]
fn a_client_that_shows_another_confirmation_gets_no_session() {
    let ((), server) = converse(|channel| {
        let welcomed = request(channel, "digits", None).unwrap();
        channel.send(Kind(6), &[0; 16]).unwrap();
        drop(welcomed);
    });
    assert!(matches!(server, Err(HandshakeError::Confirmation)));
}

#[test]
fn over_tls_the_connection_itself_binds_the_session() {
    let root = tempfile::tempdir().unwrap();
    let state = StateDirectory::open(root.path().join("state")).unwrap();
    let tls = ServerTls::new(Identity::self_signed(&state).unwrap(), None).unwrap();
    let client = ClientTls::new(&Trust::Pin(tls.fingerprint()), None).unwrap();
    let listener = Listener::bind(&"127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.address().to_string().parse().unwrap();
    let serving = thread::spawn(move || {
        let (stream, _) = listener.accept(Duration::from_secs(10)).unwrap().unwrap();
        let mut channel = TcpChannel::accept(stream, &tls, Limits::default()).unwrap();
        let binding = channel.binding();
        assert!(binding.is_some());
        answer(&mut channel, binding, &offers(), &mut rng(2)).unwrap().1
    });
    let mut channel = TcpChannel::connect(&address, &client, Limits::default()).unwrap();
    let binding = channel.binding();
    let greeting = Greeting::send(&mut channel, &mut rng(1)).unwrap();
    let request = ModelRequest { name: "digits".into(), pin: None };
    let agreement =
        greeting.request(&mut channel, binding, &request).unwrap().agree(&mut channel, PARAMETERS).unwrap();
    channel.flush().unwrap();
    let server = serving.join().unwrap();
    assert_eq!((agreement.transcript(), probe(&agreement)), (server.transcript(), probe(&server)));
}

#[test]
fn garbage_gets_an_error_and_no_session() {
    let send = |messages: Vec<(Kind, Vec<u8>)>| {
        let ((), server) = converse(move |channel| {
            for (kind, payload) in messages {
                channel.send(kind, &payload).unwrap();
            }
            channel.flush().unwrap();
            while channel.receive_header().is_ok_and(|(_, n)| channel.receive_body(&mut vec![0; n]).is_ok()) {
            }
        });
        server.err().unwrap()
    };
    let mut hello = b"lanner\r\n".to_vec();
    hello.extend(WIRE_VERSION.to_le_bytes());
    hello.push(1);
    hello.extend([7; 32]);
    let own_role = [&hello[..12], &[2; 33][..]].concat();
    assert!(matches!(send(vec![(HELLO, b"GET / HTTP/1.1".to_vec())]), HandshakeError::Stranger));
    assert!(matches!(send(vec![(HELLO, own_role)]), HandshakeError::Role { .. }));
    assert!(matches!(
        send(vec![(HELLO, vec![0; 1025])]),
        HandshakeError::Channel(ChannelError::Unexpected { .. })
    ));
    assert!(matches!(
        send(vec![(Kind(77), vec![])]),
        HandshakeError::Channel(ChannelError::Unexpected { .. })
    ));
    for question in [vec![], vec![0xff; 100], vec![0xff; 4], b"\x01\0\0\0\xff\0".to_vec()] {
        let error = send(vec![(HELLO, hello.clone()), (MODEL_REQUEST, question)]);
        assert!(matches!(error, HandshakeError::Channel(ChannelError::Malformed { .. })), "{error}");
    }
    let error = send(vec![(HELLO, hello.clone()), (MODEL_REQUEST, vec![0; 5000])]);
    assert!(matches!(error, HandshakeError::Channel(ChannelError::Unexpected { .. })));
    let mut questions = vec![(HELLO, hello)];
    questions.extend((0..100).map(|_| (Kind(2), vec![])));
    assert!(matches!(send(questions), HandshakeError::Channel(ChannelError::Malformed { .. })));
}

#[test]
fn a_peer_that_speaks_tls_is_told_from_one_that_sends_garbage() {
    // The beginnings of a TLS alert, for the client, and of a TLS Hello, for the server, as frames: length and kind.
    let (mut near, mut far) = pair();
    far.send(Kind(0x0202), &vec![0; 0x0003_0315]).unwrap();
    far.flush().unwrap();
    assert!(matches!(request(&mut near, "digits", None), Err(HandshakeError::Tls)));
    let ((), server) = converse(|channel| {
        channel.send(Kind(0x0100), &vec![0; 0x0001_0316]).ok();
        channel.flush().ok();
        assert!(matches!(channel.receive_header(), Err(ChannelError::Refused(Refusal::Refused))));
    });
    assert!(matches!(server, Err(HandshakeError::Tls)));
}

#[test]
fn a_client_may_list_the_models_and_leave() {
    let (models, server) =
        converse(|channel| Greeting::send(channel, &mut rng(1)).unwrap().list(channel).unwrap());
    assert_eq!(models.len(), 2);
    assert!(matches!(server, Err(HandshakeError::OnlyListed)));
}
