//! Laws of a channel, on the memory transport.

use std::thread;
use std::time::{Duration, Instant};

use lanner_net::memory::{pair, shaped_pair};
use lanner_net::{Entry, Excerpt, NetworkProfile, Recorded};
use lanner_wire::{Channel, ChannelError, Kind, Refusal};

const PING: Kind = Kind(7);
const PONG: Kind = Kind(8);

#[test]
fn messages_arrive_in_order_and_are_counted_with_their_frames() {
    let (mut client, mut server) = pair();
    client.send(PING, b"one").unwrap();
    client.send(PING, b"").unwrap();
    client.flush().unwrap();
    assert_eq!(server.receive(PING, 3).unwrap(), b"one");
    assert_eq!(server.receive(PING, 0).unwrap(), b"");
    server.send(PONG, &[9; 10]).unwrap();
    server.flush().unwrap();
    assert_eq!(client.receive(PONG, 10).unwrap(), [9; 10]);
    assert_eq!(client.traffic().sent, 6 + 3 + 6);
    assert_eq!(client.traffic().received, 16);
    assert_eq!(server.traffic().sent, 16);
}

#[test]
fn the_longest_message_is_told_once_by_its_beginning() {
    let (mut client, _server) = pair();
    assert_eq!(client.take_longest_sent(), Excerpt::default());
    let long: Vec<u8> = (0..100).collect();
    for message in [b"short".as_slice(), &long, &[9; 100], b""] {
        client.send(PING, message).unwrap();
    }
    let told = client.take_longest_sent();
    assert_eq!((told.length, told.beginning.as_slice()), (100, &long[..Excerpt::MOST]));
    client.send(PING, b"next").unwrap();
    assert_eq!(client.take_longest_sent(), Excerpt { length: 4, beginning: b"next".to_vec() });
}

#[test]
fn a_round_is_a_send_followed_by_a_wait() {
    let (mut client, mut server) = pair();
    let peer = thread::spawn(move || {
        for _ in 0..3 {
            server.receive(PING, 1).unwrap();
        }
        server.send(PONG, &[0]).unwrap();
        server.send(PONG, &[0]).unwrap();
        server.flush().unwrap();
        server.traffic().rounds
    });
    for _ in 0..3 {
        client.send(PING, &[0]).unwrap();
    }
    client.receive(PONG, 1).unwrap();
    client.receive(PONG, 1).unwrap();
    assert_eq!(client.traffic().rounds, 1);
    assert_eq!(peer.join().unwrap(), 0);
}

#[test]
fn another_kind_or_length_is_refused_before_its_body_is_read() {
    for (kind, payload) in [(PONG, vec![0; 4]), (PING, vec![0; 5]), (PING, vec![0; 3])] {
        let (mut client, mut server) = pair();
        client.send(kind, &payload).unwrap();
        client.flush().unwrap();
        let error = server.receive(PING, 4).unwrap_err();
        assert!(matches!(error, ChannelError::Unexpected { expected: PING, expected_length: 4, .. }));
        assert!(server.receive(PING, 4).is_err(), "the channel has lost its place");
    }
}

#[test]
fn a_refusal_is_its_own_error() {
    for refusal in [Refusal::Version, Refusal::Model, Refusal::Busy, Refusal::Refused] {
        let (mut client, mut server) = pair();
        server.send(Kind::REFUSED, &[refusal.code()]).unwrap();
        server.flush().unwrap();
        let error = client.receive(PONG, 4).unwrap_err();
        assert!(matches!(error, ChannelError::Refused(got) if got == refusal));
    }
}

#[test]
fn a_body_can_be_read_in_parts_but_not_past_its_end() {
    let (mut client, mut server) = pair();
    client.send(PING, &[1, 2, 3]).unwrap();
    client.flush().unwrap();
    assert_eq!(server.receive_header().unwrap(), (PING, 3));
    let mut part = [0; 2];
    server.receive_body(&mut part).unwrap();
    assert_eq!(part, [1, 2]);
    assert!(matches!(server.receive_body(&mut part), Err(ChannelError::Malformed { .. })));
}

#[test]
fn a_lost_peer_and_a_silent_peer_are_told_apart() {
    let (mut client, server) = pair();
    client.set_stall_limit(Some(Duration::from_millis(20)));
    assert!(matches!(client.receive(PING, 1), Err(ChannelError::TimedOut)));
    drop(server);
    assert!(matches!(client.receive(PING, 1), Err(ChannelError::Disconnected)));
}

#[test]
fn large_sends_from_both_sides_do_not_wait_for_each_other() {
    let (mut client, mut server) = pair();
    let payload = vec![5; 20_000_000];
    client.send(PING, &payload).unwrap();
    server.send(PONG, &payload).unwrap();
    client.flush().unwrap();
    assert_eq!(client.receive(PONG, payload.len()).unwrap(), payload);
    assert_eq!(server.receive(PING, payload.len()).unwrap(), payload);
}

#[test]
fn a_shaped_pair_delays_by_latency_and_bandwidth() {
    let profile = NetworkProfile { bandwidth_bits_per_second: 80e6, round_trip_seconds: 0.04 };
    let (mut client, mut server) = shaped_pair(profile);
    let start = Instant::now();
    let peer = thread::spawn(move || {
        server.receive(PING, 500_000).unwrap();
        server.send(PONG, &[]).unwrap();
        server.flush().unwrap();
    });
    client.send(PING, &vec![0; 500_000]).unwrap();
    client.receive(PONG, 0).unwrap();
    let elapsed = start.elapsed().as_secs_f64();
    assert!((0.09..0.3).contains(&elapsed), "0.04 s of round trip and 0.05 s of transfer took {elapsed} s");
    peer.join().unwrap();
}

#[test]
fn a_record_keeps_kinds_and_lengths_of_both_directions() {
    let (client, mut server) = pair();
    let mut client = Recorded::new(client);
    client.send(PING, &[1, 2]).unwrap();
    server.send(PONG, &[1]).unwrap();
    server.flush().unwrap();
    client.receive(PONG, 1).unwrap();
    let sent = Entry { sent: true, kind: PING, length: 2 };
    let received = Entry { sent: false, kind: PONG, length: 1 };
    assert_eq!(client.transcript(), [sent, received]);
    assert_eq!(client.into_parts().0.traffic().rounds, 1);
}
