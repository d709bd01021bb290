//! Browsers: who is let in, what is inside a WebSocket, and what it costs to knock.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use lanner_net::web::{Door, File, Origins, Visitor};
use lanner_net::{
    Address, ClientTls, Limits, NetError, Pipe, ServerTls, TcpChannel, Transport, Trust, TunnelChannel,
};
use lanner_wire::{Channel, ChannelError};
use tungstenite::{Message, WebSocket};

use crate::common::{Authority, PING, PONG, accept_tcp, listener, pinned, self_signed, short_limits};

/// A WebSocket as a page has one.
struct Page {
    socket: WebSocket<TcpStream>,
    rest: Vec<u8>,
}

impl Pipe for Page {
    fn send(&mut self, bytes: &[u8]) -> Result<(), ChannelError> {
        self.socket.send(Message::binary(bytes.to_vec())).map_err(|_| ChannelError::Disconnected)
    }

    fn receive(&mut self, buffer: &mut [u8], patience: Duration) -> Result<usize, ChannelError> {
        self.socket.get_mut().set_read_timeout(Some(patience)).unwrap();
        while self.rest.is_empty() {
            match self.socket.read() {
                Ok(Message::Binary(bytes)) => self.rest = bytes.to_vec(),
                Ok(Message::Close(_)) | Err(_) => return Err(ChannelError::Disconnected),
                Ok(_) => {}
            }
        }
        let count = buffer.len().min(self.rest.len());
        buffer[..count].copy_from_slice(&self.rest[..count]);
        self.rest.drain(..count);
        Ok(count)
    }
}

fn door() -> Door {
    let origins = Origins { allowed: vec!["https://page.example".to_owned()], ..Origins::default() };
    let file = File { kind: "text/plain".to_owned(), content: (*b"a page").into() };
    Door::new(origins, HashMap::from([("/".to_owned(), file)]), None).unwrap()
}

/// Opens a WebSocket as a page of an origin does.
fn open(address: &Address, origin: &str) -> Result<Page, String> {
    let stream = TcpStream::connect(address.to_string()).unwrap();
    let request = tungstenite::http::Request::builder()
        .uri(format!("ws://{address}/lanner"))
        .header("Host", address.to_string())
        .header("Origin", origin)
        .header("Connection", "Upgrade")
        .header("Upgrade", "websocket")
        .header("Sec-WebSocket-Version", "13")
        .header("Sec-WebSocket-Key", tungstenite::handshake::client::generate_key())
        .body(())
        .unwrap();
    match tungstenite::client(request, stream) {
        Ok((socket, _)) => Ok(Page { socket, rest: Vec::new() }),
        Err(error) => Err(error.to_string()),
    }
}

/// What a server answers to bytes of a connection, and what the connection became.
fn asked(door: &Door, limits: Limits, bytes: &[u8]) -> (Result<Visitor, NetError>, String) {
    let (listener, address) = listener();
    let bytes = bytes.to_vec();
    let asking = thread::spawn(move || {
        let mut stream = TcpStream::connect(address.to_string()).unwrap();
        // A server that has read enough may close.
        let _ = stream.write_all(&bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    });
    let answered = door.answer(accept_tcp(&listener), limits);
    // A WebSocket that is dropped is closed.
    let answered = answered.map(|visitor| match visitor {
        Visitor::Line(line) => {
            drop(line);
            Visitor::Gone
        }
        Visitor::Gone => Visitor::Gone,
    });
    (answered, asking.join().unwrap())
}

/// Both ends of a session in a WebSocket.
fn connected(
    server: &ServerTls,
    client: &ClientTls,
) -> (Result<TunnelChannel<Page>, NetError>, Result<TcpChannel, NetError>) {
    let (listener, address) = listener();
    let client = client.clone();
    let connecting = thread::spawn(move || {
        let page = open(&address, "https://page.example").unwrap();
        TunnelChannel::connect(page, &address, &client, Limits::default())
    });
    let Visitor::Line(line) = door().answer(accept_tcp(&listener), Limits::default()).unwrap() else {
        unreachable!("a WebSocket was asked for");
    };
    let accepted = TcpChannel::accept_web(*line, server, Limits::default());
    (connecting.join().unwrap(), accepted)
}

#[test]
fn messages_of_all_lengths_cross_a_web_socket_under_tls_both_ways() {
    let server = self_signed();
    let (client, accepted) = connected(&server, &pinned(&server));
    let (mut client, mut accepted) = (client.unwrap(), accepted.unwrap());
    assert_eq!(client.peer_certificate().unwrap().fingerprint, server.fingerprint());
    assert!(client.binding().is_some());
    assert_eq!(client.binding(), accepted.binding());
    // Up to several messages of the WebSocket each.
    let lengths = [0, 1, 125, 126, 65_535, 65_536, 300_000, 2_500_000];
    let content =
        |length: usize, salt: usize| (0..length).map(|i| ((i * 31 + salt) % 251) as u8).collect::<Vec<_>>();
    let serving = thread::spawn(move || {
        for length in lengths {
            assert_eq!(accepted.receive(PING, length).unwrap(), content(length, 1));
            accepted.send(PONG, &content(length, 2)).unwrap();
        }
        accepted.flush().unwrap();
        accepted.close(Duration::from_secs(2)).unwrap();
        accepted.traffic()
    });
    for length in lengths {
        client.send(PING, &content(length, 1)).unwrap();
        assert_eq!(client.receive(PONG, length).unwrap(), content(length, 2));
    }
    drop(client);
    let traffic = serving.join().unwrap();
    let sum = lengths.iter().sum::<usize>() as u64;
    // Masks, headers and records are a few in a thousand.
    for bytes in [traffic.sent, traffic.received] {
        assert!((sum..sum + sum / 100 + 4096).contains(&bytes), "{bytes} of {sum}");
    }
}

#[test]
fn a_pin_means_the_same_in_a_web_socket() {
    let (server, other) = (self_signed(), self_signed());
    let (client, accepted) =
        connected(&server, &ClientTls::new(&Trust::Pin(other.fingerprint()), None).unwrap());
    assert!(matches!(client, Err(NetError::WrongPin { got, .. }) if got == server.fingerprint()));
    assert!(accepted.is_err());
}

#[test]
fn parties_that_both_write_much_do_not_wait_for_each_other() {
    const MUCH: usize = 20 << 20;
    let server = self_signed();
    let (client, accepted) = connected(&server, &pinned(&server));
    let (mut client, mut accepted) = (client.unwrap(), accepted.unwrap());
    accepted.allow_ahead(MUCH + 4096);
    let serving = thread::spawn(move || {
        accepted.send(PONG, &vec![2; MUCH]).unwrap();
        accepted.flush().unwrap();
        accepted.receive(PING, MUCH).unwrap()
    });
    client.send(PING, &vec![1; MUCH]).unwrap();
    assert_eq!(client.receive(PONG, MUCH).unwrap(), vec![2; MUCH]);
    assert_eq!(serving.join().unwrap(), vec![1; MUCH]);
}

#[test]
fn pages_of_other_origins_are_turned_away_before_the_upgrade() {
    let (listener, address) = listener();
    for origin in ["https://evil.example", "null", "http://page.example"] {
        let at = address.clone();
        let opening = thread::spawn(move || open(&at, origin).map(drop));
        let answered = door().answer(accept_tcp(&listener), Limits::default());
        assert!(matches!(answered, Err(NetError::Web(_))), "{origin}");
        assert!(opening.join().unwrap().unwrap_err().contains("403"), "{origin}");
    }
    let at = address.clone();
    let own = thread::spawn(move || open(&at, &format!("http://{at}")).map(drop));
    assert!(matches!(door().answer(accept_tcp(&listener), Limits::default()), Ok(Visitor::Line(_))));
    own.join().unwrap().unwrap();
}

#[test]
fn requests_get_a_file_or_are_told_why_not() {
    let host = "Host: 127.0.0.1\r\n";
    let cases: [(String, &str, bool); 7] = [
        (format!("GET / HTTP/1.1\r\n{host}\r\n"), "200 OK", true),
        (format!("GET /other HTTP/1.1\r\n{host}\r\n"), "404 Not Found", true),
        (format!("POST / HTTP/1.1\r\n{host}\r\n"), "400 Bad Request", false),
        ("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n".to_owned(), "421 Misdirected Request", false),
        (
            format!(
                "GET /elsewhere HTTP/1.1\r\n{host}Upgrade: websocket\r\nOrigin: http://127.0.0.1\r\n\r\n"
            ),
            "404 Not Found",
            false,
        ),
        (format!("GET /lanner HTTP/1.1\r\n{host}Upgrade: websocket\r\n\r\n"), "403 Forbidden", false),
        (
            format!("GET /lanner HTTP/1.1\r\n{host}Upgrade: websocket\r\nOrigin: http://127.0.0.1\r\n\r\n"),
            "400 Bad Request",
            false,
        ),
    ];
    for (request, status, fine) in cases {
        let (answered, answer) = asked(&door(), Limits::default(), request.as_bytes());
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{request}: {answer}");
        assert_eq!(answered.is_ok(), fine, "{request}");
        for header in [
            "Cross-Origin-Opener-Policy: same-origin",
            "Cross-Origin-Embedder-Policy: require-corp",
            "nosniff",
        ] {
            assert!(answer.contains(header), "{answer}");
        }
        assert_eq!(answer.ends_with("a page"), request.starts_with("GET / HTTP") && fine, "{request}");
    }
}

#[test]
fn heads_are_bounded_in_bytes_and_in_time() {
    let long = format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {}", "x".repeat(20_000));
    let (answered, _) = asked(&door(), Limits::default(), long.as_bytes());
    assert!(matches!(answered, Err(NetError::Web(_))));
    let many = format!("GET / HTTP/1.1\r\nHost: localhost\r\n{}\r\n", "a: b\r\n".repeat(500));
    assert!(matches!(asked(&door(), Limits::default(), many.as_bytes()).0, Err(NetError::Web(_))));
    let began = Instant::now();
    let (answered, _) = asked(&door(), short_limits(), b"GET / HTTP/1.1\r\nHost: loc");
    assert!(matches!(answered, Err(NetError::Channel(ChannelError::TimedOut))));
    assert!(began.elapsed() < Duration::from_secs(3));
}

#[test]
fn the_first_bytes_tell_browsers_from_clients() {
    let (listener, address) = listener();
    let cases: [(&[u8], bool); 6] = [
        (b"GET / HTTP/1.1\r\n", true),
        (b"HEAD / HTTP/1.1\r\n", false),
        (b"\x16\x03\x01\x02\x00\x01\x00", false),
        // A Hello without TLS.
        (b"-\0\0\0\x01\0lanner\r\n", false),
        (b"GETS", false),
        (b"POST / HTTP/1.1\r\n", false),
    ];
    for (bytes, wanted) in cases {
        let mut client = TcpStream::connect(address.to_string()).unwrap();
        client.write_all(bytes).unwrap();
        assert_eq!(Door::is_wanted(&accept_tcp(&listener), short_limits()).unwrap(), wanted, "{bytes:?}");
    }
    for beginning in [&b""[..], b"GE"] {
        let mut client = TcpStream::connect(address.to_string()).unwrap();
        client.write_all(beginning).unwrap();
        let waited = Door::is_wanted(&accept_tcp(&listener), short_limits());
        assert!(matches!(waited, Err(NetError::Channel(ChannelError::TimedOut))), "{beginning:?}");
    }
}

/// What a server without TLS inside makes of frames that a peer writes after the upgrade.
fn heard(frames: &[u8]) -> ChannelError {
    let (listener, address) = listener();
    let frames = frames.to_vec();
    let writing = thread::spawn(move || {
        let mut page = open(&address, "https://page.example").unwrap();
        let stream = page.socket.get_mut();
        let _ = stream.write_all(&frames);
        let _ = stream.shutdown(Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let Visitor::Line(line) = door().answer(accept_tcp(&listener), Limits::default()).unwrap() else {
        unreachable!("a WebSocket was asked for");
    };
    let mut channel = TcpChannel::insecure_plaintext_web(*line, short_limits()).unwrap();
    let error = channel.receive_header().unwrap_err();
    drop(channel);
    writing.join().unwrap();
    error
}

#[test]
fn frames_that_no_page_sends_end_the_session() {
    let masked = |code: u8, length: &[u8], body: &[u8]| [&[code], length, &[0; 4], body].concat();
    let cases: [(&str, Vec<u8>); 8] = [
        ("a text", masked(0x81, &[0x82], b"hi")),
        ("a frame that is not masked", [&[0x82, 2][..], b"hi"].concat()),
        ("a frame of 2 MiB", masked(0x82, &[0xff, 0, 0, 0, 0, 0, 0x20, 0, 0], b"")),
        ("a frame of 2^63 bytes", masked(0x82, &[0xff, 0x80, 0, 0, 0, 0, 0, 0, 0], b"")),
        ("an unknown code", masked(0x83, &[0x82], b"hi")),
        ("reserved bits", masked(0xf2, &[0x82], b"hi")),
        ("what continues nothing", masked(0x80, &[0x82], b"hi")),
        ("a long ping", masked(0x89, &[0xfe, 0x01, 0x00], &[0; 256])),
    ];
    for (what, frames) in cases {
        let error = heard(&frames);
        assert!(matches!(error, ChannelError::Transport(_)), "{what}: {error:?}");
    }
    // Pings mean nothing, and the end is the end.
    assert!(matches!(heard(&masked(0x89, &[0x82], b"hi")), ChannelError::Disconnected));
    assert!(matches!(heard(&masked(0x88, &[0x80], b"")), ChannelError::Disconnected));
    // Fragments of more than a message may have.
    let mut fragments = masked(0x02, &[0xff, 0, 0, 0, 0, 0, 0x08, 0, 0], &vec![0; 512 << 10]);
    for _ in 0..2 {
        fragments.extend(masked(0x00, &[0xff, 0, 0, 0, 0, 0, 0x08, 0, 0], &vec![0; 512 << 10]));
    }
    assert!(matches!(heard(&fragments), ChannelError::Transport(_) | ChannelError::Unexpected { .. }));
}

#[test]
fn a_certificate_that_browsers_know_goes_around_all_of_it() {
    let authority = Authority::new();
    drop(authority.issue("localhost"));
    let folder = authority.file().parent().unwrap().to_owned();
    let (chain, key) = (folder.join("localhost.crt"), folder.join("localhost.key"));
    let file = File { kind: "text/plain".to_owned(), content: (*b"a page").into() };
    let files = HashMap::from([("/".to_owned(), file)]);
    let door = Door::new(Origins::default(), files, Some((&chain, &key))).unwrap();
    assert!(door.is_secured());
    let (listener, address) = listener();
    let roots = rustls_roots(&authority);
    let asking = thread::spawn(move || {
        let name = "localhost".try_into().unwrap();
        let mut tls = rustls::ClientConnection::new(roots, name).unwrap();
        let mut stream = TcpStream::connect(address.to_string()).unwrap();
        let mut stream = rustls::Stream::new(&mut tls, &mut stream);
        stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    });
    assert!(matches!(door.answer(accept_tcp(&listener), Limits::default()), Ok(Visitor::Gone)));
    assert!(asking.join().unwrap().ends_with("a page"));
}

fn rustls_roots(authority: &Authority) -> std::sync::Arc<rustls::ClientConfig> {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(authority.file()).unwrap()).unwrap();
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider);
    let builder = builder.with_protocol_versions(&[&rustls::version::TLS13]).unwrap();
    std::sync::Arc::new(builder.with_root_certificates(roots).with_no_client_auth())
}
