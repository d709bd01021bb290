//! Peers that send and do not read: what they cost of memory, whose bound follows from what is due and not from what they send.
//!
//! One test, in a process of its own, since it is the memory of the whole process that is measured.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use lanner::{Client, ClientConfig};
use lanner_attacks::guard;
use lanner_attacks::live::{Target, offer};
use lanner_attacks::models::{Subject, circuits};
use lanner_attacks::script::{Frame, bytes_of};
use lanner_attacks::session::{Conversation, Victim};
use lanner_net::{Limits, TcpChannel};
use lanner_primitives::Prg;
use lanner_session::handshake::{Greeting, ModelRequest, WIRE_VERSION, answer};
use lanner_testkit::alone;
use lanner_wire::Channel;

/// Peers at once.
const PEERS: usize = 3;
/// Bytes that each tries to send: a server that keeps what comes, as one did, keeps them.
const FLOOD: usize = 64 << 20;
/// What all of them may cost together, with what sessions hold and the allocator does not give back.
const BOUND: u64 = 48 << 20;

#[test]
fn peers_that_send_and_do_not_read_cost_little() {
    alone(|| {
        guard::start();
        let subject = circuits();
        // Whatever is allocated once is there before anything is measured.
        let target = Target::plaintext(&[&subject], 3.0);
        target.check_serving(&subject);
        let cost = [
            ("before the handshake, all at once", growth(|| flood(|| strangers(&target, Duration::ZERO)))),
            ("before the handshake, by and by", growth(|| flood(|| strangers(&target, PAUSE)))),
            ("after the handshake", growth(|| flood(|| guests(&target, &subject)))),
            ("a client of such a server", growth(|| flooded_clients(&subject))),
        ];
        for (what, bytes) in cost {
            println!("{what}: {} KiB", bytes >> 10);
        }
        for (what, bytes) in cost {
            assert!(bytes < BOUND, "{what}: {PEERS} peers cost {} MiB", bytes >> 20);
        }
        target.check_serving(&subject);
    });
}

/// By how many bytes the process grows, at most, while something runs.
fn growth(run: impl FnOnce()) -> u64 {
    let (before, most, over) = (resident(), AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                most.fetch_max(resident(), Ordering::Relaxed);
                thread::sleep(Duration::from_millis(5));
            }
        });
        run();
        over.store(true, Ordering::Relaxed);
    });
    most.into_inner().saturating_sub(before)
}

/// Bytes of the process that are in memory.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() << 10
}

/// Some peers at once that have begun in some way, each on a thread: they send junk and read nothing, until nothing is taken any more.
fn flood(begin: impl Fn() -> TcpStream + Sync) {
    thread::scope(|scope| {
        for _ in 0..PEERS {
            scope.spawn(|| {
                let mut stream = begin();
                send_junk(&mut stream);
            });
        }
    });
}

/// Sends junk until all of it is sent, or a second long nothing is taken.
fn send_junk(stream: &mut TcpStream) {
    static JUNK: [u8; 1 << 16] = [0x5a; 1 << 16];
    stream.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
    let (start, mut sent) = (Instant::now(), 0);
    while sent < FLOOD && start.elapsed() < Duration::from_secs(3) {
        match stream.write(&JUNK) {
            Ok(count) => sent += count,
            Err(_) => return,
        }
    }
}

/// A peer that has introduced itself and sent as many probes as it may, for answers that it does not read.
fn strangers(target: &Target, pause: Duration) -> TcpStream {
    let mut stream = TcpStream::connect(target.address()).unwrap();
    let hello = [&b"lanner\r\n"[..], &WIRE_VERSION.to_le_bytes(), &[1], &[9; 32]].concat();
    stream.write_all(&Frame::new(1, hello).to_bytes()).unwrap();
    for _ in 0..15 {
        // The server may have left.
        if stream.write_all(&Frame::new(7, (1_u32 << 20).to_le_bytes()).to_bytes()).is_err() {
            break;
        }
        thread::sleep(pause);
    }
    stream
}

/// A client that shakes hands, sets its session up, and has the server prepare as much as it may.
fn guests(target: &Target, subject: &Subject) -> TcpStream {
    let mut stream = TcpStream::connect(target.address()).unwrap();
    let mut channel = TcpChannel::insecure_plaintext(stream.try_clone().unwrap(), Limits::default()).unwrap();
    let greeting = Greeting::send(&mut channel, &mut Prg::from_entropy().unwrap()).unwrap();
    let request = ModelRequest { name: subject.model.manifest().name.clone(), pin: None };
    let welcomed = greeting.request(&mut channel, None, &request).unwrap();
    let parameters = welcomed.model().commitment;
    let _agreement = welcomed.agree(&mut channel, parameters).unwrap();
    channel.flush().unwrap();
    stream.set_nonblocking(false).unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
    let record = Conversation::session(subject).record();
    let frames = record.heard_by(Victim::Server);
    let requests: Vec<usize> = (0..frames.len()).filter(|at| frames[*at].kind.0 == 0x20).collect();
    let [set_up, prepare, predict, _] = requests[..] else { panic!("{requests:?}") };
    let said = [bytes_of(&frames[set_up..prepare]), bytes_of(&frames[prepare..predict]).repeat(24)];
    // The server stops reading once nobody takes what it sends.
    let _ = stream.write_all(&said.concat());
    stream
}

/// Clients whose servers shake hands and then send junk, while the clients send their keys.
fn flooded_clients(subject: &Subject) {
    let flooding = || {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let config = ClientConfig {
            timeout: Some(2.0),
            ..ClientConfig::plaintext(listener.local_addr().unwrap().to_string())
        };
        let offers = [offer(subject)];
        thread::scope(|scope| {
            scope.spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let mut channel =
                    TcpChannel::insecure_plaintext(stream.try_clone().unwrap(), Limits::default()).unwrap();
                answer(&mut channel, None, &offers, &mut Prg::from_entropy().unwrap()).unwrap();
                channel.flush().unwrap();
                stream.set_nonblocking(false).unwrap();
                send_junk(&mut stream);
            });
            assert!(Client::connect(&config).is_err());
        });
    };
    thread::scope(|scope| (0..PEERS).for_each(|_| drop(scope.spawn(flooding))));
}

/// Long enough for a server to have answered a probe.
const PAUSE: Duration = Duration::from_millis(20);
