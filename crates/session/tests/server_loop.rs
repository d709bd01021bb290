//! A server on loopback among good and bad clients.

use std::error::Error;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use lanner_net::{
    Address, ClientTls, Identity, Limits, Listener, ServerTls, StateDirectory, TcpChannel, Transport, Trust,
};
use lanner_session::server_loop::{
    Cause, Ending, Entry, Handler, Security, Server, ServerOptions, SessionInfo, Snapshot,
};
use lanner_wire::{Channel, ChannelError, Kind, Refusal};

const ECHO: Kind = Kind(100);
const PANIC: Kind = Kind(101);
const SLOW: Kind = Kind(102);
const BIG: Kind = Kind(103);
const KEEP: Kind = Kind(104);
const USE: Kind = Kind(105);
const LENGTH: usize = 1000;
/// Bytes of material that a session keeps for each `KEEP`, and that all may keep: two, but not three.
const KEPT: u64 = 40;
const ROOM: u64 = 100;

/// Answers each message with itself until the client leaves.
struct Echo;

impl Handler for Echo {
    fn serve(
        &self,
        channel: &mut dyn Transport,
        session: &SessionInfo,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        assert_eq!(thread::current().name(), Some(format!("session-{}", session.number).as_str()));
        session.is_about("echo");
        let mut kept = Vec::new();
        loop {
            let (kind, length) = match session.while_idle(|| channel.receive_header()) {
                Err(ChannelError::Disconnected) => return Ok(()),
                other => other?,
            };
            match kind {
                PANIC => panic!("as asked"),
                SLOW => thread::sleep(Duration::from_millis(300)),
                KEEP => kept.push(session.reserve(KEPT)?),
                USE => drop(kept.pop()),
                BIG => return Err(format!("{length} bytes are too many").into()),
                _ => {}
            }
            if length != LENGTH {
                return Err("another length is due".into());
            }
            let mut message = vec![0; length];
            channel.receive_body(&mut message)?;
            channel.send(kind, &message)?;
            channel.flush()?;
            session.count_predictions(1);
        }
    }
}

struct Responder {
    server: Server,
    address: Address,
    tls: ClientTls,
}

fn start(max_sessions: usize, stall: Duration) -> Responder {
    let root = tempfile::tempdir().unwrap();
    let state = StateDirectory::open(root.path().join("state")).unwrap();
    let tls = ServerTls::new(Identity::self_signed(&state).unwrap(), None).unwrap();
    let client = ClientTls::new(&Trust::Pin(tls.fingerprint()), None).unwrap();
    let mut limits = Limits::default();
    limits.handshake = stall;
    limits.stall = stall;
    let options = ServerOptions { security: Security::Tls(tls), max_sessions, max_material: ROOM, limits };
    let listener = Listener::bind(&"127.0.0.1:0".parse().unwrap()).unwrap();
    let server = Server::start(listener, options, Echo).unwrap();
    Responder { address: server.address().to_string().parse().unwrap(), server, tls: client }
}

fn without_tls(limits: Limits) -> ServerOptions {
    ServerOptions { security: Security::InsecurePlaintext, max_sessions: 2, max_material: ROOM, limits }
}

const LONG: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(300);

impl Responder {
    fn client(&self) -> TcpChannel {
        TcpChannel::connect(&self.address, &self.tls, Limits::default()).unwrap()
    }

    fn raw(&self) -> TcpStream {
        let stream = TcpStream::connect(self.server.address()).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream
    }

    fn is_serving(&self) -> bool {
        ask(&mut self.client(), ECHO).is_ok()
    }

    /// Waits for what threads of the server count.
    fn wait_for(&self, condition: impl Fn(&Snapshot) -> bool) -> Snapshot {
        let start = Instant::now();
        loop {
            let metrics = self.server.metrics();
            if condition(&metrics) {
                return metrics;
            }
            assert!(start.elapsed() < LONG, "{metrics:?}");
            thread::sleep(Duration::from_millis(5));
        }
    }
}

fn ask(channel: &mut TcpChannel, kind: Kind) -> Result<(), ChannelError> {
    channel.send(kind, &[kind.0 as u8; LENGTH])?;
    assert_eq!(channel.receive(kind, LENGTH)?, [kind.0 as u8; LENGTH]);
    Ok(())
}

#[test]
fn eight_clients_are_served_at_once() {
    let service = start(8, LONG);
    let mut clients: Vec<_> = (0..8).map(|_| service.client()).collect();
    for _ in 0..3 {
        // All are in the middle of a session while each is served.
        for client in &mut clients {
            ask(client, ECHO).unwrap();
        }
    }
    drop(clients);
    let metrics = service.wait_for(|metrics| metrics.bytes_sent > 0 && metrics.predictions == 24);
    assert_eq!((metrics.sessions, metrics.failures), (8, 0));
    assert_eq!(metrics.predictions_by_model, [("echo".to_owned(), 24)].into());
}

#[test]
fn one_client_too_many_hears_that_the_server_is_busy() {
    let service = start(2, LONG);
    let mut first = service.client();
    let mut second = service.client();
    ask(&mut first, ECHO).unwrap();
    ask(&mut second, ECHO).unwrap();
    let error = ask(&mut service.client(), ECHO).unwrap_err();
    assert!(matches!(error, ChannelError::Refused(Refusal::Busy)), "{error}");
    ask(&mut first, ECHO).unwrap();
    drop(second);
    ask(&mut service.client(), ECHO).unwrap();
    assert_eq!(service.server.metrics().refused, 1);
}

#[test]
fn the_journal_says_what_became_of_each_connection() {
    let service = start(1, LONG);
    let journal = service.server.journal();
    let next = || {
        let start = Instant::now();
        loop {
            if let (mut entries, 0) = journal.take()
                && let Some(entry) = entries.pop()
            {
                assert!(entries.is_empty(), "{entries:?}");
                return entry;
            }
            assert!(start.elapsed() < LONG);
            thread::sleep(Duration::from_millis(5));
        }
    };
    let mut served = service.client();
    ask(&mut served, ECHO).unwrap();
    ask(&mut served, ECHO).unwrap();
    assert!(journal.take().0.is_empty(), "nothing has ended");
    ask(&mut service.client(), ECHO).unwrap_err();
    let Entry { ending, cause, session, .. } = next();
    assert_eq!((ending, cause, session), (Ending::Busy, Some(Cause::Sessions), 2));
    drop(served);
    let Entry { ending, model, predictions, sent, received, time, reason, cause, session, .. } = next();
    assert_eq!((session, cause), (1, None));
    assert_eq!((ending, model.as_deref(), predictions, reason.as_str()), (Ending::Done, Some("echo"), 2, ""));
    assert!(sent > 2000 && received > 2000 && time > 1.7e9);
    ask(&mut service.client(), BIG).unwrap_err();
    let Entry { ending, reason, cause, session, .. } = next();
    assert_eq!((ending, reason.as_str()), (Ending::Failed, "1000 bytes are too many"));
    assert_eq!((session, cause), (3, Some(Cause::Server)));
    service.raw().write_all(&[45, 0, 0, 0, 1, 0]).unwrap();
    let Entry { ending, model, reason, cause, .. } = next();
    assert_eq!((ending, model, cause), (Ending::NoConnection, None, Some(Cause::Tls)));
    assert_eq!(reason, "the peer does without TLS, and this side asks for it");
    let mut idle = service.client();
    ask(&mut idle, ECHO).unwrap();
    let _ = service.server.stop(LONG);
    assert_eq!(next().predictions, 1, "what ends while the server stops is told too");
}

#[test]
fn a_panic_or_error_ends_its_own_session_alone() {
    let service = start(4, LONG);
    let mut good = service.client();
    ask(&mut good, ECHO).unwrap();
    for kind in [PANIC, BIG] {
        let error = ask(&mut service.client(), kind).unwrap_err();
        assert!(matches!(error, ChannelError::Refused(Refusal::Refused)), "{error}");
    }
    ask(&mut good, ECHO).unwrap();
    assert!(service.is_serving());
    assert_eq!(service.server.metrics().failures, 2);
}

#[test]
fn sessions_share_the_room_for_material() {
    let service = start(4, LONG);
    let [mut first, mut second] = [service.client(), service.client()];
    ask(&mut first, KEEP).unwrap();
    ask(&mut first, KEEP).unwrap();
    assert_eq!(service.server.metrics().material, 2 * KEPT);
    // While the first keeps all there is, the second is told so, and its session is over.
    ask(&mut second, ECHO).unwrap();
    let error = ask(&mut second, KEEP).unwrap_err();
    assert!(matches!(error, ChannelError::Refused(Refusal::Busy)), "{error}");
    let metrics = service.wait_for(|metrics| metrics.refused == 1);
    assert_eq!((metrics.failures, metrics.material), (0, 2 * KEPT));
    // What is used is room again, and so is all that a session kept once it has ended.
    ask(&mut first, USE).unwrap();
    let mut third = service.client();
    ask(&mut third, KEEP).unwrap();
    assert_eq!(service.server.metrics().material, 2 * KEPT);
    drop(first);
    ask(&mut third, KEEP).unwrap();
    drop(third);
    let metrics = service.wait_for(|metrics| metrics.material == 0);
    assert_eq!((metrics.refused, metrics.failures), (1, 0));
}

#[test]
fn no_end_of_a_session_leaves_room_taken() {
    let service = start(4, SHORT);
    let faults: [fn(TcpChannel); 5] = [
        |mut client| drop(ask(&mut client, PANIC).unwrap_err()),
        |mut client| drop(ask(&mut client, BIG).unwrap_err()),
        |client| client.abort_handle().unwrap().abort(),
        // Half a message, and then nothing.
        |mut client| {
            client.send(ECHO, &[1; LENGTH - 1]).unwrap();
            client.receive_header().unwrap_err();
        },
        // Asks for more than there is.
        |mut client| {
            let error = ask(&mut client, KEEP).unwrap_err();
            assert!(matches!(error, ChannelError::Refused(Refusal::Busy)), "{error}");
        },
    ];
    for fault in faults {
        let mut client = service.client();
        ask(&mut client, KEEP).unwrap();
        ask(&mut client, KEEP).unwrap();
        fault(client);
        service.wait_for(|metrics| metrics.material == 0);
    }
    assert_eq!(service.server.metrics().refused, 1);
    assert!(service.is_serving());
}

#[test]
fn clients_that_do_not_speak_tls_are_dropped() {
    let service = start(4, SHORT);
    let garbage: [&[u8]; 5] = [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        &[0; 4096],
        &vec![0xff; 70_000],
        // A record that announces more than it has, and half a ClientHello.
        &[22, 3, 1, 0xff, 0xff, 1],
        &[22, 3, 1, 0, 200, 1, 0, 0, 196, 3, 3],
    ];
    for (count, bytes) in garbage.into_iter().enumerate() {
        let mut stream = service.raw();
        // The server may be gone before all is written.
        let _ = stream.write_all(bytes);
        let _ = stream.read_to_end(&mut Vec::new());
        service.wait_for(|metrics| metrics.failed_handshakes == count as u64 + 1);
    }
    assert!(service.is_serving());
    assert_eq!(service.server.metrics().failures, 0);
}

#[test]
fn clients_that_connect_and_say_nothing_are_dropped_in_time() {
    let service = start(2, SHORT);
    let start = Instant::now();
    let mut silent: Vec<_> = (0..10).map(|_| service.raw()).collect();
    assert!(service.is_serving(), "handshakes take no place from sessions");
    for stream in &mut silent {
        stream.read_to_end(&mut Vec::new()).unwrap();
    }
    assert!(start.elapsed() < Duration::from_secs(5));
    assert!(service.is_serving());
}

#[test]
fn a_handshake_spread_over_time_is_dropped_in_time() {
    let service = start(2, SHORT);
    let mut stream = service.raw();
    let start = Instant::now();
    let hello = [22, 3, 1, 0, 200, 1, 0, 0, 196, 3, 3];
    // A byte every 50 ms, for ever: no single wait is long.
    while stream.write_all(&hello[..1]).is_ok() && start.elapsed() < LONG {
        thread::sleep(Duration::from_millis(50));
    }
    assert!(start.elapsed() < Duration::from_secs(5));
    assert!(service.is_serving());
}

#[test]
fn a_client_that_stalls_within_a_session_is_dropped_in_time() {
    let service = start(2, SHORT);
    let mut silent = service.client();
    let error = silent.receive_header().unwrap_err();
    assert!(matches!(error, ChannelError::Refused(_)), "{error}");
    let mut halfway = service.client();
    halfway.send(ECHO, &[1; LENGTH - 1]).unwrap();
    assert!(halfway.receive_header().is_err());
    let metrics = service.wait_for(|metrics| metrics.failures == 2);
    assert_eq!(metrics.predictions, 0);
    assert!(service.is_serving());
}

#[test]
fn clients_that_leave_in_the_middle_of_a_message_hurt_nobody() {
    let service = start(3, LONG);
    let mut good = service.client();
    for _ in 0..20 {
        let mut client = service.client();
        client.send(ECHO, &[1; LENGTH]).unwrap();
        client.flush().unwrap();
        client.abort_handle().unwrap().abort();
        drop(client);
        ask(&mut good, ECHO).unwrap();
    }
    assert_eq!(service.server.metrics().refused, 0, "their places are free again");
}

/// Speaks frames without the rules of a channel.
fn send_raw(stream: &mut TcpStream, header: [u8; 6], body: &[u8]) {
    stream.write_all(&header).unwrap();
    stream.write_all(body).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
}

#[test]
fn truncated_frames_and_absurd_lengths_are_refused() {
    let listener = Listener::bind(&"127.0.0.1:0".parse().unwrap()).unwrap();
    let options = without_tls(Limits::default());
    let server = Server::start(listener, options, Echo).unwrap();
    let connect = || TcpStream::connect(server.address()).unwrap();
    // A length of 4 GiB - 1: refused by its header, before anything is allocated.
    for (header, body) in [([0xff, 0xff, 0xff, 0xff, 100, 0], &b"abc"[..]), ([232, 3, 0, 0, 100, 0], b"abc")]
    {
        let mut stream = connect();
        send_raw(&mut stream, header, body);
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        assert_eq!(answer, [1, 0, 0, 0, 0, 0, Refusal::Refused.code()]);
    }
    let address: Address = server.address().to_string().parse().unwrap();
    let mut good = TcpChannel::connect_insecure_plaintext(&address, Limits::default()).unwrap();
    ask(&mut good, ECHO).unwrap();
}

#[test]
fn tls_and_plaintext_do_not_mix() {
    let service = start(2, SHORT);
    let mut plaintext = TcpChannel::connect_insecure_plaintext(&service.address, Limits::default()).unwrap();
    assert!(ask(&mut plaintext, ECHO).is_err());
    let listener = Listener::bind(&"127.0.0.1:0".parse().unwrap()).unwrap();
    let mut limits = Limits::default();
    limits.stall = SHORT;
    let options = without_tls(limits);
    let server = Server::start(listener, options, Echo).unwrap();
    let address: Address = server.address().to_string().parse().unwrap();
    let error = TcpChannel::connect(&address, &service.tls, Limits::default()).err().unwrap();
    assert!(error.to_string().contains("TLS"), "{error}");
}

#[test]
fn a_stop_ends_idle_sessions_and_lets_busy_ones_finish() {
    let service = start(4, LONG);
    let mut idle = service.client();
    ask(&mut idle, ECHO).unwrap();
    let mut busy = service.client();
    busy.send(SLOW, &[7; LENGTH]).unwrap();
    busy.flush().unwrap();
    thread::sleep(Duration::from_millis(100));
    let start = Instant::now();
    let stopped = service.server.stop(LONG);
    assert_eq!(stopped.cut, 0);
    assert_eq!(
        (stopped.metrics.sessions, stopped.metrics.predictions),
        (2, 2),
        "the last one was served while stopping"
    );
    assert!(start.elapsed() < Duration::from_secs(5));
    assert_eq!(busy.receive(SLOW, LENGTH).unwrap(), [7; LENGTH]);
    assert!(busy.receive_header().is_err());
    assert!(idle.receive_header().is_err());
    assert!(TcpStream::connect(service.address.to_string()).is_err());
}

#[test]
fn a_stop_leaves_a_client_time_between_two_requests() {
    let service = start(4, LONG);
    let mut client = service.client();
    ask(&mut client, ECHO).unwrap();
    assert_eq!(service.server.metrics().under_way, 1);
    let stopped = thread::scope(|scope| {
        let stopping = scope.spawn(|| service.server.stop(LONG));
        thread::sleep(Duration::from_millis(300));
        ask(&mut client, ECHO).unwrap();
        stopping.join().unwrap()
    });
    assert_eq!((stopped.cut, stopped.metrics.predictions, stopped.metrics.under_way), (0, 2, 0));
    assert!(client.receive_header().is_err(), "silence is the end");
}

#[test]
fn a_stop_without_grace_cuts_busy_sessions() {
    let service = start(4, LONG);
    let mut busy = service.client();
    busy.send(SLOW, &[7; LENGTH]).unwrap();
    busy.flush().unwrap();
    thread::sleep(Duration::from_millis(100));
    assert_eq!(service.server.stop(Duration::ZERO).cut, 1);
    assert!(busy.receive(SLOW, LENGTH).is_err());
}
