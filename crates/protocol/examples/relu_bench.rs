//! Times `ReLU` by transfers, modulo powers of two; `cargo run -p lanner-protocol --release --example relu_bench [-- REPEATS]`.
//!
//! Both parties run at once, a thread each, over queues in memory. Results are checked outside the clock. Medians in
//! milliseconds; bytes are those of both parties, a session's setup apart.

mod queue;

use std::error::Error;
use std::time::Instant;

use lanner_primitives::{Prg, Ring, Seed, Share};
use lanner_step::{Function, Party, Transfers, Windows, transfer_sets};
use lanner_transfers::{Layer, Rounding};
use queue::{Queue, median};

type Failure = Box<dyn Error + Send + Sync>;

/// Values, and the bits of each.
const ROWS: [(usize, u32); 4] = [(10_000, 16), (100_000, 16), (100_000, 20), (100_000, 37)];

/// What one party measured: milliseconds offline and online, bytes sent, and its last output.
struct Measured {
    times: [Vec<f64>; 2],
    sent: u64,
    output: Share,
}

fn main() -> Result<(), Failure> {
    let repeats: usize = std::env::args().nth(1).map_or(Ok(9), |repeats| repeats.parse())?;
    println!("{repeats} repeats; medians in milliseconds, megabytes");
    println!("{:>7} {:>5} {:>8} {:>8} {:>7}", "values", "bits", "offline", "online", "bytes");
    for (count, bits) in ROWS {
        measure(count, bits, repeats)?;
    }
    Ok(())
}

fn measure(count: usize, bits: u32, repeats: usize) -> Result<(), Failure> {
    let ring = Ring::Pow2(bits);
    let relu = Function { relu: true, ..Function::IDENTITY };
    let layer = Layer::activation(relu, &Windows::each(count), bits, bits, Rounding::Exact)?;
    let secrets: Vec<i64> = (0..count as i64).map(|i| i * 7919 % 16_001 - 8_000).collect();
    let at_server = Share::random(ring, count, &mut Prg::new(Seed::from_bytes([3; 16])));
    let at_client = Share::embed(ring, &secrets).sub(&at_server)?;
    let (mut client, mut server) = Queue::pair();
    let (mine, theirs) = std::thread::scope(|scope| -> Result<_, Failure> {
        let serving = scope.spawn(|| party(&mut server, Party::Server, &layer, &at_server, repeats));
        let mine = party(&mut client, Party::Client, &layer, &at_client, repeats)?;
        Ok((mine, serving.join().map_err(|_| "the server failed")??))
    })?;
    let expected: Vec<i64> = secrets.iter().map(|x| (*x).max(0)).collect();
    if mine.output.reveal(&theirs.output)? != expected {
        return Err("the result is wrong".into());
    }
    let [offline, online] = mine.times.map(median);
    let megabytes = (mine.sent + theirs.sent) as f64 / repeats as f64 / 1e6;
    println!("{count:>7} {bits:>5} {offline:>8.1} {online:>8.1} {megabytes:>7.2}");
    Ok(())
}

fn party(
    end: &mut Queue,
    me: Party,
    layer: &Layer,
    share: &Share,
    repeats: usize,
) -> Result<Measured, Failure> {
    let mut rng = Prg::new(Seed::from_bytes([me as u8; 16]));
    let drawn = [Party::Client, Party::Server].map(|sender| layer.transfers(sender));
    let mut transfers = Transfers::setup(end, me, transfer_sets(drawn), &mut rng)?;
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
