//! Channels over TLS on loopback: trust, traffic, both directions at once.

use std::io::Write;
use std::net::TcpStream;
use std::thread;
use std::time::Instant;

use crate::common::{
    Authority, PING, PONG, accept_tcp, connect, listener, pinned, plaintext_pair, self_signed, tls_pair,
};
use lanner_net::{
    ClientTls, Fingerprint, Identity, Limits, NetError, ServerTls, StateDirectory, TcpChannel, Transport,
    Trust,
};
use lanner_wire::{Channel, ChannelError, Refusal};

#[test]
fn messages_pass_and_bytes_are_counted_on_tcp() {
    let (mut client, mut server) = tls_pair(Limits::default());
    let handshake = client.traffic();
    assert!(handshake.sent > 200 && handshake.received > 500, "{handshake:?}");
    client.send(PING, &[1; 1000]).unwrap();
    client.flush().unwrap();
    assert_eq!(server.receive(PING, 1000).unwrap(), [1; 1000]);
    server.send(PONG, b"yes").unwrap();
    server.flush().unwrap();
    assert_eq!(client.receive(PONG, 3).unwrap(), b"yes");
    let traffic = client.traffic().since(handshake);
    // One record adds 22 bytes: its header, the inner type, the tag.
    assert_eq!((traffic.sent, traffic.received, traffic.rounds), (1000 + 6 + 22, 3 + 6 + 22, 1));
    assert_eq!(client.traffic().sent, server.traffic().received);
    assert_eq!(client.traffic().received, server.traffic().sent);
}

#[test]
fn messages_of_every_size_arrive_whole() {
    let (mut client, mut server) = tls_pair(Limits::default());
    let sizes = [0, 1, 16_383, 16_384, 262_137, 262_138, 262_139, 262_144, 262_145, 800_000, 3_000_001];
    let payload = |size: usize| (0..size).map(|i| (i * 31 + size) as u8).collect::<Vec<_>>();
    let sending = thread::spawn(move || {
        for size in sizes {
            client.send(PING, &payload(size)).unwrap();
        }
        client.flush().unwrap();
        client
    });
    for size in sizes {
        assert!(server.receive(PING, size).unwrap() == payload(size), "{size}");
    }
    sending.join().unwrap();
}

#[test]
fn both_sides_can_send_fifty_megabytes_before_they_receive() {
    for (mut client, mut server) in [tls_pair(Limits::default()), plaintext_pair(Limits::default())] {
        let payload: Vec<u8> = (0..50_000_000_u32).map(|i| (i >> 3) as u8).collect();
        // As a session does, whose plan says what the peer sends before it hears anything.
        client.allow_ahead(64 << 20);
        server.allow_ahead(64 << 20);
        let expected = payload.clone();
        let serving = thread::spawn(move || {
            server.send(PONG, &payload).unwrap();
            server.flush().unwrap();
            server.receive(PING, payload.len()).unwrap() == payload
        });
        client.send(PING, &expected).unwrap();
        client.flush().unwrap();
        assert!(client.receive(PONG, expected.len()).unwrap() == expected);
        assert!(serving.join().unwrap());
    }
}

#[test]
fn both_ends_derive_the_same_binding_and_each_connection_its_own() {
    let (client, server) = tls_pair(Limits::default());
    let binding = client.binding().unwrap();
    assert_eq!(server.binding(), Some(binding));
    assert_ne!(tls_pair(Limits::default()).0.binding(), Some(binding));
    assert_eq!(plaintext_pair(Limits::default()).0.binding(), None);
}

#[test]
fn a_wrong_pin_names_both_fingerprints() {
    let server = self_signed();
    let other = Fingerprint::of(b"another certificate");
    let client = ClientTls::new(&Trust::Pin(other), None).unwrap();
    let (connected, accepted) = connect(&server, &client, Limits::default());
    let error = connected.err().unwrap();
    assert!(matches!(error, NetError::WrongPin { .. }), "{error}");
    assert!(error.to_string().contains(&other.to_string()));
    assert!(error.to_string().contains(&server.fingerprint().to_string()));
    assert!(accepted.is_err(), "the server learns that the client went");
}

#[test]
fn a_certificate_of_a_given_authority_is_accepted_for_its_name_alone() {
    let authority = Authority::new();
    let client = ClientTls::new(&Trust::Authorities(authority.file()), None).unwrap();
    let right = ServerTls::new(authority.issue("127.0.0.1"), None).unwrap();
    let (connected, accepted) = connect(&right, &client, Limits::default());
    assert!(connected.is_ok() && accepted.is_ok());
    let elsewhere = ServerTls::new(authority.issue("example.org"), None).unwrap();
    let error = connect(&elsewhere, &client, Limits::default()).0.err().unwrap();
    assert!(matches!(error, NetError::Certificate(_)), "{error}");
}

#[test]
fn a_certificate_of_another_authority_is_refused() {
    let client = ClientTls::new(&Trust::Authorities(Authority::new().file()), None).unwrap();
    for server in [self_signed(), ServerTls::new(Authority::new().issue("127.0.0.1"), None).unwrap()] {
        let error = connect(&server, &client, Limits::default()).0.err().unwrap();
        assert!(matches!(error, NetError::Certificate(_)), "{error}");
    }
}

#[test]
fn mutual_tls_admits_only_clients_of_its_authority() {
    let authority = Authority::new();
    let server = ServerTls::new(authority.issue("127.0.0.1"), Some(&authority.file())).unwrap();
    let trust = Trust::Pin(server.fingerprint());
    let attempt = |identity: Option<Identity>| {
        let client = ClientTls::new(&trust, identity).unwrap();
        let (connected, accepted) = connect(&server, &client, Limits::default());
        let accepted = accepted.and_then(|mut channel| {
            channel.send(PONG, &[1])?;
            Ok(channel.flush()?)
        });
        // The client ends its handshake first: it learns from the next message.
        (connected.and_then(|mut channel| Ok(channel.receive(PONG, 1)?)), accepted)
    };
    // The alert may come before the client has connected, or behind.
    let is_told = |error: &NetError| {
        matches!(error, NetError::OwnCertificate(_) | NetError::Channel(ChannelError::OwnCertificate(_)))
    };
    let (answer, accepted) = attempt(Some(authority.issue("client")));
    assert!(accepted.is_ok() && answer.is_ok());
    let (answer, accepted) = attempt(None);
    assert!(matches!(accepted.err().unwrap(), NetError::Certificate(_)));
    let answer = answer.unwrap_err();
    assert!(is_told(&answer), "{answer}");
    let (answer, accepted) = attempt(Some(Authority::new().issue("client")));
    assert!(matches!(accepted.err().unwrap(), NetError::Certificate(_)));
    let answer = answer.unwrap_err();
    assert!(is_told(&answer), "{answer}");
}

#[test]
fn a_certificate_outside_its_term_is_refused_with_its_date_where_it_is_not_pinned() {
    let authority = Authority::new();
    let identity = || authority.issue_within("127.0.0.1", (2020, 1, 2), (2021, 2, 1));
    assert!(identity().outside_term().unwrap().contains("2021-02-01"));
    assert_eq!(authority.issue("host").outside_term(), None);
    let server = ServerTls::new(identity(), None).unwrap();
    let checking = ClientTls::new(&Trust::Authorities(authority.file()), None).unwrap();
    let error = connect(&server, &checking, Limits::default()).0.err().unwrap();
    assert!(matches!(&error, NetError::Term(what) if what.contains("2021-02-01")), "{error}");
    let pinning = ClientTls::new(&Trust::Pin(server.fingerprint()), None).unwrap();
    assert!(connect(&server, &pinning, Limits::default()).0.is_ok());
}

#[test]
fn a_key_of_another_certificate_is_refused_at_once() {
    // Who has a pinned certificate, which is public, has not its key.
    let (left, right) = (Authority::new(), Authority::new());
    let directory = tempfile::tempdir().unwrap();
    let copy = |from: &Authority, what: &str| {
        from.issue("host");
        let source = from.file().with_file_name(format!("host.{what}"));
        let target = directory.path().join(what);
        std::fs::copy(source, &target).unwrap();
        target
    };
    let (certificate, key) = (copy(&left, "crt"), copy(&right, "key"));
    let Err(NetError::Identity { path, what, .. }) = Identity::from_files(&certificate, &key) else {
        panic!()
    };
    assert_eq!(path, key);
    assert!(what.contains(certificate.to_str().unwrap()), "{what}");
}

#[test]
fn texts_in_pem_are_an_identity_and_no_error_repeats_the_key() {
    let [[certificate, key], [_, other]] = [Authority::new(), Authority::new()].map(|authority| {
        authority.issue("host");
        ["crt", "key"].map(|what| {
            std::fs::read_to_string(authority.file().with_file_name(format!("host.{what}"))).unwrap()
        })
    });
    assert!(Identity::from_pem(&certificate, &key).is_ok());
    let locked = key.replace("PRIVATE", "ENCRYPTED PRIVATE");
    let secret = key.lines().nth(1).unwrap();
    for (certificate, key, said) in [
        (certificate.as_str(), other.as_str(), "key: this is not the key of certificate"),
        ("", &key, "certificate: has no certificate"),
        (&key, &key, "certificate: has no certificate"),
        (&certificate, "", "key: has no private key"),
        (&certificate, &certificate, "key: has no private key"),
        (&certificate, &locked, "without a password"),
        (&certificate, &key.replace('\n', ""), "key: is not in PEM form"),
        (&certificate, &key[..key.len() / 2], "key: is not in PEM form"),
        (&certificate, &key.replace('M', "*"), "key: is not in PEM form"),
    ] {
        let error = Identity::from_pem(certificate, key).err().unwrap().to_string();
        assert!(error.contains(said), "{error}");
        assert!(!error.contains(&secret[..8]), "{error}");
        // Nor its bytes one by one.
        assert!(!error.contains(", 77, "), "{error}");
    }
}

#[test]
fn a_certificate_of_version_1_is_refused_with_what_to_do() {
    // As `openssl x509 -req` writes it without extensions; its key protects nothing.
    const CERTIFICATE: &str = "\
-----BEGIN CERTIFICATE-----
MIIBGjCBwQIUYCA1Q1wdc9xDc6NFVYh8rOakSkkwCgYIKoZIzj0EAwIwDzENMAsG
A1UEAwwEdGVzdDAgFw0yNjExMjcxNzMwNDFaGA8yMTI2MTEwMzE3MzA0MVowDzEN
MAsGA1UEAwwEdGVzdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABLb3NSGVj3jp
0zgQGFpMcvXiY4o7qsraHGe4i0v/0sNepIifj8k5ctUKU2WIqw84I+hWp+hssM/H
9WXUxwjOZAQwCgYIKoZIzj0EAwIDSAAwRQIgZXzTqxro5QKCsmgTUQWCfLvl6BHh
0QX9gBfg9D3D3t0CIQD9trFkgoVLydUydOpEbBPjzrnlN5YSaTN02y7uKeR3pQ==
-----END CERTIFICATE-----
";
    const KEY: &str = "\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgLKwWq8uF6f+hV7Sf
Butz7gcfiqySImLNH5DgCNRTT+GhRANCAAS29zUhlY946dM4EBhaTHL14mOKO6rK
2hxnuItL/9LDXqSIn4/JOXLVClNliKsPOCPoVqfobLDPx/Vl1McIzmQE
-----END PRIVATE KEY-----
";
    let directory = tempfile::tempdir().unwrap();
    let [certificate, key] = [("v1.crt", CERTIFICATE), ("v1.key", KEY)].map(|(name, text)| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    });
    let Err(NetError::Identity { path, what, fix }) = Identity::from_files(&certificate, &key) else {
        panic!()
    };
    assert_eq!(path, certificate);
    assert!(what.contains("version 1") && fix.contains("-extfile"), "{what}; {fix}");
}

#[test]
fn unusable_files_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let empty = directory.path().join("empty.pem");
    std::fs::write(&empty, "nothing").unwrap();
    let absent = directory.path().join("absent.pem");
    for path in [&empty, &absent] {
        let name = path.file_name().unwrap().to_str().unwrap();
        let error = Identity::from_files(path, path).err().unwrap().to_string();
        assert!(error.contains(name), "{error}");
        let error = ClientTls::new(&Trust::Authorities(path.clone()), None).err().unwrap().to_string();
        assert!(error.contains(name), "{error}");
    }
}

#[test]
fn a_damaged_identity_of_the_state_directory_is_to_be_removed() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("state");
    let state = StateDirectory::open(&path).unwrap();
    Identity::self_signed(&state).unwrap();
    let file = path.join("tls-identity.pem");
    let pem = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, pem.replace("CERTIFICATE", "SOMETHING")).unwrap();
    let Err(NetError::State { path, what, fix }) = Identity::self_signed(&state) else { panic!() };
    assert_eq!((path, what.as_str()), (file.clone(), "has no certificate in PEM form"));
    assert!(fix.contains("remove the file"), "{fix}");
    std::fs::remove_file(file).unwrap();
    Identity::self_signed(&state).unwrap();
}

#[test]
fn the_self_signed_identity_survives_a_restart_and_a_race() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("state");
    let fingerprints: Vec<_> = (0..8)
        .map(|_| {
            let path = path.clone();
            thread::spawn(move || {
                let state = StateDirectory::open(path).unwrap();
                Identity::self_signed(&state).unwrap().fingerprint()
            })
        })
        .map(|thread| thread.join().unwrap())
        .collect();
    assert!(fingerprints.iter().all(|fingerprint| *fingerprint == fingerprints[0]));
}

#[test]
fn what_a_peer_without_tls_speaks_is_told() {
    let hello = [&[45, 0, 0, 0, 1, 0], &b"lanner\r\n"[..]].concat();
    let refusal = vec![1, 0, 0, 0, 0, 0, Refusal::Refused.code()];
    let told = |seen: &NetError| match seen {
        NetError::Plaintext => "plaintext",
        NetError::Http => "http",
        NetError::Tls(_) => "unknown",
        _ => "another error",
    };
    let cases = [
        (hello, "plaintext"),
        (refusal, "plaintext"),
        (b"HTTP/1.1 400 Bad Request".to_vec(), "http"),
        (b"220 mail ready for you".to_vec(), "unknown"),
    ];
    for (first, expected) in cases {
        let server = self_signed();
        let (listener, address) = listener();
        let client = pinned(&server);
        let connecting = thread::spawn(move || TcpChannel::connect(&address, &client, Limits::default()));
        let mut plain = accept_tcp(&listener);
        plain.write_all(&first).unwrap();
        let seen = connecting.join().unwrap().err().unwrap();
        assert_eq!(told(&seen), expected, "{seen}");
        let stream = TcpStream::connect(listener.address()).unwrap();
        (&stream).write_all(&first).unwrap();
        let seen = TcpChannel::accept(accept_tcp(&listener), &server, Limits::default()).err().unwrap();
        assert_eq!(told(&seen), expected, "{seen}");
    }
}

#[test]
fn a_refusal_reaches_a_peer_that_is_still_sending() {
    for (mut client, mut server) in [tls_pair(Limits::default()), plaintext_pair(Limits::default())] {
        let refusing = thread::spawn(move || {
            server.send(lanner_wire::Kind::REFUSED, &[Refusal::Busy.code()]).unwrap();
            server.close(std::time::Duration::from_secs(5)).unwrap();
        });
        let block = vec![0; 1 << 20];
        let sent = (0..2000).try_for_each(|_| client.send(PING, &block));
        let error = sent.and_then(|()| client.receive(PONG, 1).map(drop)).unwrap_err();
        assert!(matches!(error, ChannelError::Refused(Refusal::Busy)), "{error}");
        refusing.join().unwrap();
    }
}

#[test]
#[ignore = "a measurement"]
fn throughput() {
    for (name, pair) in [
        ("tls", tls_pair as fn(Limits) -> (TcpChannel, TcpChannel)),
        ("plaintext", plaintext_pair as fn(Limits) -> (TcpChannel, TcpChannel)),
    ] {
        let (mut client, mut server) = pair(Limits::default());
        let block = vec![3; 4 << 20];
        let count = 500;
        let start = Instant::now();
        let receiving = thread::spawn(move || {
            let mut buffer = vec![0; 4 << 20];
            for _ in 0..count {
                server.receive_into(PING, &mut buffer).unwrap();
            }
            server.send(PONG, &[]).unwrap();
            server.flush().unwrap();
            server
        });
        for _ in 0..count {
            client.send(PING, &block).unwrap();
        }
        client.receive(PONG, 0).unwrap();
        let seconds = start.elapsed().as_secs_f64();
        println!("{name}: {:.2} GB/s one way", block.len() as f64 * f64::from(count) / seconds / 1e9);
        let mut server = receiving.join().unwrap();
        let rounds = 20_000;
        let answering = thread::spawn(move || {
            for _ in 0..rounds {
                server.receive(PING, 16).unwrap();
                server.send(PONG, &[0; 16]).unwrap();
                server.flush().unwrap();
            }
        });
        let start = Instant::now();
        for _ in 0..rounds {
            client.send(PING, &[0; 16]).unwrap();
            client.receive(PONG, 16).unwrap();
        }
        println!("{name}: {:.1} us a round", start.elapsed().as_secs_f64() * 1e6 / f64::from(rounds));
        answering.join().unwrap();
    }
}

#[test]
fn pins_are_checked_for_the_server_that_answers() {
    let (first, second) = (self_signed(), self_signed());
    assert_ne!(first.fingerprint(), second.fingerprint());
    assert!(connect(&first, &pinned(&second), Limits::default()).0.is_err());
    assert!(connect(&first, &pinned(&first), Limits::default()).0.is_ok());
}
