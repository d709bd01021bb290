//! Processes that die: at every boundary of an operation, and at random.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::*;

/// The boundaries of putting and of taking, in their order.
const BOUNDARIES: [&str; 6] = ["begun", "written", "complete", "read", "burnt", "removed"];

/// Ends the process if it was told to end here.
pub(crate) fn reached(boundary: &str) {
    static LAST: OnceLock<Option<String>> = OnceLock::new();
    let last = LAST.get_or_init(|| env::var(LAST_BOUNDARY).ok());
    if last.as_deref() == Some(boundary) {
        std::process::abort();
    }
}

/// What a child does: puts and takes for ever, or until it dies, and says each thing that it has done. It is no test of its own.
#[test]
fn child() {
    let Ok(root) = env::var(ROOT) else { return };
    let first: u64 = env::var(FIRST).unwrap().parse().unwrap();
    let stock = Stock::new(root, Party::Server, Limits::default());
    // Standard output is the test harness's.
    let mut said = std::io::stderr();
    if let Err(error) = put_and_take(&stock, first, &mut said) {
        say(&mut said, &format!("failed {error}"));
    }
}

fn put_and_take(stock: &Stock, first: u64, said: &mut impl Write) -> Result<(), StoreError> {
    for number in first.. {
        say(said, &format!("begin {number}"));
        stock.put(PAIRING, id(number), material(&number.to_le_bytes()))?;
        say(said, &format!("put {number}"));
        if number % 3 == 0 {
            continue;
        }
        let oldest = stock.available(PAIRING)?[0];
        say(said, &format!("take {}", number_of(oldest)));
        let taken = stock.take(PAIRING, oldest)?;
        assert_eq!(taken.as_bytes(), number_of(oldest).to_le_bytes());
        say(said, &format!("served {}", number_of(oldest)));
    }
    Ok(())
}

/// Says a line whole or not at all.
fn say(said: &mut impl Write, line: &str) {
    said.write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// What children said, over all their lives.
#[derive(Default)]
struct History {
    next: u64,
    put: BTreeSet<u64>,
    /// How often each was served.
    served: BTreeMap<u64, usize>,
    /// What a child died about.
    open: BTreeSet<u64>,
    failures: Vec<String>,
}

/// When a child is killed: so long after it said so many lines. However slow the machine, it got to work first.
#[derive(Clone, Copy)]
struct Death {
    lines: usize,
    after: Duration,
}

impl History {
    /// Runs a child until it ends or is killed.
    fn live(&mut self, root: &TempDir, prepare: impl FnOnce(&mut Command), death: Option<Death>) {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", "tests::crashes::child", "--nocapture"]);
        command.env(ROOT, state(root)).env(FIRST, self.next.to_string());
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        prepare(&mut command);
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        if let Some(Death { lines: count, after }) = death {
            lines.by_ref().take(count).for_each(|line| self.hear(&line));
            thread::sleep(after);
            child.kill().unwrap();
        }
        lines.for_each(|line| self.hear(&line));
        child.wait().unwrap();
        self.next += 1;
    }

    fn hear(&mut self, line: &str) {
        let Some((word, rest)) = line.split_once(' ') else { return };
        let number = || rest.parse::<u64>().unwrap();
        match word {
            "begin" => {
                self.next = number();
                self.open.insert(number());
            }
            "put" => {
                self.put.insert(number());
                self.open.remove(&number());
            }
            "take" => drop(self.open.insert(number())),
            "served" => {
                *self.served.entry(number()).or_default() += 1;
                self.open.remove(&number());
            }
            "failed" => self.failures.push(rest.to_owned()),
            _ => {}
        }
    }

    /// Nothing was served twice; what was put and not taken is there, but for what a child died about.
    fn check(mut self, root: &TempDir) {
        let stock = stock(root, Limits::default());
        for name in stock.available(PAIRING).unwrap() {
            assert_eq!(stock.take(PAIRING, name).unwrap().as_bytes(), number_of(name).to_le_bytes());
            *self.served.entry(number_of(name)).or_default() += 1;
        }
        assert!(self.served.values().all(|times| *times == 1), "served twice: {:?}", self.served);
        let lost: Vec<_> = self.put.iter().filter(|number| !self.served.contains_key(number)).collect();
        assert!(lost.iter().all(|number| self.open.contains(number)), "lost: {lost:?}");
    }
}

#[test]
fn who_dies_at_a_boundary_serves_nothing_twice() {
    for boundary in BOUNDARIES {
        let root = tempfile::tempdir().unwrap();
        drop(paired(&root, Limits::default()));
        let mut history = History::default();
        for _ in 0..3 {
            history.live(&root, |command| _ = command.env(LAST_BOUNDARY, boundary), None);
        }
        // One that lives on finds no fault.
        history.live(&root, |_| {}, Some(Death { lines: 40, after: Duration::ZERO }));
        assert!(!history.put.is_empty() && history.failures.is_empty(), "{boundary}");
        history.check(&root);
    }
}

#[test]
fn two_hundred_random_deaths_serve_nothing_twice() {
    let root = tempfile::tempdir().unwrap();
    drop(paired(&root, Limits::default()));
    let mut history = History::default();
    let random = AtomicU64::new(u64::from(std::process::id()));
    for _ in 0..200 {
        let drawn =
            random.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed).wrapping_mul(0xd6e8_feb8_6659_fd93)
                >> 40;
        // Some die as they start, the others in the middle of any operation.
        let death = Death { lines: drawn as usize % 24, after: Duration::from_micros(drawn / 24 % 4_000) };
        history.live(&root, |_| {}, Some(death));
    }
    assert!(history.failures.is_empty(), "{:?}", history.failures);
    assert!(history.served.len() > 100, "most children got to work: {}", history.served.len());
    history.check(&root);
}

#[test]
fn a_full_disk_is_an_error_and_loses_nothing_else() {
    let root = tempfile::tempdir().unwrap();
    let stock = paired(&root, Limits::default());
    stock.put(PAIRING, id(1 << 40), material(&(1_u64 << 40).to_le_bytes())).unwrap();
    drop(stock);
    let mut history = History { put: [1 << 40].into(), ..History::default() };
    // No file may grow beyond some blocks of 512 bytes: the index's log does soon.
    let limited = |command: &mut Command| {
        let program = command.get_program().to_owned();
        let arguments: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
        let environment: Vec<_> =
            command.get_envs().map(|(name, value)| (name.to_owned(), value.unwrap().to_owned())).collect();
        *command = Command::new("sh");
        command.args(["-c", "trap '' XFSZ; ulimit -f 200; exec \"$0\" \"$@\""]).arg(program).args(arguments);
        command.envs(environment).stdout(Stdio::null()).stderr(Stdio::piped());
    };
    history.live(&root, limited, None);
    assert_eq!(history.failures.len(), 1, "{:?}", history.failures);
    history.check(&root);
}

fn number_of(name: MaterialId) -> u64 {
    u64::from_be_bytes(*name.as_bytes().first_chunk().unwrap())
}

const ROOT: &str = "LANNER_TEST_STORE";
const FIRST: &str = "LANNER_TEST_FIRST";
const LAST_BOUNDARY: &str = "LANNER_TEST_LAST_BOUNDARY";
