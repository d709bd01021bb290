//! Peers and networks that stall, vanish, tamper or lie.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{
    PING, PONG, accept_tcp, at_once, listener, pinned, plaintext_pair, self_signed, short_limits, tls_pair,
};
use lanner_net::{Address, Limits, NetError, NetworkProfile, Relay, TcpChannel, Transport};
use lanner_wire::{Channel, ChannelError};

const SOON: Duration = Duration::from_secs(5);

#[test]
fn a_server_that_says_nothing_meets_the_handshake_limit() {
    let (listener, address) = listener();
    let client = pinned(&self_signed());
    let start = Instant::now();
    let error = TcpChannel::connect(&address, &client, short_limits()).err().unwrap();
    assert!(matches!(error, NetError::HandshakeTimedOut { .. }), "{error}");
    assert!(start.elapsed() < SOON);
    drop(listener);
}

#[test]
fn a_server_that_is_not_there_or_hangs_up_is_named() {
    let (absent, address) = listener();
    drop(absent);
    let client = pinned(&self_signed());
    let error = TcpChannel::connect(&address, &client, short_limits()).err().unwrap();
    assert!(matches!(error, NetError::Connect { .. }), "{error}");
    assert!(error.to_string().contains(&address.to_string()), "{error}");

    let (listener, address) = listener();
    let hanging_up = thread::spawn(move || drop(accept_tcp(&listener)));
    let error = TcpChannel::connect(&address, &client, short_limits()).err().unwrap();
    assert!(matches!(error, NetError::HandshakeClosed), "{error}");
    hanging_up.join().unwrap();
    let nowhere: Address = "no-such-host.invalid".parse().unwrap();
    let error = TcpChannel::connect(&nowhere, &client, short_limits()).err().unwrap();
    assert!(matches!(error, NetError::Resolve { .. }), "{error}");
}

#[test]
fn garbage_instead_of_tls_is_an_error_on_either_side() {
    for garbage in [&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], &[0; 3000], &[22, 3, 3, 0, 5, 1, 2, 3, 4, 5]] {
        let (to_server, address) = listener();
        let mut client = TcpStream::connect(address.to_string()).unwrap();
        client.write_all(garbage).unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        assert!(TcpChannel::accept(accept_tcp(&to_server), &self_signed(), short_limits()).is_err());

        let (to_client, address) = listener();
        let answering = thread::spawn(move || {
            let mut stream = accept_tcp(&to_client);
            stream.set_nonblocking(false).unwrap();
            stream.write_all(garbage).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            let _ = stream.read_to_end(&mut Vec::new());
        });
        assert!(TcpChannel::connect(&address, &pinned(&self_signed()), short_limits()).is_err());
        answering.join().unwrap();
    }
}

#[test]
fn a_peer_that_sends_nothing_meets_the_stall_limit() {
    for (mut client, _server) in [tls_pair(short_limits()), plaintext_pair(short_limits())] {
        let start = Instant::now();
        assert!(matches!(client.receive(PING, 1), Err(ChannelError::TimedOut)));
        assert!(start.elapsed() < SOON);
    }
}

#[test]
fn a_peer_that_takes_nothing_meets_the_stall_limit() {
    at_once([tls_pair(short_limits()), plaintext_pair(short_limits())], |(mut client, _server)| {
        let block = vec![0; 1 << 20];
        let start = Instant::now();
        let error = (0..1000).try_for_each(|_| client.send(PING, &block)).unwrap_err();
        assert!(matches!(error, ChannelError::TimedOut), "{error}");
        assert!(start.elapsed() < 6 * SOON);
    });
}

#[test]
fn a_peer_that_takes_nothing_does_not_hold_up_the_end() {
    at_once([tls_pair(short_limits()), plaintext_pair(short_limits())], |(mut client, _server)| {
        // Until the system's buffers have no room for anything.
        for length in [1 << 18, 1000, 1] {
            while client.send(PING, &vec![0; length]).and_then(|()| client.flush()).is_ok() {}
        }
        client.set_stall_limit(Duration::from_secs(900));
        client.send(PING, &[1]).unwrap();
        let start = Instant::now();
        // What is queued may just fit into the system's buffers, or not.
        let _ = client.close(Duration::from_millis(300));
        assert!(start.elapsed() < SOON);
    });
}

#[test]
fn a_peer_that_sends_a_byte_at_a_time_meets_a_limit_too() {
    let (mut client, mut stream) = channel_and_socket(short_limits());
    let dripping = thread::spawn(move || {
        let frame = [&[0, 1, 0, 0, 7, 0][..], &[0; 256]].concat();
        let sent = frame.iter().take_while(|byte| {
            thread::sleep(Duration::from_millis(50));
            stream.write_all(&[**byte]).is_ok()
        });
        sent.count()
    });
    let start = Instant::now();
    assert!(matches!(client.receive(PING, 256), Err(ChannelError::TimedOut)));
    assert!(start.elapsed() < SOON);
    drop(client);
    assert!(dripping.join().unwrap() < 256);
}

/// A channel without TLS and the other end's bare socket, to send what a channel would not.
fn channel_and_socket(limits: Limits) -> (TcpChannel, TcpStream) {
    let (listener, address) = listener();
    let channel = TcpChannel::connect_insecure_plaintext(&address, limits).unwrap();
    let socket = accept_tcp(&listener);
    socket.set_nonblocking(false).unwrap();
    (channel, socket)
}

#[test]
fn a_peer_that_leaves_within_a_message_is_disconnected() {
    let (mut client, mut server) = tls_pair(Limits::default());
    server.send(PONG, &[1; 1000]).unwrap();
    server.flush().unwrap();
    drop(server);
    assert_eq!(client.receive_header().unwrap(), (PONG, 1000));
    client.receive_body(&mut [0; 999]).unwrap();
    client.receive_body(&mut [0; 1]).unwrap();
    assert!(matches!(client.receive_header(), Err(ChannelError::Disconnected)));
    for (mut client, server) in [tls_pair(Limits::default()), plaintext_pair(Limits::default())] {
        server.abort_handle().unwrap().abort();
        assert!(matches!(client.receive(PONG, 1), Err(ChannelError::Disconnected)));
    }
}

#[test]
fn an_absurd_length_is_refused_by_its_header() {
    let (mut client, mut socket) = channel_and_socket(Limits::default());
    socket.write_all(&[0xff, 0xff, 0xff, 0xff, 8, 0]).unwrap();
    let error = client.receive(PONG, 10).unwrap_err();
    let ChannelError::Unexpected { got_length, expected_length, .. } = error else { panic!("{error}") };
    assert_eq!((expected_length, got_length), (10, u32::MAX as usize));
    let (mut client, mut socket) = channel_and_socket(Limits::default());
    socket.write_all(&[0xff, 0xff, 0xff, 0xff, 8, 0]).unwrap();
    assert!(matches!(client.receive_bounded(PONG, 1 << 20), Err(ChannelError::Unexpected { .. })));
}

/// Forwards between a client and a server, flipping a bit of the byte number `after` towards the server.
fn tampering_relay(target: Address, after: usize) -> Address {
    let (listener, address) = listener();
    thread::spawn(move || {
        let client = accept_tcp(&listener);
        client.set_nonblocking(false).unwrap();
        let server = TcpStream::connect(target.to_string()).unwrap();
        let (mut back_from, mut back_to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
        thread::spawn(move || std::io::copy(&mut back_from, &mut back_to));
        let (mut from, mut to) = (client, server);
        let mut buffer = [0; 4096];
        let mut passed = 0;
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            if (passed..passed + count).contains(&after) {
                buffer[after - passed] ^= 1;
            }
            passed += count;
            if to.write_all(&buffer[..count]).is_err() {
                return;
            }
        }
    });
    address
}

#[test]
fn a_byte_changed_on_the_way_is_noticed() {
    // In the handshake, in a message.
    for after in [100, 250, 2000, 5000] {
        let server = self_signed();
        let client = pinned(&server);
        let (listener, address) = listener();
        let address = tampering_relay(address, after);
        let connecting = thread::spawn(move || {
            let mut channel = TcpChannel::connect(&address, &client, short_limits())?;
            channel.send(PING, &[0; 10_000])?;
            Ok::<_, NetError>(channel.receive(PONG, 0)?)
        });
        let received = TcpChannel::accept(accept_tcp(&listener), &server, short_limits())
            .and_then(|mut channel| Ok(channel.receive(PING, 10_000)?));
        assert!(received.is_err(), "byte {after}");
        assert!(connecting.join().unwrap().is_err());
    }
}

#[test]
fn a_relay_delays_by_latency_and_bandwidth() {
    let server = self_signed();
    let client = pinned(&server);
    let (listener, address) = listener();
    let profile = NetworkProfile { bandwidth_bits_per_second: 80e6, round_trip_seconds: 0.05 };
    let relay = Relay::start(&address, profile).unwrap();
    let serving = thread::spawn(move || {
        let mut channel = TcpChannel::accept(accept_tcp(&listener), &server, Limits::default()).unwrap();
        for _ in 0..2 {
            channel.receive(PING, 1_000_000).unwrap();
            channel.send(PONG, &[]).unwrap();
            channel.flush().unwrap();
        }
        assert!(matches!(channel.receive_header(), Err(ChannelError::Disconnected)));
    });
    let relayed = relay.address().to_string().parse().unwrap();
    let mut channel = TcpChannel::connect(&relayed, &client, Limits::default()).unwrap();
    let start = Instant::now();
    for _ in 0..2 {
        channel.send(PING, &vec![0; 1_000_000]).unwrap();
        channel.receive(PONG, 0).unwrap();
    }
    let elapsed = start.elapsed().as_secs_f64();
    assert!(
        (0.3..0.9).contains(&elapsed),
        "2 x (0.05 s of round trip and 0.1 s of transfer) took {elapsed} s"
    );
    drop(channel);
    serving.join().unwrap();
}
