//! Times the softmax on the rows of the FALCON paper's table 4, by circuits and by transfers;
//! `cargo run -p lanner-protocol --release --example softmax_bench [-- REPEATS]`.
//!
//! Both parties run at once, a thread each, over queues in memory. Results are checked outside the clock. Medians in
//! milliseconds; bytes are those of both parties, a session's setup apart.

mod queue;

use std::time::Instant;

use lanner_primitives::{Prg, Ring, Seed, Share};
use lanner_step::{
    Cost, CotSupply, EvaluationSession, GarblingSession, Likely, Outcome, Party, Transfers, transfer_sets,
};
use lanner_transfers::Layer;
use lanner_yao::softmax::{self, Precision, likeliest};
use lanner_yao::{ClientRevealed, ServerRevealed};
use queue::{Failure, Queue, both, median};

/// The modulus of 30 bits, near the paper's, and what one unit of a score stands for.
const RING: Ring = Ring::Prime(1_073_692_673);
const SCALE: f64 = 1e-7;

/// Of as many bits, where transfers compute; scores are below a quarter of it.
const BITS: u32 = 30;

/// Digits, classes, and the paper's milliseconds and megabytes, setup and online together.
const ROWS: [(u32, usize, f64, f64); 6] = [
    (2, 10, 12.45, 1.03),
    (2, 100, 83.2, 10.3),
    (2, 1000, 829.4, 129.0),
    (4, 10, 12.68, 1.03),
    (4, 100, 87.0, 10.3),
    (4, 1000, 845.6, 129.0),
];

fn main() -> Result<(), Failure> {
    let repeats: usize = std::env::args().nth(1).map_or(Ok(15), |repeats| repeats.parse())?;
    println!("scores of {} bits, {repeats} repeats; medians in milliseconds, bytes in kB", RING.bits());
    for (what, measure) in [("ANDs", garbled as fn(_, _) -> _), ("OTs", by_transfers)] {
        println!(
            "{:>6} {:>7} {what:>7} {:>9} {:>9} {:>9} {:>9} {:>7} {:>9} {:>9}",
            "digits", "classes", "offline", "online", "offline", "online", "rounds", "paper ms", "paper kB"
        );
        for row in ROWS {
            let (digits, classes, paper_ms, paper_mb) = row;
            let Measured { operations, offline, online, milliseconds: [offline_ms, online_ms] } =
                measure((digits, classes), repeats)?;
            let kilobytes = |cost: Cost| cost.bytes() as f64 / 1e3;
            println!(
                "{digits:>6} {classes:>7} {operations:>7} {offline_ms:>9.2} {online_ms:>9.2} {:>9.1} {:>9.1} {:>7} \
                 {paper_ms:>9.1} {:>9.0}",
                kilobytes(offline),
                kilobytes(online),
                offline.rounds() + online.rounds(),
                paper_mb * 1e3,
            );
        }
    }
    Ok(())
}

/// One row: AND gates or transfers, both phases' costs, and medians.
struct Measured {
    operations: usize,
    offline: Cost,
    online: Cost,
    milliseconds: [f64; 2],
}

fn garbled((digits, classes): (u32, usize), repeats: usize) -> Result<Measured, Failure> {
    let softmax = softmax::softmax(classes, digits, SCALE, RING)?;
    let scores = scores(classes);
    let truth = truth(&scores);
    let (mut at_client, mut at_server) = Queue::pair();
    let shares = |repeat: usize| -> Result<(Share, Share), Failure> {
        let mut rng = Prg::new(Seed::from_bytes([repeat as u8; 16]));
        let server = Share::random(RING, classes, &mut rng);
        Ok((Share::embed(RING, &scores).sub(&server)?, server))
    };
    let (times, sent) = std::thread::scope(|scope| -> Result<_, Failure> {
        let serving = scope.spawn(|| -> Result<u64, Failure> {
            let mut rng = Prg::new(Seed::from_bytes([200; 16]));
            let mut session = GarblingSession::setup(&mut at_server, &mut rng)?;
            let server = ServerRevealed::new(softmax.clone());
            let before = at_server.sent;
            for repeat in 0..repeats {
                let material = server.offline(&mut at_server, &mut session, &shares(repeat)?.1, &mut rng)?;
                server.online(&mut at_server, material)?;
            }
            Ok(at_server.sent - before)
        });
        let mut session =
            EvaluationSession::setup(&mut at_client, &mut Prg::new(Seed::from_bytes([100; 16])))?;
        let client = ClientRevealed::new(softmax.clone());
        let (before, mut times) = (at_client.sent, [Vec::new(), Vec::new()]);
        for repeat in 0..repeats {
            let share = shares(repeat)?.0;
            let start = Instant::now();
            let request = client.request(&mut at_client, &mut session)?;
            let material = client.receive(&mut at_client, request)?;
            times[0].push(start.elapsed().as_secs_f64() * 1e3);
            let start = Instant::now();
            let outcome = client.online(&mut at_client, material, &share)?;
            times[1].push(start.elapsed().as_secs_f64() * 1e3);
            let Outcome::Probability(likely) = outcome else { return Err("no probability".into()) };
            check(likely, truth)?;
        }
        let served = serving.join().map_err(|_| "the server failed")??;
        Ok((times, at_client.sent - before + served))
    })?;
    let offline = softmax.offline_cost();
    let (offline, online) = (offline.request.then(offline.answer), softmax.online_cost());
    if sent != repeats as u64 * (offline.bytes() + online.bytes()) {
        return Err("the cost is not what was sent".into());
    }
    Ok(Measured {
        operations: softmax.circuit().and_count(),
        offline,
        online,
        milliseconds: times.map(median),
    })
}

fn by_transfers((digits, classes): (u32, usize), repeats: usize) -> Result<Measured, Failure> {
    let precision = Precision::new(classes, digits, SCALE, BITS)?;
    let layer = Layer::softmax(classes, BITS, precision.dropped(), &precision.exponential()?, digits)?;
    let transfers = [Party::Client, Party::Server].map(|party| layer.transfers(party));
    let scores = scores(classes);
    let likely = likeliest(&scores, digits, SCALE, BITS)?;
    let ring = Ring::Pow2(BITS);
    let shares = |repeat: usize| -> Result<(Share, Share), Failure> {
        let server = Share::random(ring, classes, &mut Prg::new(Seed::from_bytes([repeat as u8; 16])));
        Ok((Share::embed(ring, &scores).sub(&server)?, server))
    };
    let play = |channel: &mut Queue, party: Party| -> Result<(Vec<Share>, [Vec<f64>; 2]), Failure> {
        let rng = &mut Prg::new(Seed::from_bytes([100 + party as u8; 16]));
        let mut source = Transfers::setup(channel, party, transfer_sets(transfers), rng)?;
        let (mut results, mut times) = (Vec::new(), [Vec::new(), Vec::new()]);
        for repeat in 0..repeats {
            let (client, server) = shares(repeat)?;
            let share = if party == Party::Client { client } else { server };
            let start = Instant::now();
            let request = layer.request(channel, &mut source)?;
            let material = layer.prepare(channel, &mut source, request, rng)?;
            times[0].push(start.elapsed().as_secs_f64() * 1e3);
            let start = Instant::now();
            results.push(layer.online(channel, party, material, &[&share])?);
            times[1].push(start.elapsed().as_secs_f64() * 1e3);
        }
        Ok((results, times))
    };
    let [(client, times), (server, _)] = both(play)?;
    for (client, server) in client.iter().zip(&server) {
        if client.reveal(server)? != [likely.label as i64, likely.parts as i64] {
            return Err("the result is wrong".into());
        }
    }
    let offline = layer.offline_cost(&mut CotSupply::new(transfer_sets(transfers)));
    let (offline, online) = (offline.request.then(offline.answer), layer.online_cost());
    Ok(Measured { operations: transfers.iter().sum(), offline, online, milliseconds: times.map(median) })
}

fn scores(classes: usize) -> Vec<i64> {
    (0..classes as i64).map(|i| i * 7919 % 1009 * 100_000).collect()
}

/// The largest score's index and probability.
fn truth(scores: &[i64]) -> (usize, f64) {
    let label = scores.iter().enumerate().fold(0, |best, (i, x)| if *x > scores[best] { i } else { best });
    let terms = scores.iter().map(|x| (SCALE * (x - scores[label]) as f64).exp());
    (label, 1.0 / terms.sum::<f64>())
}

fn check(likely: Likely, (label, probability): (usize, f64)) -> Result<(), Failure> {
    let close = (likely.probability() - probability).abs() <= 10_f64.powi(-(likely.digits as i32));
    if likely.label == label && close { Ok(()) } else { Err("the result is wrong".into()) }
}
