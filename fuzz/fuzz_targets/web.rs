//! What a browser sends: a request, which is answered or refused, and frames behind an upgrade, whose content is bytes or an end.
#![no_main]

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::LazyLock;
use std::time::Duration;

use lanner_net::web::{Door, File, Origins, Visitor};
use lanner_net::{Limits, TcpChannel};
use lanner_wire::Channel;
use libfuzzer_sys::fuzz_target;

static LISTENER: LazyLock<TcpListener> = LazyLock::new(|| TcpListener::bind("127.0.0.1:0").unwrap());

static DOOR: LazyLock<Door> = LazyLock::new(|| {
    let file = File { kind: "text/plain".to_owned(), content: (*b"a page").into() };
    Door::new(Origins::default(), HashMap::from([("/".to_owned(), file)]), None).unwrap()
});

/// A request that is answered by an upgrade.
const UPGRADE: &[u8] =
    b"GET /lanner HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\nConnection: Upgrade\r\n\
    Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n";

fuzz_target!(|input: (bool, &[u8])| {
    let (upgraded, bytes) = input;
    // Both ends are this thread's: what is written fits the socket's buffers.
    let bytes = &bytes[..bytes.len().min(32 << 10)];
    let mut peer = TcpStream::connect(LISTENER.local_addr().unwrap()).unwrap();
    let (stream, _) = LISTENER.accept().unwrap();
    if upgraded {
        peer.write_all(UPGRADE).unwrap();
    }
    peer.write_all(bytes).unwrap();
    peer.shutdown(Shutdown::Write).unwrap();
    let patience = Duration::from_millis(200);
    let mut limits = Limits::default();
    (limits.handshake, limits.stall) = (patience, patience);
    if let Ok(Visitor::Line(line)) = DOOR.answer(stream, limits)
        && let Ok(mut channel) = TcpChannel::insecure_plaintext_web(*line, limits)
    {
        // As many messages as there are, then the end.
        while let Ok((_, length)) = channel.receive_header() {
            let mut body = vec![0; length.min(bytes.len())];
            if channel.receive_body(&mut body).is_err() || body.len() < length {
                break;
            }
        }
    }
    peer.set_read_timeout(Some(patience)).unwrap();
    let _ = peer.read_to_end(&mut Vec::new());
});
