//! Measures OT over loopback TCP: two threads, one for each party, `n` transfers (the first argument, or 10^7), silent ones of the
//! smallest sets (as many as the second argument says, or all).
//!
//! Results are verified outside the clock; outputs are touched before it, so pages are there.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::io::{BufReader, BufWriter, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use lanner_ot::arithmetic;
use lanner_ot::silent::{Parameters, SilentReceiver, SilentSender};
use lanner_ot::{CorrelatedReceiver, CorrelatedSender, CotReceiver, CotSender, random_delta};
use lanner_primitives::{Bits, Block, Prg, Ring};
use lanner_wire::{Channel, ChannelError, Kind, Traffic};

/// Bytes of each buffer of a [`Tcp`].
const BUFFER: usize = 1 << 18;

/// Frames over a TCP stream, as in the project's transport but without its limits and time-outs.
struct Tcp {
    reader: BufReader<TcpStream>,
    writer: BufWriter<TcpStream>,
    traffic: Traffic,
}

impl Tcp {
    fn pair() -> (Self, Self) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let a = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (Self::new(a), Self::new(listener.accept().unwrap().0))
    }

    fn new(stream: TcpStream) -> Self {
        stream.set_nodelay(true).unwrap();
        let reader = BufReader::with_capacity(BUFFER, stream.try_clone().unwrap());
        Self { reader, writer: BufWriter::with_capacity(BUFFER, stream), traffic: Traffic::default() }
    }
}

#[allow(clippy::needless_pass_by_value, reason = "the argument of map_err")]
fn transport(error: std::io::Error) -> ChannelError {
    ChannelError::Transport(error.to_string())
}

impl Channel for Tcp {
    fn send(&mut self, kind: Kind, payload: &[u8]) -> Result<(), ChannelError> {
        let mut header = [0; 6];
        header[..4].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        header[4..].copy_from_slice(&kind.0.to_le_bytes());
        self.traffic.sent += (header.len() + payload.len()) as u64;
        self.writer.write_all(&header).and_then(|()| self.writer.write_all(payload)).map_err(transport)
    }

    fn flush(&mut self) -> Result<(), ChannelError> {
        self.writer.flush().map_err(transport)
    }

    fn receive_header(&mut self) -> Result<(Kind, usize), ChannelError> {
        self.flush()?;
        let mut header = [0; 6];
        self.reader.read_exact(&mut header).map_err(transport)?;
        let (length, kind) = header.split_at(4);
        let length = u32::from_le_bytes(length.try_into().unwrap()) as usize;
        Ok((Kind(u16::from_le_bytes(kind.try_into().unwrap())), length))
    }

    fn receive_body(&mut self, buffer: &mut [u8]) -> Result<(), ChannelError> {
        self.traffic.received += buffer.len() as u64;
        self.reader.read_exact(buffer).map_err(transport)
    }

    fn traffic(&self) -> Traffic {
        self.traffic
    }
}

/// Runs one step of both parties, the sender's first, from a common start; prints the time until both are done, the time that each had
/// a processor, and the bytes.
fn step<A: Send, B: Send>(
    name: &str,
    n: usize,
    (ca, cb): (&mut Tcp, &mut Tcp),
    a: impl FnOnce(&mut Tcp) -> A + Send,
    b: impl FnOnce(&mut Tcp) -> B + Send,
) -> (A, B) {
    let before = ca.traffic.sent + cb.traffic.sent;
    let barrier = Barrier::new(2);
    let (a, b, time, cpus) = thread::scope(|scope| {
        let handle = scope.spawn(|| {
            barrier.wait();
            let cpu = thread_time();
            let result = a(ca);
            ca.flush().unwrap();
            (result, Instant::now(), thread_time().saturating_sub(cpu))
        });
        barrier.wait();
        let (start, cpu) = (Instant::now(), thread_time());
        let result = b(cb);
        cb.flush().unwrap();
        let (end, cpu) = (Instant::now(), thread_time().saturating_sub(cpu));
        let (other, other_end, other_cpu) = handle.join().unwrap();
        (other, result, end.max(other_end) - start, [other_cpu, cpu])
    });
    report(name, n, time, cpus, ca.traffic.sent + cb.traffic.sent - before);
    (a, b)
}

/// The time this thread has had a processor, where the system tells: on a machine that others use too, this is what a
/// core of its own would give.
fn thread_time() -> Duration {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let running = statistics.split_whitespace().next().and_then(|ns| ns.parse().ok());
    Duration::from_nanos(running.unwrap_or_default())
}

fn report(name: &str, n: usize, time: Duration, cpus: [Duration; 2], bytes: u64) {
    let each = bytes as f64 / n as f64;
    let took = |time: Duration| {
        let seconds = time.as_secs_f64();
        format!("{:>8.2} ms {:>6.1} M/s", seconds * 1e3, n as f64 / seconds / 1e6)
    };
    let [sender, receiver] = cpus.map(took);
    println!(
        "{name:<28} n {n:>9} {}  processor time: sender {sender}, receiver {receiver}  {bytes:>10} bytes {each:>7.3} each",
        took(time)
    );
}

fn touched(n: usize) -> Vec<Block> {
    let mut blocks = vec![Block::ONES; n];
    blocks.clear();
    blocks
}

/// A source of one set, from its bootstrap on.
fn silent(set: Parameters, n: usize, delta: Block, (ca, cb): (&mut Tcp, &mut Tcp)) {
    let (mut rng_a, mut rng_b) = (Prg::from_entropy().unwrap(), Prg::from_entropy().unwrap());
    println!("silent set of {} transfers an iteration:", set.usable());
    let (mut sender, mut receiver) = step(
        "silent setup",
        1,
        (&mut *ca, &mut *cb),
        |c| {
            let source = CotSender::setup(c, delta, &mut rng_a).unwrap();
            SilentSender::setup(c, source, set, &mut rng_a).unwrap()
        },
        |c| {
            let source = CotReceiver::setup(c, &mut rng_b).unwrap();
            SilentReceiver::setup(c, source, set).unwrap()
        },
    );
    for _ in 0..3 {
        let (mut q, mut t) = (touched(n), touched(n));
        let (_, (x, _)) = step(
            "silent, random choices",
            n,
            (&mut *ca, &mut *cb),
            |c| sender.extend_random(c, n, &mut q).unwrap(),
            |c| receiver.extend_random(c, n, &mut t).unwrap(),
        );
        assert!(x.iter().zip(&q).zip(&t).all(|((x, q), t)| *t == *q ^ (delta & Block::mask(x))));
    }
}

fn main() {
    let argument = |at, default| std::env::args().nth(at).map_or(default, |n| n.parse().expect("a count"));
    let (n, sets) = (argument(1, 10_000_000), argument(2, Parameters::ALL.len()));
    let (mut ca, mut cb) = Tcp::pair();
    let (mut rng_a, mut rng_b) = (Prg::from_entropy().unwrap(), Prg::from_entropy().unwrap());
    let delta = random_delta(&mut rng_a);
    let (mut sender, mut receiver) = step(
        "setup",
        1,
        (&mut ca, &mut cb),
        |c| CotSender::setup(c, delta, &mut rng_a).unwrap(),
        |c| CotReceiver::setup(c, &mut rng_b).unwrap(),
    );
    for _ in 0..3 {
        let (mut q, mut t) = (touched(n), touched(n));
        let (_, (x, _)) = step(
            "correlated, random choices",
            n,
            (&mut ca, &mut cb),
            |c| sender.extend_random(c, n, &mut q).unwrap(),
            |c| receiver.extend_random(c, n, &mut t).unwrap(),
        );
        assert!(x.iter().zip(&q).zip(&t).all(|((x, q), t)| *t == *q ^ (delta & Block::mask(x))));
    }
    let choices = Bits::random(n, &mut rng_b);
    let (mut q, mut t) = (touched(n), touched(n));
    step(
        "correlated, given choices",
        n,
        (&mut ca, &mut cb),
        |c| sender.extend(c, n, &mut q).unwrap(),
        |c| receiver.extend(c, &choices, &mut t).unwrap(),
    );
    assert!(choices.iter().zip(&q).zip(&t).all(|((x, q), t)| *t == *q ^ (delta & Block::mask(x))));
    drop((q, t));

    for set in Parameters::ALL.into_iter().take(sets) {
        silent(set, n, delta, (&mut ca, &mut cb));
    }

    let n = n / 10;
    let p = 1_032_193;
    let ring = Ring::Prime(p);
    let a: Vec<u64> = (0..n as u64).map(|i| i % p).collect();
    let (s, (x, r)) = step(
        "arithmetic, 20-bit prime",
        n,
        (&mut ca, &mut cb),
        |c| arithmetic::send_random(&mut sender, c, ring, &a).unwrap(),
        |c| arithmetic::receive_random(&mut receiver, c, ring, n).unwrap(),
    );
    assert!((0..n).all(|i| (s[i] + r[i]) % p == a[i] * u64::from(x.get(i))));
    println!("all verified");
}
