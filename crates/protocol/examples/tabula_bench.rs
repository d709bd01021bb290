//! Times activations by openings under masks; `cargo run -p lanner-protocol --release --example tabula_bench [-- REPEATS [VALUES]]`.
//!
//! Both parties run at once, a thread each, over queues in memory. Results are checked outside the clock. Medians; bytes are those of both parties, a
//! session's set-up apart.

mod queue;

use std::time::Instant;

use lanner_primitives::{Prg, Ring, Seed};
use lanner_protocol::Party;
use lanner_protocol::nonlinear::ot_nonlinear::{CotSupply, Transfers, parameters};
use lanner_protocol::nonlinear::tabula::{Activation, Shape};
use lanner_share::Share;
use queue::{Failure, Queue, both, median};

/// Bits that are kept and dropped, and of the ring of the results.
const ROWS: [(u32, u32, u32); 4] = [(8, 8, 20), (10, 8, 24), (10, 12, 24), (12, 12, 24)];

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let repeats: usize = arguments.next().map_or(Ok(5), |repeats| repeats.parse())?;
    let values: usize = arguments.next().map_or(Ok(100_000), |values| values.parse())?;
    println!("{values} ReLUs with their rescale, {repeats} repeats; medians for one, bytes of both parties");
    println!(
        "{:>4} {:>7} {:>4} {:>11} {:>11} {:>11} {:>11} {:>11} {:>7}",
        "kept", "dropped", "ring", "offline", "online", "offline", "online", "kept by one", "rounds"
    );
    for row in ROWS {
        measure(row, values, repeats)?;
    }
    Ok(())
}

fn measure((kept, dropped, to): (u32, u32, u32), values: usize, repeats: usize) -> Result<(), Failure> {
    let layer = Activation::new(values, kept, dropped, to, Shape::Relu)?;
    let transfers = [Party::Client, Party::Server].map(|party| layer.transfers(party));
    let from = Ring::Pow2(layer.bits() + 1);
    let most = 1_i64 << (layer.bits() - 1);
    let secrets: Vec<i64> = (0..values as i64).map(|i| i * 7919 % (2 * most) - most).collect();
    let shares = |repeat: usize| -> Result<(Share, Share), Failure> {
        let server = Share::random(from, values, &mut Prg::new(Seed::from_bytes([repeat as u8; 16])));
        Ok((Share::embed(from, &secrets).sub(&server)?, server))
    };
    let play = |channel: &mut Queue, party: Party| -> Result<(Vec<Share>, [Vec<f64>; 2]), Failure> {
        let rng = &mut Prg::new(Seed::from_bytes([100 + party as u8; 16]));
        let mut source = Transfers::setup(channel, party, parameters(transfers), rng)?;
        let (mut results, mut times) = (Vec::new(), [Vec::new(), Vec::new()]);
        for repeat in 0..repeats {
            let (client, server) = shares(repeat)?;
            let share = if party == Party::Client { client } else { server };
            let start = Instant::now();
            let salt = layer.request(channel, party, rng)?;
            let material = layer.prepare(channel, &mut source, salt, rng)?;
            times[0].push(start.elapsed().as_secs_f64() * 1e6);
            let start = Instant::now();
            results.push(layer.online(channel, party, material, &share)?);
            times[1].push(start.elapsed().as_secs_f64() * 1e6);
        }
        Ok((results, times))
    };
    let [(client, times), (server, _)] = both(play)?;
    let half = 1 << (dropped - 1);
    let full = 1_i64 << kept;
    // The largest numbers round up to where the sign changes.
    let wrapped = |x: i64| (x + full / 2).rem_euclid(full) - full / 2;
    let expected: Vec<i64> = secrets.iter().map(|x| wrapped((x + half) >> dropped).max(0)).collect();
    for (client, server) in client.iter().zip(&server) {
        if client.reveal(server)? != expected {
            return Err("the result is wrong".into());
        }
    }
    let offline = layer.offline_cost(&mut CotSupply::new(parameters(transfers)));
    let (offline, online) = (offline.request.then(offline.answer), layer.online_cost());
    let one = |number: f64| number / values as f64;
    let [offline_time, online_time] = times.map(|times| one(median(times)));
    println!(
        "{kept:>4} {dropped:>7} {to:>4} {offline_time:>8.2} µs {online_time:>8.3} µs {:>9.1} B {:>9.2} B {:>9.1} B {:>7}",
        one(offline.bytes() as f64),
        one(online.bytes() as f64),
        one(layer.held() as f64),
        online.rounds(),
    );
    Ok(())
}
