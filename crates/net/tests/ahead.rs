//! How much a peer may send that is not read.

use std::io::Write;
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use crate::common::{PING, PONG, accept_tcp, at_once, listener, plaintext_pair, short_limits, tls_pair};
use lanner_net::{Limits, MOST_KEPT, TcpChannel, abreast};
use lanner_wire::{Channel, ChannelError};

const MIB: usize = 1 << 20;

/// Has a channel write to a peer that sends and does not read, until it gives up. Returns the bytes that it took from the peer.
fn taken_from_a_flood(allowed: Option<usize>) -> u64 {
    let (listener, address) = listener();
    let mut channel = TcpChannel::connect_insecure_plaintext(&address, short_limits()).unwrap();
    let mut flood = accept_tcp(&listener);
    flood.set_nonblocking(false).unwrap();
    flood.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
    let flooding = thread::spawn(move || {
        let bytes = vec![7; MIB];
        while flood.write_all(&bytes).is_ok() {}
        flood
    });
    if let Some(allowed) = allowed {
        channel.allow_ahead(allowed);
    }
    let message = vec![0; MIB];
    let error = (0..100).try_for_each(|_| channel.send(PING, &message)).unwrap_err();
    assert!(matches!(error, ChannelError::TimedOut), "{error}");
    drop(flooding.join().unwrap());
    channel.traffic().received
}

#[test]
fn a_peer_that_is_not_known_yet_has_64_kib_kept() {
    // That is the least.
    at_once([None, Some(0)], |allowed| assert_eq!(taken_from_a_flood(allowed), 64 << 10));
}

#[test]
fn a_peer_may_be_ahead_as_far_as_it_is_allowed_and_no_farther() {
    at_once([65 << 10, 300_000, 5 * MIB + 1], |allowed| {
        assert_eq!(taken_from_a_flood(Some(allowed)), allowed as u64);
    });
}

/// Two parties send so much before either reads, on a connection whose system buffers hold less; whether both could.
fn cross(pair: (TcpChannel, TcpChannel), sent: [usize; 2], allowed: usize) -> bool {
    let (mut one, mut other) = pair;
    let exchange = |channel: &mut TcpChannel, sends: usize, receives: usize| {
        channel.allow_ahead(allowed);
        channel.send(PING, &vec![1; sends])?;
        channel.flush()?;
        assert_eq!(channel.receive(PING, receives)?, vec![1; receives]);
        // Nothing is lost or left.
        channel.send(PONG, &[2])?;
        channel.receive(PONG, 1)
    };
    thread::scope(|scope| {
        let one = scope.spawn(move || exchange(&mut one, sent[0], sent[1]).is_ok());
        exchange(&mut other, sent[1], sent[0]).is_ok() & one.join().unwrap()
    })
}

#[test]
fn two_that_both_write_go_on_where_each_has_room_for_what_the_one_that_sends_less_sends() {
    let mut limits = Limits::default();
    limits.stall = Duration::from_secs(2);
    for sent in [[32 * MIB, 14 * MIB], [16 * MIB, 16 * MIB]] {
        let fewer = sent[0].min(sent[1]);
        // With the records of TLS, 22 bytes for 16 KiB.
        let allowed = fewer + fewer / 32 + (64 << 10);
        assert!(cross(plaintext_pair(limits), sent, allowed));
        assert!(cross(tls_pair(limits), sent, allowed));
    }
    limits.stall = Duration::from_millis(300);
    assert!(!cross(plaintext_pair(limits), [16 * MIB; 2], 0), "it takes room");
}

#[test]
fn lanes_go_on_whatever_is_kept_for_them() {
    // Every lane of both parties writes before it reads; the peer keeps next to nothing for lanes, and all lanes' bytes on the connection.
    const LANES: usize = 4;
    for most_kept in [0, MIB, MOST_KEPT] {
        let (one, other) = plaintext_pair(Limits::default());
        let talk = |mut channel: TcpChannel| {
            channel.allow_ahead(LANES * (4 * MIB + (64 << 10)));
            let exchange = |lane: &mut dyn Channel| {
                lane.send(PING, &vec![3; 4 * MIB])?;
                lane.flush()?;
                lane.receive(PING, 4 * MIB).map(|bytes| bytes.len())
            };
            let lanes = vec![exchange; LANES - 1];
            let made = abreast(channel.divisible().unwrap(), most_kept, lanes, exchange);
            let (lanes, last): (Vec<usize>, Result<usize, ChannelError>) = made.unwrap();
            assert_eq!(lanes, [4 * MIB; LANES - 1]);
            assert_eq!(last.unwrap(), 4 * MIB);
            channel.send(PONG, &[1]).unwrap();
            channel.receive(PONG, 1).unwrap();
        };
        thread::scope(|scope| {
            scope.spawn(|| talk(one));
            talk(other);
        });
    }
}

#[test]
fn a_lane_is_kept_no_more_than_is_allowed() {
    // A peer that sends on one lane only, which nobody reads, while the other lane waits for it.
    let (listener, address) = listener();
    let mut channel = TcpChannel::connect_insecure_plaintext(&address, short_limits()).unwrap();
    let mut flood: TcpStream = accept_tcp(&listener);
    flood.set_nonblocking(false).unwrap();
    flood.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
    let flooding = thread::spawn(move || {
        let mut frame = vec![0; 6 + (1 << 16)];
        frame[..6].copy_from_slice(&[0, 0, 1, 0, 0, 1]);
        while flood.write_all(&frame).is_ok() {}
        flood
    });
    let sleeps = |_: &mut dyn Channel| {
        thread::sleep(Duration::from_millis(600));
        Ok(())
    };
    let waits = |lane: &mut dyn Channel| lane.receive(PONG, 1).map(drop);
    let made = abreast(channel.divisible().unwrap(), 2 * MIB, vec![sleeps], waits);
    assert!(
        made.is_err() || made.is_ok_and(|(_, waited): (Vec<()>, Result<(), ChannelError>)| waited.is_err())
    );
    drop(flooding.join().unwrap());
    let taken = channel.traffic().received as usize;
    assert!((2 * MIB..3 * MIB).contains(&taken), "{taken}");
}
