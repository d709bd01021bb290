//! Measures one server on one core and on all, and what several servers of one model keep together, on Linux;
//! `cargo run -p lanner --release --example cores_bench -- MODEL.lanner [SESSIONS]`.
//!
//! Every server is a process of its own, bound to cores by `taskset`. Printed are
//!
//! - seconds until a server is ready, and the sum of what two servers have in memory (each page divided by the number of processes that have it, as
//!   the kernel counts it), after one prediction of each: with encoded weights of their own, and shared in a directory;
//! - for one session and for several at once, predictions in a second with their offline phase, and the server's seconds of computing for
//!   each. Where the server has the first core alone, clients have the others; else they share all;
//! - what this machine reads from memory, with one thread and with one for each core;
//! - what a [model](model) makes of these figures for more cores.
//!
//! Inputs are zeros, and results are not looked at: nothing of this depends on them.

mod model;
mod process;

use std::error::Error;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Barrier};
use std::time::Instant;

use lanner::{Client, ClientConfig, Model, Server, ServerConfig};

use crate::process::Process;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--server", model] => serve(Path::new(model), None),
        ["--server", model, directory] => serve(Path::new(model), Some(directory.into())),
        ["--clients", address, sessions] => predict_all(address, sessions.parse()?),
        [model] => measure(model, 4),
        [model, sessions] => measure(model, sessions.parse()?),
        _ => Err("give MODEL.lanner and the number of sessions".into()),
    }
}

fn measure(model: &str, sessions: usize) -> Outcome<()> {
    let bytes = Model::load(Path::new(model))?.manifest().plan.build()?.memory()?.model;
    println!("encoded weights: {:.0} MB, as the plan foresees", bytes as f64 / 1e6);
    memory(model)?;
    let seconds = scaling(model, sessions)?;
    let bandwidths = [1, cores()].map(bandwidth);
    println!(
        "read from memory: {:.1} GB/s with one thread, {:.1} GB/s with {}",
        bandwidths[0] / 1e9,
        bandwidths[1] / 1e9,
        cores()
    );
    model::print(seconds, 2.0 * bytes as f64, bandwidths[1]);
    Ok(())
}

/// Two servers of a model at once, with weights of their own and then with shared ones.
fn memory(model: &str) -> Outcome<()> {
    let directory = std::env::temp_dir().join(format!("lanner-cores-bench-{}", std::process::id()));
    let shared = directory.to_str().ok_or("the temporary directory has no name")?;
    for (what, more) in [("own", None), ("shared", Some(shared))] {
        let start =
            || Process::start(&all_cores(), &["--server", model].into_iter().chain(more).collect::<Vec<_>>());
        let (first, second) = (start()?, start()?);
        for server in [&first, &second] {
            Process::start(&all_cores(), &["--clients", server.words[0].as_str(), "1"])?;
        }
        println!(
            "{what} weights: ready in {} s and {} s; {:.0} MB in two processes",
            first.words[1],
            second.words[1],
            (first.share()? + second.share()?) / 1e6
        );
    }
    Ok(std::fs::remove_dir_all(directory)?)
}

/// Predictions of several sessions at once, with the server on one core and on all; its seconds of one prediction, alone on one core.
fn scaling(model: &str, most: usize) -> Outcome<f64> {
    let others = if cores() > 1 { format!("1-{}", cores() - 1) } else { "0".to_owned() };
    let mut alone = None;
    println!("{:>6} {:>9} {:>16} {:>20}", "cores", "sessions", "predictions/s", "server s/prediction");
    for (own, theirs, count) in [("0".to_owned(), others, 1), (all_cores(), all_cores(), cores())] {
        let server = Process::start(&own, &["--server", model])?;
        for sessions in [1, most] {
            let clients = Process::start(&theirs, &["--clients", &server.words[0], &sessions.to_string()])?;
            let (before, start) = (server.computed()?, Instant::now());
            let clients = clients.go_on()?;
            let (seconds, computed) = (start.elapsed().as_secs_f64(), server.computed()? - before);
            let predictions: f64 = clients.words[0].parse()?;
            println!(
                "{count:>6} {sessions:>9} {:>16.3} {:>20.3}",
                predictions / seconds,
                computed / predictions
            );
            alone.get_or_insert(computed / predictions);
        }
    }
    alone.ok_or_else(|| "nothing was measured".into())
}

/// A server's process: tells its address and the seconds that it took to be ready, and serves until its input ends.
fn serve(path: &Path, share_weights: Option<PathBuf>) -> Outcome<()> {
    let model = Arc::new(Model::load(path)?);
    let start = Instant::now();
    let config = ServerConfig {
        max_sessions: 64,
        max_stock: Some(0),
        max_keys: Some(0),
        share_weights,
        timeout: Some(600.0),
        ..ServerConfig::plaintext(std::env::temp_dir())
    };
    let server = Server::new(vec![("model".to_owned(), model)], config)?;
    server.start()?;
    println!("{} {:.2}", server.address(), start.elapsed().as_secs_f64());
    process::wait()
}

/// A process of clients: each sets up and predicts once, then waits for a line; then each predicts some times, and how often all did is told.
fn predict_all(address: &str, sessions: usize) -> Outcome<()> {
    let together = Barrier::new(sessions + 1);
    let session = || -> Outcome<()> {
        let client = ClientConfig { timeout: Some(600.0), ..ClientConfig::plaintext(address) };
        let mut client = Client::connect(&client)?;
        let sample = vec![0.0; client.manifest().input.shape.iter().product()];
        client.predict(&sample)?;
        together.wait();
        together.wait();
        for _ in 0..PREDICTIONS {
            client.predict(&sample)?;
        }
        Ok(client.close()?)
    };
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..sessions).map(|_| scope.spawn(session)).collect();
        together.wait();
        println!("ready");
        process::wait()?;
        together.wait();
        for session in all {
            session.join().map_err(|_| "a client panicked")??;
        }
        println!("{}", sessions * PREDICTIONS);
        process::wait()
    })
}

/// Bytes in a second that so many threads read together, the most of some times.
fn bandwidth(threads: usize) -> f64 {
    let each = vec![1_u64; (1 << 30) / size_of::<u64>() / threads];
    let copies: Vec<Vec<u64>> = (0..threads).map(|_| each.clone()).collect();
    let once = || {
        let start = Instant::now();
        std::thread::scope(|scope| {
            for words in &copies {
                scope.spawn(move || black_box(words.iter().fold(0_u64, |sum, word| sum.wrapping_add(*word))));
            }
        });
        (threads * size_of_val(&each[..])) as f64 / start.elapsed().as_secs_f64()
    };
    (0..TIMES).map(|_| once()).fold(0.0, f64::max)
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// All cores, as `taskset` names them.
fn all_cores() -> String {
    format!("0-{}", cores() - 1)
}

/// Predictions of each session that are measured.
const PREDICTIONS: usize = 3;
/// How often memory is read.
const TIMES: usize = 7;
