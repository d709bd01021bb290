//! Measures what a server keeps in memory for a model and for each client;
//! `cargo run -p lanner --release --example clients_bench -- MODEL.lanner [CLIENTS]`.
//!
//! Every client is a process of its own on this machine. Resident memory as the kernel counts it, in MB, beside what the plan
//! foresees: after the model is encoded; then with each client connected and one prediction prepared; then after each has had a second
//! prediction. Inputs are zeros, and results are not looked at: nothing of this depends on them.

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use lanner::{Client, ClientConfig, Model, Server, ServerConfig};

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--client", address] => client(address),
        [model] => server(Path::new(model), 4),
        [model, clients] => server(Path::new(model), clients.parse()?),
        _ => Err("give MODEL.lanner and the number of clients".into()),
    }
}

/// MB in memory, by the kernel's count.
fn resident() -> Outcome<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line =
        status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("the kernel does not say")?;
    let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kilobytes * 1024.0 / 1e6)
}

fn server(path: &Path, clients: usize) -> Outcome<()> {
    let model = Arc::new(Model::load(path)?);
    let built = model.manifest().plan.build()?;
    let memory = built.memory()?;
    let mega = |bytes: u64| bytes as f64 / 1e6;
    println!(
        "foreseen at the server: model {:.0}, each client {:.0}: keys {:.0}, a prediction {:.0}, at work {:.0}; at the client: {:.0} a prediction",
        mega(memory.model),
        mega(memory.client()),
        mega(memory.session),
        mega(memory.server_material),
        mega(memory.working),
        mega(memory.client_material)
    );
    let before = resident()?;
    let start = Instant::now();
    let config = ServerConfig {
        max_sessions: clients,
        timeout: Some(600.0),
        ..ServerConfig::plaintext(std::env::temp_dir())
    };
    let server = Server::new(vec![("model".to_owned(), model)], config)?;
    server.start()?;
    let mut last = resident()?;
    println!(
        "model {:.0}, encoded in {:.1} s; {last:.0} in all",
        last - before,
        start.elapsed().as_secs_f64()
    );
    let mut running = Vec::with_capacity(clients);
    for number in 1..=clients {
        let mut client = Running::start(&server.address())?;
        let report = client.line()?;
        let now = resident()?;
        println!("client {number}: {:+.0}, {now:.0} in all; {report}", now - last);
        last = now;
        running.push(client);
    }
    for (number, client) in running.iter_mut().enumerate() {
        let report = client.ask()?;
        println!("client {} again: {:.0} in all; {report}", number + 1, resident()?);
    }
    Ok(())
}

/// A client's process; it ends when it is dropped.
struct Running {
    process: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Running {
    fn start(address: &str) -> Outcome<Self> {
        let mut process = Command::new(std::env::current_exe()?)
            .args(["--client", address])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let output = process.stdout.take().ok_or("no output")?;
        Ok(Self { process, output: BufReader::new(output) })
    }

    fn line(&mut self) -> Outcome<String> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    }

    fn ask(&mut self) -> Outcome<String> {
        self.process.stdin.as_mut().ok_or("no input")?.write_all(b"\n")?;
        self.line()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Without input it ends by itself.
        self.process.stdin = None;
        let _ = self.process.wait();
    }
}

fn client(address: &str) -> Outcome<()> {
    let mut client =
        Client::connect(&ClientConfig { timeout: Some(600.0), ..ClientConfig::plaintext(address) })?;
    let sample = vec![0.0; client.manifest().input.shape.iter().product()];
    client.prepare(1)?;
    let first = client.predict(&sample)?;
    client.prepare(1)?;
    let phases = first.phases;
    println!(
        "set-up {:.2} s, offline {:.2} s, online {:.2} s; {:.0} at the client",
        phases.setup.seconds,
        phases.offline.seconds,
        phases.online.seconds,
        resident()?
    );
    for line in std::io::stdin().lock().lines() {
        line?;
        let again = client.predict(&sample)?.phases;
        client.prepare(1)?;
        println!(
            "offline {:.2} s, online {:.2} s; {:.0} at the client",
            again.offline.seconds,
            again.online.seconds,
            resident()?
        );
    }
    Ok(client.close()?)
}
