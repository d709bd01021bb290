//! Whether operations on secrets take a time that tells of the secrets: fixed ones against random ones, as in dudect
//! [RBV17](https://eprint.iacr.org/2016/1123).
//!
//! ```text
//! cargo run --release -p lanner-research --example constant_time [-- --json] [MEASUREMENTS]
//! ```
//!
//! For each operation it prints the Welch statistic of its times, on one core. Beyond 4.5 in magnitude the times differ; two operations do so on
//! purpose, which shows that this would be seen. A time that differs on this machine is a leak; one that does not is no proof.
#![allow(clippy::unwrap_used, reason = "an example ends where its inputs are wrong")]

mod operations;
mod welch;

use lanner_primitives::parallel;
use operations::operations;

/// The magnitude beyond which times differ: by chance one test in 150,000 is there.
const LIMIT: f64 = 4.5;

/// Measurements of each operation, unless the command line says how many.
const MEASUREMENTS: usize = 20_000;

fn main() {
    parallel::set_threads(1);
    let (flags, numbers): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument == "--json");
    let measurements = numbers.first().map_or(MEASUREMENTS, |number| number.parse().unwrap());
    if flags.is_empty() {
        println!("{measurements} measurements of each; times differ beyond {LIMIT}");
    }
    for operation in operations() {
        let t = (operation.test)(measurements);
        let (name, leaks) = (operation.name, operation.leaks);
        if flags.is_empty() {
            let told = if t.abs() > LIMIT { "differs" } else { "" };
            println!("{name:60} {t:8.2} {told}{}", if leaks { ", on purpose" } else { "" });
        } else {
            println!(
                r#"{{"operation": "{name}", "t": {t:.2}, "limit": {LIMIT}, "measurements": {measurements}, "leaks": {leaks}}}"#
            );
        }
    }
}
