//! Below the handshake: peers without TLS, with another key, in the middle, byte by byte, or too many.

use std::io::Write;
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use lanner::{Client, ClientConfig, ErrorKind};
use lanner_attacks::guard;
use lanner_attacks::live::{Farewell, Target};
use lanner_attacks::models::squares;
use lanner_attacks::script::End;
use lanner_net::{ClientTls, Identity, Limits, Listener, ServerTls, StateDirectory, TcpChannel, Trust};
use lanner_wire::{Channel, Kind, Refusal};

#[test]
fn plaintext_and_tls_do_not_meet() {
    guard::start();
    let subject = squares();
    let state = tempfile::tempdir().unwrap();
    let secure = Target::secure(&[&subject], 2.0, &state.path().join("state"));
    let plaintext = Target::plaintext(&[&subject], 2.0);
    // A client without TLS at a server with it: it learns nothing, not even the models' names.
    let address = secure.address();
    let error =
        guard::bounded("no TLS", move || Client::connect(&ClientConfig::plaintext(&address)).err()).unwrap();
    assert_eq!(error.kind, ErrorKind::Transport, "{error}");
    assert_eq!(error.what, "the server speaks TLS, and this client does without");
    // And the other way round.
    let config = ClientConfig { address: plaintext.address(), timeout: Some(5.0), ..secure.config(&subject) };
    let error = guard::bounded("no TLS", move || Client::connect(&config).err()).unwrap();
    assert_eq!(error.kind, ErrorKind::Transport, "{error}");
    assert_eq!(error.what, "the server runs without TLS, but this client requires it");
    secure.check_serving(&subject);
    plaintext.check_serving(&subject);
}

fn own_key() -> ServerTls {
    let root = tempfile::tempdir().unwrap();
    let state = StateDirectory::open(root.path().join("state")).unwrap();
    ServerTls::new(Identity::self_signed(&state).unwrap(), None).unwrap()
}

#[test]
fn a_server_with_another_key_is_not_spoken_to() {
    guard::start();
    let subject = squares();
    let state = tempfile::tempdir().unwrap();
    let target = Target::secure(&[&subject], 2.0, &state.path().join("state"));
    let pin = Some(own_key().fingerprint().to_string());
    let config = ClientConfig { pin, ..target.config(&subject) };
    let error = guard::bounded("another key", move || Client::connect(&config).err()).unwrap();
    assert_eq!(error.kind, ErrorKind::Transport, "{error}");
    assert!(error.what.contains("not the pinned"), "{error}");
    target.check_serving(&subject);
}

/// Somebody whom the client trusts sits between it and the server, with a connection to each, and passes every message on.
#[test]
fn somebody_between_two_connections_is_noticed() {
    guard::start();
    let subject = squares();
    let state = tempfile::tempdir().unwrap();
    let target = Target::secure(&[&subject], 5.0, &state.path().join("state"));
    let server_pin = target.server().fingerprint().unwrap().parse().unwrap();
    let server_address = target.address().parse().unwrap();
    let (own, listener) = (own_key(), Listener::bind(&"127.0.0.1:0".parse().unwrap()).unwrap());
    let config = ClientConfig {
        address: listener.address().to_string(),
        pin: Some(own.fingerprint().to_string()),
        ..target.config(&subject)
    };
    let relaying = thread::spawn(move || {
        let (stream, _) = listener.accept(Duration::from_secs(20)).unwrap().unwrap();
        let mut client = TcpChannel::accept(stream, &own, Limits::default()).unwrap();
        let tls = ClientTls::new(&Trust::Pin(server_pin), None).unwrap();
        let mut server = TcpChannel::connect(&server_address, &tls, Limits::default()).unwrap();
        pass_on(&mut client, &mut server, 2);
        pass_on(&mut server, &mut client, 3);
        // The client refuses instead of confirming.
        client.receive_header().err()
    });
    let error = guard::bounded("between", move || Client::connect(&config).err()).unwrap();
    assert_eq!(error.kind, ErrorKind::Peer, "{error}");
    assert!(error.what.contains("different handshakes"), "{error}");
    let heard = relaying.join().unwrap();
    assert!(matches!(heard, Some(lanner_wire::ChannelError::Refused(Refusal::Refused))), "{heard:?}");
    target.check_serving(&subject);
}

fn pass_on(from: &mut TcpChannel, to: &mut TcpChannel, messages: usize) {
    for _ in 0..messages {
        let (kind, length) = from.receive_header().unwrap();
        let mut message = vec![0; length];
        from.receive_body(&mut message).unwrap();
        to.send(kind, &message).unwrap();
    }
    to.flush().unwrap();
}

#[test]
fn a_tls_server_turns_garbage_away() {
    guard::start();
    let subject = squares();
    let state = tempfile::tempdir().unwrap();
    let target = Target::secure(&[&subject], 2.0, &state.path().join("state"));
    let record = [&[22, 3, 3, 0x3f, 0xff][..], &[1; 100]].concat();
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &vec![0xff; 1 << 16], &record, &[]] {
        let start = Instant::now();
        for end in [End::Departure, End::Silence] {
            assert_eq!(target.shout(bytes, end), Farewell::Closed);
        }
        assert!(start.elapsed() < Duration::from_secs(10));
    }
    target.wait_for(|stats| stats.failed_handshakes == 8);
    target.check_serving(&subject);
}

/// A byte now and then keeps no session: a message has a time for its bytes, not each byte its own.
#[test]
fn a_client_that_sends_byte_by_byte_is_cut_off() {
    guard::start();
    let subject = squares();
    let target = Target::plaintext(&[&subject], 1.0);
    let mut stream = TcpStream::connect(target.address()).unwrap();
    // A Hello of the longest length there is.
    stream.write_all(&[0, 4, 0, 0, 1, 0]).unwrap();
    let start = Instant::now();
    while stream.write_all(&[0]).is_ok() {
        assert!(start.elapsed() < Duration::from_secs(20), "still listening");
        thread::sleep(Duration::from_millis(100));
    }
    target.check_serving(&subject);
}

#[test]
fn more_clients_than_fit_are_told_so_and_harm_nobody() {
    guard::start();
    let subject = squares();
    let target = Target::plaintext(&[&subject], 2.0);
    let mut honest = Client::connect(&target.config(&subject)).unwrap();
    // The server has room for 64 sessions, the honest client's among them.
    let crowd: Vec<TcpStream> = (0..100).map(|_| TcpStream::connect(target.address()).unwrap()).collect();
    let prediction = honest.predict(&subject.sample).unwrap();
    assert_eq!(prediction.integers.as_ref(), Some(&subject.scores));
    let full = guard::bounded("a full server", {
        let config = target.config(&subject);
        move || Client::connect(&config).err()
    });
    assert!(full.is_some(), "a session beyond the limit");
    target.wait_for(|stats| stats.refused > 0);
    drop(crowd);
    let start = Instant::now();
    while Client::connect(&target.config(&subject)).is_err() {
        assert!(start.elapsed() < Duration::from_secs(30), "no place became free");
        thread::sleep(Duration::from_millis(100));
    }
    target.check_serving(&subject);
}

/// What a peer without a handshake hears is no more than a refusal.
#[test]
fn a_session_without_a_handshake_does_not_begin() {
    guard::start();
    let subject = squares();
    let target = Target::plaintext(&[&subject], 2.0);
    let key = lanner_attacks::script::Frame { kind: Kind(0x30), payload: vec![0; 1000] };
    assert_eq!(target.shout(&key.to_bytes(), End::Silence), Farewell::Refused(Refusal::Refused));
    target.check_serving(&subject);
}
