//! Times the kernels of every backend of this machine; `cargo run -p lanner-ring --release --example ring_bench`.
//!
//! Each result is compared with that of the portable backend outside the clock. Medians of single calls. With `-- --json`
//! one document a line instead of tables.

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use lanner_ring::{
    Accumulator, Backend, Buffer, Ending, EvalPermutation, GaloisElement, Modulus, Ntt, sample,
};
use lanner_testkit::TestRng;

const PRIME: u64 = 1_125_899_903_827_969;
/// A prime of 40 bits, which leaves transforms room.
const SMALL_PRIME: u64 = 1_099_510_054_913;
const DEGREES: [usize; 3] = [2048, 4096, 8192];
const TERMS: usize = 3;
const REPEATS: usize = 2001;
const OPERATIONS: [&str; 8] =
    ["forward", "inverse", "mul", "mac", "dot", "rotated", "forward, 40 bits", "inverse, 40 bits"];

fn main() -> Result<(), Box<dyn Error>> {
    if !json() {
        println!("machine: {}", machine());
        println!("q = {PRIME}, {REPEATS} repeats, dot of {TERMS} terms; medians in microseconds");
        let columns = OPERATIONS.map(|name| format!("{name:>WIDTH$}")).join(" ");
        println!("{:>10} {:>6} {columns}", "backend", "n");
    }
    let cycle = cycle();
    if json() {
        println!(r#"{{"bench": "ring", "name": "cycle", "seconds": {cycle:e}}}"#);
    } else {
        println!("a cycle takes {:.3} ns", cycle * 1e9);
    }
    let modulus = Modulus::new(PRIME)?;
    for n in DEGREES {
        let reference = measure(modulus.with_backend(Backend::PORTABLE)?, n)?;
        print_row(Backend::PORTABLE, n, &reference);
        for &backend in Backend::available().iter().rev().filter(|backend| **backend != Backend::PORTABLE) {
            let Ok(modulus) = modulus.with_backend(backend) else { continue };
            let rows = measure(modulus, n)?;
            if rows.iter().zip(&reference).any(|(row, expected)| row.result[..] != expected.result[..]) {
                return Err(format!("{backend:?} differs from the portable kernels at n = {n}").into());
            }
            print_row(backend, n, &rows);
        }
    }
    Ok(())
}

/// Characters of a column.
const WIDTH: usize = 16;

/// Whether the output is for programs.
fn json() -> bool {
    std::env::args().any(|argument| argument == "--json")
}

/// One operation: its median time and what it computed.
struct Row {
    micros: f64,
    result: Buffer,
}

fn measure(modulus: Modulus, n: usize) -> Result<Vec<Row>, Box<dyn Error>> {
    let ntt = Ntt::new(&modulus, n)?;
    let permutation = EvalPermutation::new(GaloisElement::rotation(1, n)?);
    let ending = Ending { added: None, subtracted: None, permutation: &permutation };
    let mut rng = TestRng::new(1);
    let mut random = || {
        let mut values = Buffer::zeroed(n);
        sample::uniform_below(&modulus, &mut values, &mut rng);
        values
    };
    let vectors: Vec<_> = (0..2 * TERMS).map(|_| random()).collect();
    let (a, b): (Vec<&[u64]>, Vec<&[u64]>) = (
        vectors[..TERMS].iter().map(|v| &v[..]).collect(),
        vectors[TERMS..].iter().map(|v| &v[..]).collect(),
    );
    let mut sum = Accumulator::new(&modulus, n);
    let small = Modulus::new(SMALL_PRIME)?.with_backend(modulus.backend())?;
    let small_ntt = Ntt::new(&small, n)?;
    let mut residues = Buffer::zeroed(n);
    sample::uniform_below(&small, &mut residues, &mut TestRng::new(2));
    let mut rows = vec![
        time(a[0], |values| ntt.forward(values)),
        time(a[0], |values| ntt.inverse(values)),
        time(a[0], |values| modulus.mul_assign_slice(values, b[0])),
        time(a[0], |values| sum.mul_add(values, b[0])),
        time(a[0], |values| modulus.dot(values, &a, &b)),
        time(a[0], |values| modulus.dot_permuted(values, &a, &b, &ending)),
        time(&residues, |values| small_ntt.forward(values)),
        time(&residues, |values| small_ntt.inverse(values)),
    ];
    sum.reduce_into(&mut rows[3].result);
    Ok(rows)
}

/// Seconds of a processor cycle: a multiplication and an addition that wait for each other take four, on every processor that has the
/// vector kernels.
fn cycle() -> f64 {
    const STEPS: u32 = 100_000;
    let runs = (0..50).map(|_| {
        let start = Instant::now();
        let chain = (0..STEPS).fold(black_box(3_u64), |x, _| x.wrapping_mul(x).wrapping_add(2));
        black_box(chain);
        start.elapsed().as_secs_f64()
    });
    runs.fold(f64::INFINITY, f64::min) / f64::from(4 * STEPS)
}

/// Times `run` on a buffer that holds `input` at first and its own results later; the result is that of the last run.
fn time(input: &[u64], mut run: impl FnMut(&mut [u64])) -> Row {
    let mut values = Buffer::from(input);
    let mut nanos: Vec<_> = (0..REPEATS)
        .map(|_| {
            let start = Instant::now();
            run(black_box(&mut values));
            start.elapsed().as_nanos()
        })
        .collect();
    nanos.sort_unstable();
    Row { micros: nanos[REPEATS / 2] as f64 / 1000.0, result: values }
}

fn print_row(backend: Backend, n: usize, rows: &[Row]) {
    if json() {
        for (name, Row { micros, .. }) in OPERATIONS.iter().zip(rows) {
            let seconds = micros / 1e6;
            println!(
                r#"{{"bench": "ring", "name": "{name}", "backend": "{backend:?}", "n": {n}, "seconds": {seconds:e}, "repeat": {REPEATS}}}"#
            );
        }
        return;
    }
    let times: Vec<_> = rows.iter().map(|row| format!("{:>WIDTH$.2}", row.micros)).collect();
    println!("{:>10} {n:>6} {}", format!("{backend:?}"), times.join(" "));
}

/// The processor, where the system tells it.
fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{} ({cores} cores, {})", name.unwrap_or("unknown processor"), std::env::consts::ARCH)
}
