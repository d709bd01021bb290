//! A client behind a real HTTP proxy, on loopback.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::thread::{self, JoinHandle};

use crate::common::{PING, PONG, accept_tcp, listener, pinned, self_signed, short_limits};
use lanner_net::{Address, NetError, Proxy, TcpChannel};
use lanner_wire::Channel;

/// What a client asked of a proxy that answers one connection: with `answer`, and where that is a success by connecting it to `server`.
fn proxy(answer: &'static str, server: Option<Address>) -> (Address, JoinHandle<String>) {
    let (listener, address) = listener();
    let serving = thread::spawn(move || {
        let mut client = accept_tcp(&listener);
        client.set_nonblocking(false).unwrap();
        let mut asked = Vec::new();
        while !asked.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            client.read_exact(&mut byte).unwrap();
            asked.push(byte[0]);
        }
        client.write_all(answer.as_bytes()).unwrap();
        if let Some(server) = server {
            let server = TcpStream::connect(server.to_string()).unwrap();
            let (mut up, mut down) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            let upwards = thread::spawn(move || io::copy(&mut up, &mut down));
            let _ = io::copy(&mut &server, &mut client);
            let _ = upwards.join();
        }
        String::from_utf8(asked).unwrap()
    });
    (address, serving)
}

#[test]
fn tls_goes_through_a_proxy_and_its_server_is_the_pinned_one() {
    let (to_server, server) = listener();
    let identity = self_signed();
    let client = pinned(&identity);
    let (address, serving) =
        proxy("HTTP/1.1 200 Connection established\r\nVia: a\r\n\r\n", Some(server.clone()));
    let through: Proxy = format!("http://ann:secret@{address}").parse().unwrap();
    let name = server.clone();
    let connecting = thread::spawn(move || {
        let mut channel =
            TcpChannel::connect_through(Some(&through), &name, &client, short_limits()).unwrap();
        channel.send(PING, b"x").unwrap();
        channel.receive(PONG, 1).unwrap()
    });
    let mut accepted = TcpChannel::accept(accept_tcp(&to_server), &identity, short_limits()).unwrap();
    assert_eq!(accepted.receive(PING, 1).unwrap(), b"x");
    accepted.send(PONG, b"y").unwrap();
    accepted.flush().unwrap();
    assert_eq!(connecting.join().unwrap(), b"y");
    drop(accepted);
    let asked = serving.join().unwrap();
    assert!(asked.starts_with(&format!("CONNECT {server} HTTP/1.1\r\nHost: {server}\r\n")), "{asked}");
    assert!(asked.contains("\r\nProxy-Authorization: Basic YW5uOnNlY3JldA==\r\n"), "{asked}");
}

#[test]
fn a_proxy_that_does_not_let_through_is_named_with_its_reason() {
    let server: Address = "models.example:443".parse().unwrap();
    let client = pinned(&self_signed());
    let long: &'static str = Box::leak("x".repeat(20_000).into_boxed_str());
    for (answer, user, expected) in [
        ("HTTP/1.1 403 Forbidden\r\n\r\n", "", "403 Forbidden"),
        ("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "", "wants a name and a password"),
        ("HTTP/1.1 407 No\r\n\r\n", "ann:secret@", "does not accept the name and password"),
        ("SSH-2.0-OpenSSH\r\n\r\n", "", "not answer as an HTTP proxy"),
        ("HTTP/1.1 200", "", "closed the connection"),
        (long, "", "has no end"),
    ] {
        let (address, serving) = proxy(answer, None);
        let through: Proxy = format!("{user}{address}").parse().unwrap();
        let error =
            TcpChannel::connect_through(Some(&through), &server, &client, short_limits()).err().unwrap();
        assert!(matches!(error, NetError::Proxy { .. }), "{error}");
        let told = error.to_string();
        assert!(
            told.contains(expected) && told.contains(&address.to_string()) && !told.contains("secret"),
            "{told}"
        );
        let _ = serving.join();
    }
}

#[test]
fn a_proxy_that_is_not_there_or_silent_is_named() {
    let server: Address = "models.example:443".parse().unwrap();
    let client = pinned(&self_signed());
    let (absent, address) = listener();
    drop(absent);
    let (silent, of_silent) = listener();
    let mut limits = short_limits();
    limits.connect = std::time::Duration::from_millis(300);
    for address in [address, of_silent] {
        let through: Proxy = address.to_string().parse().unwrap();
        let error = TcpChannel::connect_through(Some(&through), &server, &client, limits).err().unwrap();
        assert!(matches!(error, NetError::Proxy { .. }), "{error}");
        assert!(error.to_string().contains(&address.to_string()), "{error}");
    }
    drop(silent);
}
