//! Times activations by openings under masks beside garbled circuits; `cargo run -p lanner-protocol --release --example tabula_bench [-- --json] [REPEATS [VALUES]]`.
//!
//! `ReLU` with its rescale, by lookups that keep more and fewer bits and by circuits of 32, 24, 16 and 8 bits. Both parties run at once, a thread each,
//! over queues in memory. Results are checked outside the clock. The client's times, medians, for one value of all; bytes are those of both parties, a
//! session's set-up apart; what a party keeps is what it holds between the phases. Tables of text, or one document a line.

mod garbled;
mod queue;

use std::time::Instant;

use lanner_primitives::{Prg, Ring, Seed, Share};
use lanner_step::{Cost, CotSupply, Party, Transfers, transfer_sets};
use lanner_tabula::{Activation, Keyed, Maker, Shape};
use queue::{Failure, Queue, both, median};

/// Bits that are kept and dropped, and of the ring of the results.
const LOOKUPS: [(u32, u32, u32); 7] =
    [(4, 12, 24), (6, 12, 24), (8, 8, 20), (8, 12, 24), (10, 8, 24), (10, 12, 24), (12, 12, 24)];

/// Bits of the values that circuits take, how many they drop, and of the ring of the results.
const CIRCUITS: [(u32, u32, u32); 4] = [(32, 12, 24), (24, 12, 24), (16, 6, 24), (8, 0, 24)];

/// What one party's runs gave: offline and online seconds, and shares of the results.
#[derive(Default)]
struct Played {
    times: [Vec<f64>; 2],
    results: Vec<Share>,
}

/// What one value of all takes.
struct Measured {
    /// The client's seconds, offline and online.
    times: [f64; 2],
    /// Bytes of both parties, offline and online.
    bytes: [f64; 2],
    /// Rounds of all values together, offline and online.
    rounds: [u64; 2],
    /// Bytes that the client and the server keep between the phases.
    held: [f64; 2],
}

impl Measured {
    /// Of what all `values` take.
    fn of_one(values: usize, times: [Vec<f64>; 2], costs: [Cost; 2], held: [u64; 2]) -> Self {
        let one = |number: f64| number / values as f64;
        Self {
            times: times.map(median).map(one),
            bytes: costs.map(|cost| one(cost.bytes() as f64)),
            rounds: costs.map(Cost::rounds),
            held: held.map(|bytes| one(bytes as f64)),
        }
    }
}

fn main() -> Result<(), Failure> {
    let json = std::env::args().any(|argument| argument == "--json");
    let mut numbers = std::env::args().skip(1).filter(|argument| argument != "--json");
    let repeats: usize = numbers.next().map_or(Ok(5), |repeats| repeats.parse())?;
    let values: usize = numbers.next().map_or(Ok(100_000), |values| values.parse())?;
    if !json {
        println!(
            "{values} ReLUs with their rescale, {repeats} repeats; medians for one, bytes of both parties"
        );
        println!(
            "{:>8} {:>5} {:>7} {:>4} {:>11} {:>11} {:>11} {:>11} {:>11} {:>11} {:>7} {:>7}",
            "by",
            "bits",
            "dropped",
            "ring",
            "offline",
            "online",
            "offline",
            "online",
            "client",
            "server",
            "offline",
            "online"
        );
    }
    let print = |by: &str, row: (u32, u32, u32), measured: &Measured| {
        if json {
            print_line(by, row, values, repeats, measured);
        } else {
            print_row(by, row, measured);
        }
    };
    for (kept, dropped, to) in LOOKUPS {
        print("lookup", (kept + dropped, dropped, to), &look_up((kept, dropped, to), values, repeats)?);
    }
    for row in CIRCUITS {
        print("circuit", row, &garbled::measure(row, values, repeats)?);
    }
    Ok(())
}

fn look_up((kept, dropped, to): (u32, u32, u32), values: usize, repeats: usize) -> Result<Measured, Failure> {
    let layer = Activation::new(values, kept, dropped, to, Shape::Relu)?;
    let transfers = [Party::Client, Party::Server].map(|party| layer.transfers(party));
    let from = Ring::Pow2(layer.bits() + 1);
    let most = 1_i64 << (layer.bits() - 1);
    let secrets: Vec<i64> = (0..values as i64).map(|i| i * 7919 % (2 * most) - most).collect();
    let shares = |repeat: usize| -> Result<(Share, Share), Failure> {
        let server = Share::random(from, values, &mut Prg::new(Seed::from_bytes([repeat as u8; 16])));
        Ok((Share::embed(from, &secrets).sub(&server)?, server))
    };
    let play = |channel: &mut Queue, party: Party| -> Result<Played, Failure> {
        let rng = &mut Prg::new(Seed::from_bytes([100 + party as u8; 16]));
        let mut source = Transfers::setup(channel, party, transfer_sets(transfers), rng)?;
        let mut played = Played::default();
        for repeat in 0..repeats {
            let (client, server) = shares(repeat)?;
            let share = if party == Party::Client { client } else { server };
            let start = Instant::now();
            let salt = layer.request(channel, party, rng)?;
            let material = layer.prepare(&mut Maker { channel, transfers: &mut source, rng }, salt)?;
            played.times[0].push(start.elapsed().as_secs_f64());
            let start = Instant::now();
            played.results.push(layer.online(channel, party, material, &share)?);
            played.times[1].push(start.elapsed().as_secs_f64());
        }
        Ok(played)
    };
    let [client, server] = both(play)?;
    let half = 1 << (dropped - 1);
    let full = 1_i64 << kept;
    // The largest numbers round up to where the sign changes.
    let wrapped = |x: i64| (x + full / 2).rem_euclid(full) - full / 2;
    let expected: Vec<i64> = secrets.iter().map(|x| wrapped((x + half) >> dropped).max(0)).collect();
    for (client, server) in client.results.iter().zip(&server.results) {
        if client.reveal(server)? != expected {
            return Err("the result of the lookups is wrong".into());
        }
    }
    let offline = layer.offline_cost(&mut CotSupply::new(transfer_sets(transfers)));
    let costs = [offline.request.then(offline.answer), layer.online_cost()];
    Ok(Measured::of_one(values, client.times, costs, [layer.held(); 2]))
}

fn print_row(by: &str, (bits, dropped, to): (u32, u32, u32), measured: &Measured) {
    let Measured { times, bytes: [before, then], rounds: [offline, online], held: [client, server] } =
        measured;
    let [prepared, waited] = times.map(|seconds| seconds * 1e6);
    println!(
        "{by:>8} {bits:>5} {dropped:>7} {to:>4} {prepared:>8.2} µs {waited:>8.3} µs {before:>9.1} B {then:>9.2} B {client:>9.1} B {server:>9.1} B {offline:>7} {online:>7}"
    );
}

fn print_line(
    by: &str,
    (bits, dropped, to): (u32, u32, u32),
    values: usize,
    repeats: usize,
    measured: &Measured,
) {
    let Measured { times, bytes: [before, then], rounds: [offline, online], held: [client, server] } =
        measured;
    let [prepared, waited] = times;
    println!(
        r#"{{"bench": "activation", "name": "{by}", "kernel": "{bits} bits, {dropped} dropped, to {to}", "n": {values}, "bits": {bits}, "dropped": {dropped}, "ring": {to}, "offline": {prepared:e}, "online": {waited:e}, "offline_bytes": {before}, "online_bytes": {then}, "client_bytes": {client}, "server_bytes": {server}, "offline_rounds": {offline}, "rounds": {online}, "repeat": {repeats}}}"#
    );
}
