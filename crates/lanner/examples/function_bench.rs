//! Times functions of 16,384 values by oblivious transfer: `cargo run -p lanner --release --example function_bench [-- REPEATS]`.
//!
//! The functions and scales of OPAF's tables: inputs in (-8, 8), or (-8, 0) for exponentials of what is negative, and outputs with as many
//! fraction bits; then tables of 8 bits. Both parties run at once, a thread each, over queues in memory. Results are checked outside the clock.
//! Medians in milliseconds; bytes are those of both parties, a session's set-up apart; a round is a message of the client's and the answer to it.
//! ULP is the largest error over all inputs, in units of the last place of the output.

mod two_parties;

use lanner_primitives::{Prg, Ring, Seed, Share};
use lanner_quantize::polynomials;
use lanner_transfers::Layer;
use two_parties::Failure;

/// Values: the paper's.
const VALUES: usize = 1 << 14;

/// What is measured.
struct Row {
    name: &'static str,
    function: fn(f64) -> f64,
    /// Bits of the input.
    bits: u32,
    /// Fraction bits of the input and of the output.
    scales: [i32; 2],
    /// Bits of the output above its fraction, with its sign.
    whole: u32,
    /// The largest error asked for.
    tolerance: f64,
}

const fn row(
    name: &'static str,
    function: fn(f64) -> f64,
    bits: u32,
    scales: [i32; 2],
    tolerance: f64,
) -> Row {
    Row { name, function, bits, scales, whole: 2, tolerance }
}

const ROWS: [Row; 18] = [
    row("exp of negatives", exp_of_negatives, 15, [12, 12], 1.0),
    Row { whole: 13, ..row("exp", f64::exp, 16, [12, 12], 2.0) },
    row("sigmoid", sigmoid, 16, [12, 12], 1.0),
    row("tanh", f64::tanh, 16, [12, 12], 1.0),
    row("sigmoid", sigmoid, 16, [12, 12], 2.5),
    row("tanh", f64::tanh, 16, [12, 12], 3.5),
    row("tail of GELU", gelu_tail, 16, [12, 12], 1.0),
    row("exp of negatives", exp_of_negatives, 15, [12, 14], 1.0),
    row("sigmoid", sigmoid, 16, [12, 14], 1.0),
    row("tanh", f64::tanh, 16, [12, 14], 1.0),
    row("exp of negatives", exp_of_negatives, 19, [16, 16], 1.0),
    Row { whole: 13, ..row("exp", f64::exp, 20, [16, 16], 2.0) },
    row("sigmoid", sigmoid, 20, [16, 16], 1.0),
    row("tanh", f64::tanh, 20, [16, 16], 1.0),
    row("sigmoid", sigmoid, 20, [16, 16], 2.5),
    row("tanh", f64::tanh, 20, [16, 16], 3.5),
    row("table of 8 bits", sigmoid, 8, [4, 6], 0.51),
    row("table of 8 bits", sine, 8, [4, 12], 0.51),
];

/// On (-4, 4), that is.
fn exp_of_negatives(x: f64) -> f64 {
    (x - 4.0).exp()
}

/// Nothing that polynomials of few segments come near to.
fn sine(x: f64) -> f64 {
    (40.0 * x).sin()
}

/// `x / (1 + exp(2 u))` below 0, and its mirror image above: GELU by its tanh formula, less its `Relu`.
fn gelu_tail(x: f64) -> f64 {
    let x = x.abs();
    let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x * x * x);
    -x / (1.0 + (2.0 * inner).exp())
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn main() -> Result<(), Failure> {
    let repeats: usize = std::env::args().nth(1).map_or(Ok(9), |repeats| repeats.parse())?;
    println!("{VALUES} values, {repeats} repeats; medians in milliseconds, megabytes");
    println!(
        "{:<17} {:>5} {:>5} {:>4} {:>7} {:>8} {:>6} {:>5} {:>7} {:>6} {:>6} {:>6}",
        "function",
        "bits",
        "scale",
        "to",
        "factors",
        "segments",
        "degree",
        "ULP",
        "offline",
        "online",
        "bytes",
        "rounds"
    );
    for row in &ROWS {
        measure(row, repeats)?;
    }
    Ok(())
}

fn measure(row: &Row, repeats: usize) -> Result<(), Failure> {
    let &Row { name, function, bits, scales: [scale, to], whole, tolerance } = row;
    let units = [scale, to].map(|scale| f64::from(-scale).exp2());
    let (fixed, error) = polynomials(function, -1 << (bits - 1), bits, units, tolerance);
    let numbers = fixed.factors.as_ref().map_or(0, |factors| factors.values.len());
    let step = lanner_plan::polynomials(&fixed);
    let (ring, after) = (Ring::Pow2(bits), Ring::Pow2(to as u32 + whole));
    let layer = Layer::function(&step, VALUES, bits, after.bits(), 0)?;
    let secrets: Vec<i64> = (0..VALUES as i64).map(|i| ring.signed(ring.embed(i * 7919))).collect();
    let at_server = Share::random(ring, VALUES, &mut Prg::new(Seed::from_bytes([3; 16])));
    let at_client = Share::embed(ring, &secrets).sub(&at_server)?;
    let measured = two_parties::measure(&layer, &vec![[at_client, at_server]; repeats])?;
    let expected: Vec<i64> = secrets.iter().map(|x| fixed.at(*x)).collect();
    if measured.outputs.iter().any(|output| *output != expected) {
        return Err("the result is wrong".into());
    }
    let [offline, online] = measured.times.map(median);
    let megabytes = measured.bytes / 1e6;
    let (segments, degree, rounds) = (fixed.polynomials.len(), fixed.degree(), layer.online_cost().rounds());
    println!(
        "{name:<17} {bits:>5} {scale:>5} {to:>4} {numbers:>7} {segments:>8} {degree:>6} {error:>5.2} {offline:>7.1} {online:>6.1} {megabytes:>6.2} {rounds:>6}"
    );
    Ok(())
}

/// The middle one; the larger of two.
fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
