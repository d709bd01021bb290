//! A child that `fork` made has its parent's sockets, and leaves them as they are.
#![allow(clippy::needless_pass_by_value)]

use std::io::ErrorKind;
use std::net::TcpStream;
use std::time::Duration;

use lanner_net::{Limits, NetworkProfile, Relay, TcpChannel, Transport};
use lanner_testkit::{alone, in_a_fork};
use lanner_wire::{Channel, ChannelError};

use crate::common::{PING, PONG, accept_tcp, listener, plaintext_pair, short_limits, tls_pair};

fn is_refused<T>(result: Result<T, ChannelError>) -> bool {
    matches!(result, Err(ChannelError::OtherProcess(other)) if other.to_string().starts_with("the connection belongs to"))
}

/// All that a child may try with a channel, and the end of it.
fn tries_everything(mut channel: TcpChannel) -> bool {
    let sent = is_refused(channel.send(PING, &vec![1; 1 << 20])) && channel.send(PING, b"x").is_ok();
    let received = is_refused(channel.flush()) && is_refused(channel.receive_header());
    let divided = channel.divisible().is_none_or(|divisible| is_refused(divisible.peek_header()));
    let _ = channel.close(Duration::from_millis(10));
    drop(channel);
    sent && received && divided
}

/// The parties' next messages are those that the parent sends.
fn goes_on(client: &mut TcpChannel, server: &mut TcpChannel) {
    for (kind, payload) in [(PING, b"one"), (PONG, b"two")] {
        client.send(kind, payload).unwrap();
        client.flush().unwrap();
        let mut got = [0; 3];
        server.receive_into(kind, &mut got).unwrap();
        assert_eq!(&got, payload);
        server.send(kind, &got).unwrap();
        server.flush().unwrap();
        client.receive_into(kind, &mut got).unwrap();
    }
}

#[test]
fn a_child_neither_writes_nor_reads_nor_ends_a_connection() {
    alone(|| {
        for (mut client, mut server) in [plaintext_pair(Limits::default()), tls_pair(Limits::default())] {
            let abort = client.abort_handle().unwrap();
            // What is queued is the parent's to send, and what has come is the parent's to read.
            client.send(PING, b"zero").unwrap();
            server.send(PONG, b"came").unwrap();
            server.flush().unwrap();
            let mut channel = Some(client);
            assert!(in_a_fork(|| {
                abort.abort();
                tries_everything(channel.take().unwrap())
            }));
            let mut client = channel.unwrap();
            let mut got = [0; 4];
            client.receive_into(PONG, &mut got).unwrap();
            server.receive_into(PING, &mut got).unwrap();
            assert_eq!(&got, b"zero");
            goes_on(&mut client, &mut server);
            let received = server.traffic().received;
            assert_eq!(received, client.traffic().sent, "every byte was the parent's");
        }
    });
}

#[test]
fn a_connection_ends_with_its_owner_while_a_child_has_the_socket() {
    alone(|| {
        for (client, mut server) in [plaintext_pair(short_limits()), tls_pair(short_limits())] {
            let owner = client;
            let ends_in_time = std::thread::scope(|scope| {
                let child = scope.spawn(|| {
                    in_a_fork(|| {
                        std::thread::sleep(Duration::from_secs(1));
                        true
                    })
                });
                // Time for the child, which has a copy of the socket, to begin.
                std::thread::sleep(Duration::from_millis(100));
                drop(owner);
                let mut got = [0];
                // Silence would end in a time-out.
                let ended = matches!(server.receive_into(PING, &mut got), Err(ChannelError::Disconnected));
                child.join().unwrap() && ended
            });
            assert!(ends_in_time);
        }
    });
}

#[test]
fn a_port_is_closed_with_its_listener_while_a_child_has_the_socket() {
    alone(|| {
        let (listener, address) = listener();
        let address = address.to_string();
        std::thread::scope(|scope| {
            let child = scope.spawn(|| {
                in_a_fork(|| {
                    std::thread::sleep(Duration::from_secs(1));
                    true
                })
            });
            std::thread::sleep(Duration::from_millis(100));
            drop(listener);
            assert_eq!(TcpStream::connect(&address).unwrap_err().kind(), ErrorKind::ConnectionRefused);
            assert!(child.join().unwrap());
        });
    });
}

#[test]
fn a_listener_and_a_relay_that_a_child_drops_go_on() {
    alone(|| {
        let (listener, address) = listener();
        let relay = Relay::start(&address, NetworkProfile::named("lan").unwrap()).unwrap();
        let (mut inherited, mut relayed) = (Some(listener), Some(relay));
        assert!(in_a_fork(|| {
            let accepted = inherited.as_ref().unwrap().accept(Duration::ZERO);
            let refused = matches!(accepted, Err(ChannelError::OtherProcess(_)));
            drop((inherited.take(), relayed.take()));
            refused
        }));
        let (listener, relay) = (inherited.unwrap(), relayed.unwrap());
        let connected = TcpStream::connect(relay.address()).unwrap();
        accept_tcp(&listener);
        drop(connected);
    });
}
