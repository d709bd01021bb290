//! Times functions by polynomials on segments, modulo powers of two; `cargo run -p lanner-protocol --release --example function_bench [-- REPEATS]`.
//!
//! Values have 16 bits at scale 12, a domain of (-8, 8), and the shapes of the fitted functions; the coefficients do not matter here. Both
//! parties run at once, a thread each, over queues in memory. Results are checked outside the clock. Medians in milliseconds; bytes are those
//! of both parties, a session's setup apart; a round is a message of the client's and the answer to it.

mod queue;

use std::error::Error;
use std::time::Instant;

use lanner_ot::silent::Parameters;
use lanner_primitives::{Prg, Ring, Seed};
use lanner_protocol::Party;
use lanner_protocol::nonlinear::ot_nonlinear::{Layer, Polynomials, Transfers};
use lanner_share::Share;
use queue::{Queue, median};

type Failure = Box<dyn Error + Send + Sync>;

const SET: Parameters = Parameters::ALL[0];

/// Values: the paper's.
const VALUES: usize = 1 << 14;

/// A name, bits of the domain, of the segments' numbers, of each coefficient, those that are dropped, and those of each coefficient that are zero in all
/// segments.
type Row = (&'static str, u32, u32, &'static [u32], u32, &'static [u32]);

const ROWS: [Row; 4] = [
    ("table of 8 bits", 8, 8, &[8], 0, &[0]),
    ("lines, 7", 16, 7, &[25, 15], 12, &[8, 0]),
    ("lines, 8", 16, 8, &[25, 15], 12, &[8, 0]),
    ("parabolas, 5", 16, 5, &[30, 18, 9], 16, &[12, 4, 0]),
];

/// What one party measured: milliseconds offline and online, bytes sent, and its last output.
struct Measured {
    times: [Vec<f64>; 2],
    sent: u64,
    output: Share,
}

fn main() -> Result<(), Failure> {
    let repeats: usize = std::env::args().nth(1).map_or(Ok(9), |repeats| repeats.parse())?;
    println!("{VALUES} values, {repeats} repeats; medians in milliseconds, megabytes");
    println!("{:<16} {:>8} {:>8} {:>7} {:>7}", "function", "offline", "online", "bytes", "rounds");
    for (name, bits, place, widths, drop, zeros) in ROWS {
        let mut rng = Prg::new(Seed::from_bytes([5; 16]));
        let mut random = |bits: u32, zeros: u32| {
            ((rand_core::Rng::next_u64(&mut rng) >> (64 - bits)) as i64 - (1 << (bits - 1))) >> zeros << zeros
        };
        let polynomial = |_| widths.iter().zip(zeros).map(|(bits, zeros)| random(*bits, *zeros)).collect();
        let polynomials: Vec<Vec<i64>> = (0..1 << place).map(polynomial).collect();
        let function = Polynomials { low: -1 << (bits - 1), bits, polynomials, shift: drop };
        measure(name, &function, repeats)?;
    }
    Ok(())
}

fn measure(name: &str, function: &Polynomials, repeats: usize) -> Result<(), Failure> {
    let ring = Ring::Pow2(function.bits);
    let layer = Layer::function(function, VALUES, function.bits, function.bits, 0)?;
    let secrets: Vec<i64> = (0..VALUES as i64).map(|i| ring.signed(ring.embed(i * 7919))).collect();
    let at_server = Share::random(ring, VALUES, &mut Prg::new(Seed::from_bytes([3; 16])));
    let at_client = Share::embed(ring, &secrets).sub(&at_server)?;
    let (mut client, mut server) = Queue::pair();
    let (mine, theirs) = std::thread::scope(|scope| -> Result<_, Failure> {
        let serving = scope.spawn(|| party(&mut server, Party::Server, &layer, &at_server, repeats));
        let mine = party(&mut client, Party::Client, &layer, &at_client, repeats)?;
        Ok((mine, serving.join().map_err(|_| "the server failed")??))
    })?;
    let expected: Vec<i64> = secrets.iter().map(|x| ring.signed(ring.embed(value(function, *x)))).collect();
    if mine.output.reveal(&theirs.output)? != expected {
        return Err("the result is wrong".into());
    }
    let [offline, online] = mine.times.map(median);
    let megabytes = (mine.sent + theirs.sent) as f64 / repeats as f64 / 1e6;
    let rounds = layer.online_cost().rounds();
    println!("{name:<16} {offline:>8.1} {online:>8.1} {megabytes:>7.2} {rounds:>7}");
    Ok(())
}

/// The function's value.
fn value(function: &Polynomials, x: i64) -> i64 {
    let rest = function.bits - function.polynomials.len().trailing_zeros();
    let u = x - function.low;
    let (h, e) = (u >> rest, u & ((1 << rest) - 1));
    let sum = function.polynomials[h as usize].iter().rev().fold(0, |sum, c| sum * e + c);
    if function.shift == 0 { sum } else { (sum + (1 << (function.shift - 1))) >> function.shift }
}

fn party(
    end: &mut Queue,
    me: Party,
    layer: &Layer,
    share: &Share,
    repeats: usize,
) -> Result<Measured, Failure> {
    let mut rng = Prg::new(Seed::from_bytes([me as u8; 16]));
    let mut transfers = Transfers::setup(end, me, SET, &mut rng)?;
    let before = end.sent;
    let mut times = [Vec::new(), Vec::new()];
    let mut output = share.clone();
    for _ in 0..repeats {
        let start = Instant::now();
        let request = layer.request(end, &mut transfers)?;
        let material = layer.prepare(end, &mut transfers, request, &mut rng)?;
        times[0].push(start.elapsed().as_secs_f64() * 1e3);
        let start = Instant::now();
        output = layer.online(end, me, material, &[share])?;
        times[1].push(start.elapsed().as_secs_f64() * 1e3);
    }
    Ok(Measured { times, sent: end.sent - before, output })
}
