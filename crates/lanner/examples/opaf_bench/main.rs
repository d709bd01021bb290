//! Exponentials, sigmoid and tanh of 16,384 values in three ways, of the same transfers: the library's polynomials, SIRNN's lookups and OPAF's
//! exponentials of shares. `cargo run -p lanner --release --example opaf_bench [-- REPEATS [markdown]]`.
//!
//! Inputs in (-8, 8) at scale 12 or 16, or (-8, 0) for exponentials of what is negative; outputs with as many fraction bits. Both parties run at
//! once, a thread each, over queues in memory. Outside the clock each way runs on every input, shared in several ways: ULP is the largest error of all
//! these against double precision, in units of the last place of the output, and *shares* says whether any result depends on how its input was shared.
//! Medians in milliseconds; bytes are those of both parties, a session's set-up apart; a round is a message of the client's and the answer to it.

mod blocks;
mod count;
mod opaf;
mod reciprocal;
mod sirnn;
mod table;
#[path = "../two_parties/mod.rs"]
mod two_parties;

use lanner_graph::elementwise::{FixedFunction, polynomials};
use lanner_primitives::{Prg, Ring, Seed};
use lanner_protocol::nonlinear::ot_nonlinear::blocks::Program;
use lanner_protocol::nonlinear::ot_nonlinear::{Layer, Polynomials};
use lanner_share::Share;
use reciprocal::Reciprocal;
use table::{Row, Table};
use two_parties::{Failure, measure, median};

/// Values: the paper's.
const VALUES: usize = 1 << 14;

/// What is computed, of integers in a range that have `scale` fraction bits, like the results.
#[derive(Clone, Copy)]
struct Function {
    name: &'static str,
    of: fn(f64) -> f64,
    scale: u32,
    inputs: [i64; 2],
}

impl Function {
    fn new(name: &'static str, of: fn(f64) -> f64, scale: u32, from: i64, to: i64) -> Self {
        Self { name, of, scale, inputs: [from << scale, (to << scale) - 1] }
    }

    fn exact(&self, x: i64) -> f64 {
        let unit = f64::from(self.scale).exp2();
        (self.of)(x as f64 / unit) * unit
    }
}

/// One way to compute it.
struct Way<'w> {
    name: String,
    /// What inputs are shared modulo, and a public number that is added before.
    ring: Ring,
    offset: i64,
    /// What every result must be within.
    within: f64,
    /// What the paper says of it.
    paper: &'w str,
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

struct Bench {
    table: Table,
    repeats: usize,
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let repeats = arguments.next().map_or(Ok(9), |repeats| repeats.parse())?;
    let is_markdown = arguments.next().is_some_and(|format| format == "markdown");
    let mut bench = Bench { table: Table::new(is_markdown), repeats };
    for scale in [12, 16] {
        bench.exponentials(scale)?;
        bench.curves(scale)?;
    }
    Ok(())
}

impl Bench {
    fn exponentials(&mut self, scale: u32) -> Result<(), Failure> {
        let bits = scale + 4;
        let exp = Function::new("exp", f64::exp, scale, -8, 8);
        let negative = Function::new("exp of negatives", f64::exp, scale, -8, 0);
        if scale == 12 {
            self.polynomials(&exp, 1.0, "")?;
        }
        let of_shares = |inner| opaf::Exp { input: scale, scale, bits, inner };
        let paper = if scale == 12 { "143 ms, 23 rounds, ULP 6" } else { "23 rounds" };
        for inner in [21, 24] {
            self.opaf(&exp, of_shares(inner), of_shares(inner), of_shares(inner).to(), paper)?;
        }
        if scale == 12 {
            self.polynomials(&negative, 1.0, "")?;
        }
        let paper = if scale == 12 { "172 ms, 26 rounds" } else { "46 rounds" };
        for digits in digits(scale) {
            let way = Way {
                name: format!("SIRNN, digits of {digits:?} bits"),
                ring: Ring::Pow2(bits - 1),
                offset: 0,
                within: 8.0,
                paper,
            };
            let layer = Layer::of(sirnn::NegativeExp { scale, digits }, VALUES, bits - 1, scale + 2)?;
            self.row(&negative, &way, &layer)?;
        }
        let paper = if scale == 12 { "95 ms, 12 rounds, ULP 1" } else { "12 rounds" };
        let exp = of_shares(12 + scale);
        self.opaf(&negative, opaf::NegativeExp(exp), exp, scale + 2, paper)
    }

    fn curves(&mut self, scale: u32) -> Result<(), Failure> {
        for (name, of, is_tanh) in [("sigmoid", sigmoid as fn(f64) -> f64, false), ("tanh", f64::tanh, true)]
        {
            let function = Function::new(name, of, scale, -8, 8);
            if scale == 12 {
                for tolerance in if is_tanh { [1.0, 4.0] } else { [1.0, 3.0] } {
                    self.polynomials(&function, tolerance, "")?;
                }
            }
            self.sirnn(&function, is_tanh)?;
            self.of_shares(&function, is_tanh)?;
        }
        Ok(())
    }

    fn polynomials(&mut self, function: &Function, tolerance: f64, paper: &str) -> Result<(), Failure> {
        let [from, to] = function.inputs;
        let count = (to - from + 1) as u64;
        let bits = count.trailing_zeros();
        // The middle of the domain is 0.
        let middle = from + (count / 2) as i64;
        let unit = f64::from(-(function.scale as i32)).exp2();
        let of = |x: f64| (function.of)(x + middle as f64 * unit);
        let (fixed, error) = polynomials(of, from - middle, bits, [unit; 2], tolerance);
        let FixedFunction { low, bits, ref polynomials, shift } = fixed;
        let segments = polynomials.len();
        let largest = function.exact(to).abs().max(function.exact(from).abs());
        let after = largest.log2().ceil() as u32 + 2;
        let step = Polynomials { low, bits, polynomials: polynomials.clone(), shift };
        let layer = Layer::function(&step, VALUES, bits, after, 0)?;
        let name = format!("polynomials, {segments} of degree {}", fixed.degree());
        let way = Way { name, ring: Ring::Pow2(bits), offset: -middle, within: error + 1e-6, paper };
        self.row(function, &way, &layer)
    }

    fn sirnn(&mut self, function: &Function, is_tanh: bool) -> Result<(), Failure> {
        let scale = function.scale;
        let bits = scale + 4;
        // But for the lowest, whose magnitude has a bit more.
        let function = Function { inputs: [function.inputs[0] + 1, function.inputs[1]], ..*function };
        let paper = match (scale, is_tanh) {
            (12, false) => "314 ms, 97 rounds",
            (12, true) => "327 ms, 91 rounds",
            (_, false) => "117 rounds",
            (_, true) => "109 rounds",
        };
        let [whole, short] = digits(scale);
        let (line, iterated) = (Reciprocal::line(scale), Reciprocal::iterated(scale));
        for (digits, reciprocal, what) in
            [(whole, line, ""), (short, line, ""), (short, iterated, ", one iteration")]
        {
            let name = format!("SIRNN, digits of {digits:?} bits{what}");
            let way = Way { name, ring: Ring::Pow2(bits), offset: 0, within: 8.0, paper };
            let curve = sirnn::Curve { scale, digits, reciprocal, is_tanh };
            self.row(&function, &way, &Layer::of(curve, VALUES, bits, scale + 2)?)?;
        }
        Ok(())
    }

    fn of_shares(&mut self, function: &Function, is_tanh: bool) -> Result<(), Failure> {
        let scale = function.scale;
        let paper = match (scale, is_tanh) {
            (12, false) => "186 ms, 61 rounds, ULP 3",
            (12, true) => "189 ms, 61 rounds, ULP 4",
            _ => "61 rounds",
        };
        if is_tanh {
            // Twice the input is in (-8, 8): a fraction bit less in a ring of a bit less, and sigmoid with a bit more.
            let function = Function::new("tanh in (-4, 4)", function.of, scale, -4, 4);
            let exp = opaf::Exp { input: scale - 1, scale: scale + 1, bits: scale + 3, inner: scale + 11 };
            return self.opaf(&function, opaf::Curve { exp, is_doubled: true }, exp, scale + 2, paper);
        }
        let exp = opaf::Exp { input: scale, scale, bits: scale + 4, inner: scale + 9 };
        self.opaf(function, opaf::Curve { exp, is_doubled: false }, exp, scale + 1, paper)
    }

    fn opaf<P: Program + Sync>(
        &mut self,
        function: &Function,
        program: P,
        exp: opaf::Exp,
        to: u32,
        paper: &str,
    ) -> Result<(), Failure> {
        let name = format!("OPAF, s' = {}", exp.inner);
        let way = Way { name, ring: Ring::Pow2(exp.bits), offset: 0, within: 256.0, paper };
        self.row(function, &way, &Layer::of(program, VALUES, exp.bits, to)?)
    }

    /// Measures one way, then runs it on all inputs.
    fn row<P: Program + Sync>(
        &mut self,
        function: &Function,
        way: &Way<'_>,
        layer: &Layer<P>,
    ) -> Result<(), Failure> {
        let [from, to] = function.inputs;
        let count = to - from + 1;
        let timed: Vec<i64> = (0..VALUES as i64).map(|i| from + i * 7919 % count).collect();
        let mut runs = vec![share(way, &timed, 0)?; self.repeats];
        // Then so many of the same values, once for each way to share them.
        let stride = if function.scale == 12 { 1 } else { STRIDE };
        let all: Vec<i64> = (from..=to).step_by(stride).collect();
        let mut inputs = vec![timed; self.repeats];
        for part in all.chunks(VALUES) {
            let filled: Vec<i64> = part.iter().copied().cycle().take(VALUES).collect();
            for sharing in 0..SHARINGS {
                runs.push(share(way, &filled, sharing)?);
                inputs.push(filled.clone());
            }
        }
        let measured = measure(layer, &runs)?;
        let error = |(x, y): (&i64, &i64)| (*y as f64 - function.exact(*x)).abs();
        let errors = inputs.iter().flatten().zip(measured.outputs.iter().flatten()).map(error);
        let ulp = errors.fold(0.0, f64::max);
        if ulp > way.within {
            return Err(format!("{} by {}: {ulp} units off", function.name, way.name).into());
        }
        let differs = measured.outputs[self.repeats..]
            .chunks(SHARINGS)
            .any(|outputs| outputs.iter().any(|of_sharing| *of_sharing != outputs[0]));
        let online = layer.online_cost();
        self.table.print(&Row {
            function: function.name,
            way: &way.name,
            scale: function.scale,
            ulp,
            depends_on_shares: differs,
            blocks: count::Blocks::of(layer),
            rounds: online.rounds(),
            times: measured.times.each_ref().map(|times| median(&times[..self.repeats])),
            bytes: [measured.bytes - online.bytes() as f64, online.bytes() as f64],
            paper: way.paper,
        });
        Ok(())
    }
}

/// Digits of SIRNN's exponential: of 8 bits, as in the paper, and shorter ones, which send less.
fn digits(scale: u32) -> [&'static [u32]; 2] {
    if scale == 12 { [&[8, 7], &[5, 5, 5]] } else { [&[8, 8, 3], &[7, 6, 6]] }
}

/// Ways to share an input: at random, then all of it with one party, then half with each.
const SHARINGS: usize = 5;

/// At scale 16 every fifth input is enough.
const STRIDE: usize = 5;

fn share(way: &Way<'_>, inputs: &[i64], sharing: usize) -> Result<[Share; 2], Failure> {
    let moved: Vec<i64> = inputs.iter().map(|x| way.ring.signed(way.ring.embed(x + way.offset))).collect();
    let all = Share::embed(way.ring, &moved);
    let server = match sharing {
        2 => Share::embed(way.ring, &vec![0; inputs.len()]),
        3 => all.clone(),
        4 => Share::embed(way.ring, &moved.iter().map(|x| x / 2).collect::<Vec<_>>()),
        _ => Share::random(way.ring, inputs.len(), &mut Prg::new(Seed::from_bytes([sharing as u8; 16]))),
    };
    Ok([all.sub(&server)?, server])
}
