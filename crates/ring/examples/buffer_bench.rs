//! Times what a buffer costs besides its use: taking zeros, erasing, keeping lines;
//! `cargo run -p lanner-ring --release --example buffer_bench`.
//!
//! Each thread holds some buffers and replaces one after the other, as a session does. Nanoseconds of one buffer, the least of some repeats, by the
//! number of threads at once and of words. Buffers of one line show what finding lines takes, lock included; the others what erasing adds.

use std::hint::black_box;
use std::sync::Barrier;
use std::time::Instant;

use lanner_ring::Buffer;

/// Buffers that each thread holds.
const HELD: usize = 8;
/// Words that a thread goes through in one repeat, and buffers at most.
const WORK: [usize; 2] = [1 << 26, 1 << 20];
const REPEATS: usize = 5;

fn main() {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    println!("{:>8} {}", "words", [1, 2, 4].map(|threads| format!("{threads:>5} threads")).join(" "));
    for words in [8, 8192, 3 * 8192] {
        let times = [1, 2, 4].map(|threads| format!("{:>10.0} ns", best(threads, words) * 1e9));
        println!("{words:>8} {}", times.join(" "));
    }
    println!("on {cores} cores");
}

/// Seconds of one buffer where so many threads are at it.
fn best(threads: usize, words: usize) -> f64 {
    let times = (0..REPEATS).map(|_| seconds(threads, words));
    times.fold(f64::INFINITY, f64::min)
}

fn seconds(threads: usize, words: usize) -> f64 {
    let (together, count) = (Barrier::new(threads), (WORK[0] / words).min(WORK[1]));
    let run = || {
        let mut held: Vec<Buffer> = (0..HELD).map(|_| Buffer::zeroed(words)).collect();
        together.wait();
        let start = Instant::now();
        for number in 0..count {
            held[number % HELD] = Buffer::zeroed(words);
            black_box(&held[number % HELD]);
        }
        start.elapsed().as_secs_f64() / count as f64
    };
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        all.into_iter().filter_map(|thread| thread.join().ok()).fold(0.0, f64::max)
    })
}
