//! Times what lookups could be, beside each other: `cargo run --release -p lanner-research --example tabula_variants_bench [-- REPEATS [VALUES]]`.
//!
//! A rescale and `ReLU`, exact and stochastic; any function as a table by point keys, expanded online and ahead; in place of the exact rescale's borrow key a
//! carry by transfers, by itself; and plain tables by transfers, of values that have the bits that are kept alone. Both parties run at once, a thread each, over
//! queues in memory; results are checked outside the clock. Medians for one value; bytes are those of both parties, a session's set-up apart.

mod plain;
#[path = "../../crates/protocol/examples/queue/mod.rs"]
mod queue;

use std::time::Instant;

use lanner_primitives::{Prg, Ring, Seed, Share};
use lanner_step::{Cost, CotSupply, OfflineCost, Party, ProtocolError, Transfers, transfer_sets};
use lanner_tabula::{Activation, Keyed, Maker, Rounding, Shape, Table, TableLookup};
use lanner_transfers::blocks::{Driver, Lanes, Program, carry};
use lanner_transfers::{Layer, Polynomials};
use queue::{Failure, Queue, both, median};

/// Bits that are kept and dropped, and of the ring of the results.
const ROWS: [[u32; 3]; 6] = [[4, 12, 24], [6, 12, 24], [8, 8, 20], [8, 12, 24], [10, 12, 24], [12, 12, 24]];

/// The most bits of a plain table: it takes four times as long to make with each bit.
const PLAIN_BITS: u32 = 10;

/// The most words of all plain tables, which a party keeps: of more bits there are fewer.
const PLAIN_WORDS: usize = 1 << 21;

/// The carry of the low bits of both parties' shares, as a value of the bits that are kept.
#[derive(Clone, Debug)]
struct Carry {
    dropped: u32,
    kept: u32,
}

impl Program for Carry {
    fn run<D: Driver>(&self, driver: &mut D, x: &D::Values) -> Result<D::Values, ProtocolError> {
        let carry = carry(driver, x.clone(), self.dropped)?;
        driver.bits_to_values(&carry.bits(x.count()), self.kept)
    }
}

/// What is measured.
enum Variant {
    Relu(Activation),
    Table(TableLookup),
    Carry(Layer<Carry>),
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let repeats: usize = arguments.next().map_or(Ok(5), |repeats| repeats.parse())?;
    let values: usize = arguments.next().map_or(Ok(20_000), |values| values.parse())?;
    println!("{values} values, {repeats} repeats; medians for one, bytes of both parties");
    println!(
        "{:<22} {:>4} {:>7} {:>4} {:>11} {:>11} {:>11} {:>11} {:>11} {:>7}",
        "", "kept", "dropped", "ring", "offline", "online", "offline", "online", "kept by one", "rounds"
    );
    for [kept, dropped, to] in ROWS {
        let relu = |rounding| Activation::rounding(rounding, values, [kept, dropped, to], Shape::Relu);
        let function = Polynomials {
            low: -1 << (kept - 2),
            bits: kept - 1,
            polynomials: vec![vec![3, -1], vec![7, 2]],
            shift: 1,
            factors: None,
        };
        let table = |expanded| {
            let (from, function) = (kept + dropped + 1, function.clone());
            TableLookup::new(&Table { values, from, shift: dropped, function, to, expanded })
        };
        for (name, variant) in [
            ("ReLU, exact", Variant::Relu(relu(Rounding::Exact)?)),
            ("ReLU, stochastic", Variant::Relu(relu(Rounding::Stochastic)?)),
            ("table", Variant::Table(table(false)?)),
            ("table, expanded ahead", Variant::Table(table(true)?)),
            (
                "carry by transfers",
                Variant::Carry(Layer::of(Carry { dropped, kept }, values, dropped, kept)?),
            ),
        ] {
            let (from, bits) = (Ring::Pow2(kept + dropped + 1), kept + dropped);
            let secrets: Vec<i64> = spread(values, bits);
            let right = |y: i64, x: i64| {
                let (down, near) = (x >> dropped, (x + (1 << (dropped - 1))) >> dropped);
                match (&variant, name) {
                    (Variant::Relu(_), "ReLU, exact") => y == near.max(0),
                    (Variant::Relu(_), _) => y == down.max(0) || y == (down + 1).max(0),
                    (Variant::Table(_), _) => function.at(near).is_ok_and(|due| y == due),
                    // What is carried does not follow from x.
                    (Variant::Carry(_), _) => true,
                }
            };
            let measured = measure(&variant, values, repeats, from, &secrets, dropped)?;
            for results in &measured.results {
                if !results.iter().zip(&secrets).all(|(y, x)| right(*y, *x)) {
                    return Err("the result is wrong".into());
                }
            }
            print(name, [kept, dropped, to], values, &measured);
        }
        if kept > PLAIN_BITS {
            continue;
        }
        let values = values.min(PLAIN_WORDS >> kept);
        let secrets = spread(values, kept);
        let at = |x: i64| function.at(x).unwrap_or_default();
        let measured = plain::measure([kept, to], values, repeats, &secrets, at)?;
        for results in &measured.results {
            if !results.iter().zip(&secrets).all(|(y, x)| *y == at(*x)) {
                return Err("the result of a plain table is wrong".into());
            }
        }
        print("plain table", [kept, 0, to], values, &measured);
    }
    Ok(())
}

fn print(name: &str, [kept, dropped, to]: [u32; 3], values: usize, measured: &Measured) {
    let one = |number: f64| number / values as f64;
    let [offline, online] = measured.times.map(one);
    println!(
        "{name:<22} {kept:>4} {dropped:>7} {to:>4} {offline:>8.2} µs {online:>8.3} µs {:>9.1} B {:>9.2} B {:>9.1} B {:>7}",
        one(measured.offline.bytes() as f64),
        one(measured.online.bytes() as f64),
        one(measured.held as f64),
        measured.online.rounds(),
    );
}

/// Numbers of all that is kept, but for the ends, which round to where the sign changes.
fn spread(values: usize, bits: u32) -> Vec<i64> {
    let most = (1_i64 << (bits - 1)) * 7 / 8;
    (0..values as i64).map(|i| i * 7919 % (2 * most) - most).collect()
}

struct Measured {
    times: [f64; 2],
    results: Vec<Vec<i64>>,
    offline: Cost,
    online: Cost,
    held: u64,
}

fn measure(
    variant: &Variant,
    values: usize,
    repeats: usize,
    from: Ring,
    secrets: &[i64],
    dropped: u32,
) -> Result<Measured, Failure> {
    let transfers = [Party::Client, Party::Server].map(|party| match variant {
        Variant::Relu(layer) => layer.transfers(party),
        Variant::Table(layer) => layer.transfers(party),
        Variant::Carry(layer) => layer.transfers(party),
    });
    let shares = |repeat: usize| -> Result<[Share; 2], Failure> {
        let server = Share::random(from, values, &mut Prg::new(Seed::from_bytes([repeat as u8; 16])));
        Ok([Share::embed(from, secrets).sub(&server)?, server])
    };
    let play = |channel: &mut Queue, party: Party| -> Result<(Vec<Share>, [Vec<f64>; 2]), Failure> {
        let rng = &mut Prg::new(Seed::from_bytes([100 + party as u8; 16]));
        let mut source = Transfers::setup(channel, party, transfer_sets(transfers), rng)?;
        let (mut results, mut times) = (Vec::new(), [Vec::new(), Vec::new()]);
        for repeat in 0..repeats {
            let [client, server] = shares(repeat)?;
            let share = if party == Party::Client { client } else { server };
            let start = Instant::now();
            // The same for both.
            let salt = lanner_primitives::Block(repeat as u128);
            let (result, start) = match variant {
                Variant::Relu(layer) => {
                    let material =
                        layer.prepare(&mut Maker { channel, transfers: &mut source, rng }, salt)?;
                    times[0].push(start.elapsed().as_secs_f64() * 1e6);
                    let start = Instant::now();
                    (layer.online(channel, party, material, &share)?, start)
                }
                Variant::Table(layer) => {
                    let material =
                        layer.prepare(&mut Maker { channel, transfers: &mut source, rng }, salt)?;
                    times[0].push(start.elapsed().as_secs_f64() * 1e6);
                    let start = Instant::now();
                    (layer.online(channel, party, material, &share)?, start)
                }
                Variant::Carry(layer) => {
                    let request = layer.request(channel, &mut source)?;
                    let material = layer.prepare(channel, &mut source, request, rng)?;
                    times[0].push(start.elapsed().as_secs_f64() * 1e6);
                    let ring = Ring::Pow2(dropped);
                    let low = share.values().iter().map(|value| ring.embed(*value as i64)).collect();
                    let low = Share::new(ring, low)?;
                    let start = Instant::now();
                    (layer.online(channel, party, material, &[&low])?, start)
                }
            };
            times[1].push(start.elapsed().as_secs_f64() * 1e6);
            results.push(result);
        }
        Ok((results, times))
    };
    let [(client, times), (server, _)] = both(play)?;
    let revealed = client.iter().zip(&server).map(|(client, server)| client.reveal(server));
    let results = revealed.collect::<Result<Vec<_>, _>>()?;
    if let Variant::Carry(_) = variant {
        for (repeat, results) in results.iter().enumerate() {
            let [client, server] = shares(repeat)?;
            let low =
                |share: &Share| share.values().iter().map(|x| x & ((1 << dropped) - 1)).collect::<Vec<_>>();
            let sums = low(&client).into_iter().zip(low(&server)).map(|(a, b)| (a + b) >> dropped);
            if !results.iter().map(|carry| *carry as u64).eq(sums) {
                return Err("a carry is wrong".into());
            }
        }
    }
    let supply = &mut CotSupply::new(transfer_sets(transfers));
    let (OfflineCost { request, answer }, online, held) = match variant {
        Variant::Relu(layer) => (layer.offline_cost(supply), layer.online_cost(), layer.held()),
        Variant::Table(layer) => (layer.offline_cost(supply), layer.online_cost(), layer.held()),
        Variant::Carry(layer) => (layer.offline_cost(supply), layer.online_cost(), layer.held(Party::Client)),
    };
    Ok(Measured { times: times.map(median), results, offline: request.then(answer), online, held })
}
