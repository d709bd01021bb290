//! Processes of this program, bound to cores, and what Linux tells of them.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::Outcome;

/// A process that has told its first line. It ends when it is dropped.
pub(crate) struct Process {
    child: Child,
    output: BufReader<ChildStdout>,
    /// The words of the line that it told last.
    pub(crate) words: Vec<String>,
}

impl Process {
    /// Starts this program on some cores, as `taskset` names them, and waits for its first line.
    pub(crate) fn start(cores: &str, arguments: &[&str]) -> Outcome<Self> {
        let mut child = Command::new("taskset")
            .args(["--cpu-list", cores])
            .arg(std::env::current_exe()?)
            .args(arguments)
            // As `lanner serve` does: what is freed goes back.
            .envs([("MALLOC_MMAP_THRESHOLD_", "4194304"), ("MALLOC_TRIM_THRESHOLD_", "8388608")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let output = BufReader::new(child.stdout.take().ok_or("no output")?);
        Self { child, output, words: Vec::new() }.read()
    }

    /// Sends a line and waits for the next.
    pub(crate) fn go_on(mut self) -> Outcome<Self> {
        self.child.stdin.as_mut().ok_or("no input")?.write_all(b"\n")?;
        self.read()
    }

    fn read(mut self) -> Outcome<Self> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        self.words = line.split_whitespace().map(str::to_owned).collect();
        if self.words.is_empty() { Err("a process ended".into()) } else { Ok(self) }
    }

    /// Bytes in memory, each page divided by the number of processes that have it.
    pub(crate) fn share(&self) -> Outcome<f64> {
        let told = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", self.child.id()))?;
        let share =
            told.lines().find_map(|line| line.strip_prefix("Pss:")).ok_or("the kernel does not say")?;
        let kilobytes: f64 = share.trim().trim_end_matches(" kB").parse()?;
        Ok(kilobytes * 1024.0)
    }

    /// Seconds that its threads have computed, those in the kernel among them.
    pub(crate) fn computed(&self) -> Outcome<f64> {
        let told = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let behind_name = told.rsplit_once(')').ok_or("the kernel does not say")?.1;
        let ticks: Vec<f64> = behind_name.split_whitespace().skip(11).take(2).flat_map(str::parse).collect();
        Ok(ticks.iter().sum::<f64>() / TICKS)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Without input it ends by itself.
        self.child.stdin = None;
        let _ = self.child.wait();
    }
}

/// Waits for a line, or the end of input.
pub(crate) fn wait() -> Outcome<()> {
    std::io::stdin().lock().read_line(&mut String::new())?;
    Ok(())
}

/// In a second, on every Linux of today.
const TICKS: f64 = 100.0;
