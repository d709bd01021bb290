//! A way into a server's WebSocket for peers that speak over TCP.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use tungstenite::{Error, Message, WebSocket};

/// Listens for peers, and opens a WebSocket to a server for each: what a peer says are binary messages, whose end is the socket's. Returns where.
#[must_use]
pub fn relay(server: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for peer in listener.incoming() {
            let server = server.clone();
            thread::spawn(move || carry(peer.unwrap(), &server));
        }
    });
    address
}

/// Carries both parties' bytes until either has left.
fn carry(mut peer: TcpStream, server: &str) {
    let stream = TcpStream::connect(server).unwrap();
    let (mut socket, _) = tungstenite::client(format!("ws://{server}/lanner"), stream).unwrap();
    peer.set_read_timeout(Some(TURN)).unwrap();
    socket.get_mut().set_read_timeout(Some(TURN)).unwrap();
    let mut buffer = vec![0; 64 << 10];
    let mut said_all = false;
    loop {
        if !said_all {
            match peer.read(&mut buffer) {
                // Its end is the connection's; what the server says to it is still carried.
                Ok(0) => {
                    said_all = true;
                    let _ = socket.get_mut().shutdown(Shutdown::Write);
                }
                Ok(count) => {
                    // A server that has left is heard of below.
                    let _ = socket.send(Message::binary(buffer[..count].to_vec()));
                }
                Err(error) if is_turn(error.kind()) => {}
                Err(_) => return,
            }
        }
        if !hear(&mut socket, &mut peer) {
            break;
        }
    }
    // What the peer still says is read, so that the last it hears is not lost to a reset.
    let _ = peer.shutdown(Shutdown::Write);
    peer.set_read_timeout(Some(PATIENCE)).unwrap();
    while peer.read(&mut buffer).is_ok_and(|count| count > 0) {}
}

/// Hands what the server has said to the peer; false if one of them has left.
fn hear(socket: &mut WebSocket<TcpStream>, peer: &mut TcpStream) -> bool {
    match socket.read() {
        Ok(Message::Binary(bytes)) => peer.write_all(&bytes).is_ok(),
        Ok(Message::Ping(_) | Message::Pong(_)) => true,
        Err(Error::Io(error)) => is_turn(error.kind()),
        Ok(_) | Err(_) => false,
    }
}

const fn is_turn(error: ErrorKind) -> bool {
    matches!(error, ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// How long either party is listened to before the other is.
const TURN: Duration = Duration::from_millis(1);
/// How long a peer may take to leave, too.
const PATIENCE: Duration = Duration::from_secs(5);
