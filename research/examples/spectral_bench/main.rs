//! Times, counts and noise of LoLa's networks on ciphertexts, in LoLa's way, in Falcon's, and by the programs of mode `spectral`, side by side;
//! `cargo run --release -p lanner-research --example spectral_bench [-- [--json] [REPEATS [NETWORK [WEIGHTS]]]]`.
//!
//! Weights are random, circulant in blocks where the paper replaces a layer, or those of a network of `models/`: WEIGHTS is a file of the three layers' weights,
//! single-precision numbers. Everything is computed modulo one prime, of which a network takes two or three, on one
//! thread. Each result is decrypted and compared outside the clock, and every count with its formula. Limbs leave room to seal the response, which is not done here: what is timed are
//! layers.
//!
//! Of `mnist` (845 values behind the convolution, then 100, then 10) all layers are run, each on what the one before it made. Of `cifar` (83 maps of 14x14, then 163 of 5x5) the replaced layer is run,
//! on a fresh encryption of as many limbs as the network has left there; LoLa's way for some of its 4075 outputs, which are computed alike, and its time is multiplied.
#![allow(clippy::unwrap_used, missing_docs)]
#![allow(clippy::doc_markdown, reason = "LoLa is a name, not code")]

#[path = "../../../crates/protocol/examples/queue/mod.rs"]
mod queue;

mod layer;
mod network;
mod setting;

use lanner_primitives::parallel;
use network::{cifar, mnist};

/// `1 mod 2^16`: one of the paper's primes.
const T: u64 = 2_148_728_833;

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--json");
    let repeats = arguments.next().map_or(5, |repeats| repeats.parse().unwrap());
    let chosen = arguments.next().unwrap_or_default();
    parallel::set_threads(1);
    if !json() {
        println!("{}, one thread; t = {T}; medians of {repeats}", machine());
    }
    for (name, run) in [("mnist", mnist as fn(usize)), ("cifar", cifar)] {
        if name.contains(&chosen) {
            run(repeats);
        }
    }
}

/// The file of weights, if there is one.
fn weights_file() -> Option<String> {
    std::env::args().skip(1).filter(|argument| argument != "--json").nth(2)
}

/// The processor, as the kernel calls it.
fn machine() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    name.map_or_else(|| std::env::consts::ARCH.into(), |(_, name)| name.into())
}

/// Whether the output is for programs.
fn json() -> bool {
    std::env::args().any(|argument| argument == "--json")
}
