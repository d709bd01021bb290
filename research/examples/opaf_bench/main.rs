//! Exponentials, sigmoid and tanh of 16,384 values in three ways, of the same transfers: the library's polynomials, SIRNN's lookups and OPAF's
//! exponentials of shares. `cargo run --release -p lanner-research --example opaf_bench [-- markdown]`; `-- precision` for OPAF's errors by `s'`.
//!
//! Inputs in (-8, 8) at scale 12 or 16, or (-8, 0) for exponentials of what is negative; outputs with as many fraction bits. Both parties run at
//! once, a thread each, over queues in memory, on every input, at scale 16 on every ninth, shared in several ways, as often as that takes. Results are
//! checked outside the clock: *ULP* is the largest error of all against double precision, in units of the output's last place, and *by shares* the part
//! of the inputs whose result depends on how they were shared. Comparisons, products and lookups are those of one value, with all bits that are
//! compared, bits that are chosen by, and rows of tables; *bits* are products of one bit of each party. Times are the fastest run's; bytes are those of
//! both parties, a session's set-up apart; a round is a message of the client's and the answer to it, and *turns* counts messages, those of one party
//! that follow each other as one.

mod blocks;
mod count;
mod opaf;
mod reciprocal;
mod sirnn;
mod table;
mod trial;
#[path = "../../../crates/lanner/examples/two_parties/mod.rs"]
mod two_parties;

use lanner_primitives::Ring;
use lanner_quantize::polynomials;
use lanner_transfers::Layer;
use lanner_transfers::blocks::Program;
use reciprocal::Reciprocal;
use table::{Row, Table};
use trial::{Function, Trial, VALUES, Way};
use two_parties::Failure;

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn exp(scale: u32) -> Function {
    Function::new("exp", f64::exp, scale, [-8, 8])
}

fn negative_exp(scale: u32) -> Function {
    Function::new("exp of negatives", f64::exp, scale, [-8, 0])
}

fn curve(scale: u32, is_tanh: bool) -> Function {
    let (name, of): (_, fn(f64) -> f64) = if is_tanh { ("tanh", f64::tanh) } else { ("sigmoid", sigmoid) };
    Function::new(name, of, scale, [-8, 8])
}

fn main() -> Result<(), Failure> {
    let argument = std::env::args().nth(1);
    if argument.as_deref() == Some("precision") {
        return precision();
    }
    let bench = Bench(Table::new(argument.as_deref() == Some("markdown")));
    bench.at_scale_12()?;
    bench.at_scale_16()
}

/// Measures ways and prints them.
struct Bench(Table);

impl Bench {
    fn at_scale_12(&self) -> Result<(), Failure> {
        self.polynomials(&exp(12), 2.0)?;
        self.opaf(&Opaf::exp(12, 21), 7.0, "143 ms, 23 rounds, ULP 6")?;
        self.opaf(&Opaf::exp(12, 24), 1.5, "")?;
        let function = negative_exp(12);
        self.polynomials(&function, 1.0)?;
        self.polynomials(&function, 2.7)?;
        self.negative_exp_of_digits(&function, &[8, 7], "172 ms, 26 rounds")?;
        self.negative_exp_of_digits(&function, &[5, 5, 5], "")?;
        self.opaf(&Opaf::negative_exp(12, 24), 1.5, "95 ms, 12 rounds, ULP 1")?;
        for (is_tanh, tolerance, [of_sirnn, of_opaf]) in [
            (false, 3.0, ["314 ms, 97 rounds", "186 ms, 61 rounds, ULP 3"]),
            (true, 4.0, ["327 ms, 91 rounds", "189 ms, 61 rounds, ULP 4"]),
        ] {
            let function = curve(12, is_tanh);
            self.polynomials(&function, 1.0)?;
            self.polynomials(&function, tolerance)?;
            let line = Reciprocal::line(12);
            self.curve_of_digits(&function, &[8, 7], line, of_sirnn)?;
            self.curve_of_digits(&function, &[5, 5, 5], line, "")?;
            self.curve_of_digits(&function, &[5, 5, 5], Reciprocal::iterated(12), "")?;
            let opaf = if is_tanh { Opaf::tanh(12, 23) } else { Opaf::sigmoid(12, 21) };
            self.opaf(&opaf, tolerance, of_opaf)?;
        }
        Ok(())
    }

    fn at_scale_16(&self) -> Result<(), Failure> {
        self.polynomials(&exp(16), 2.0)?;
        self.opaf(&Opaf::exp(16, 24), 14.0, "23 rounds")?;
        let function = negative_exp(16);
        self.polynomials(&function, 1.0)?;
        self.negative_exp_of_digits(&function, &[8, 8, 3], "46 rounds")?;
        self.negative_exp_of_digits(&function, &[7, 6, 6], "")?;
        self.opaf(&Opaf::negative_exp(16, 28), 1.5, "12 rounds")?;
        for (is_tanh, tolerance, of_sirnn) in [(false, 3.0, "117 rounds"), (true, 4.0, "109 rounds")] {
            let function = curve(16, is_tanh);
            self.polynomials(&function, 1.0)?;
            self.polynomials(&function, tolerance)?;
            let line = Reciprocal::line(16);
            self.curve_of_digits(&function, &[8, 8, 3], line, of_sirnn)?;
            self.curve_of_digits(&function, &[7, 6, 6], line, "")?;
            self.curve_of_digits(&function, &[7, 6, 6], Reciprocal::iterated(16), "")?;
            let opaf = if is_tanh { Opaf::tanh(16, 27) } else { Opaf::sigmoid(16, 25) };
            self.opaf(&opaf, tolerance, "61 rounds")?;
        }
        Ok(())
    }

    fn polynomials(&self, function: &Function, tolerance: f64) -> Result<(), Failure> {
        let [from, to] = function.inputs;
        let count = (to - from + 1) as u64;
        // The middle of the domain is 0.
        let (bits, middle) = (count.trailing_zeros(), from + (count / 2) as i64);
        let unit = f64::from(-(function.scale as i32)).exp2();
        let of = |x: f64| (function.of)(x + middle as f64 * unit);
        let (fixed, error) = polynomials(of, from - middle, bits, [unit; 2], tolerance);
        let bits = fixed.bits;
        let largest = function.exact(to).abs().max(function.exact(from).abs());
        let after = largest.log2().ceil() as u32 + 2;
        let layer = Layer::function(&lanner_plan::polynomials(&fixed), VALUES, bits, after, 0)?;
        let factors = fixed.factors.as_ref().map_or(0, |factors| factors.values.len());
        let factors = if factors > 0 { format!("{factors} factors times ") } else { String::new() };
        let name = format!("polynomials: {factors}{} of degree {}", fixed.polynomials.len(), fixed.degree());
        // A bit more for double precision.
        let way = Way { name: &name, ring: Ring::Pow2(bits), offset: -middle, within: error + 1e-6 };
        self.row(function, &way, &layer, "")
    }

    fn negative_exp_of_digits(
        &self,
        function: &Function,
        digits: &'static [u32],
        paper: &str,
    ) -> Result<(), Failure> {
        let (scale, bits) = (function.scale, digits.iter().sum());
        let name = format!("SIRNN: digits of {digits:?} bits");
        let way = Way { name: &name, ring: Ring::Pow2(bits), offset: 0, within: 4.0 };
        let layer = Layer::of(sirnn::NegativeExp { scale, digits }, VALUES, bits, scale + 2)?;
        self.row(function, &way, &layer, paper)
    }

    fn curve_of_digits(
        &self,
        function: &Function,
        digits: &'static [u32],
        reciprocal: Reciprocal,
        paper: &str,
    ) -> Result<(), Failure> {
        let (scale, bits) = (function.scale, digits.iter().sum::<u32>() + 1);
        // But for the lowest, whose magnitude has a bit more.
        let function = Function { inputs: [function.inputs[0] + 1, function.inputs[1]], ..*function };
        let name = format!("SIRNN: digits of {digits:?} bits{}", reciprocal.iterations());
        let way = Way { name: &name, ring: Ring::Pow2(bits), offset: 0, within: 4.0 };
        let program = sirnn::Curve { scale, digits, reciprocal, is_tanh: function.name == "tanh" };
        self.row(&function, &way, &Layer::of(program, VALUES, bits, scale + 2)?, paper)
    }

    fn opaf(&self, opaf: &Opaf, within: f64, paper: &str) -> Result<(), Failure> {
        let (name, layer) = (format!("OPAF: s' = {}", opaf.exp.inner), opaf.layer()?);
        self.row(&opaf.function, &opaf.way(&name, within), &layer, paper)
    }

    fn row<P: Program + Sync>(
        &self,
        function: &Function,
        way: &Way<'_>,
        layer: &Layer<P>,
        paper: &str,
    ) -> Result<(), Failure> {
        let trial = Trial::run(function, way, layer)?;
        let blocks = count::Blocks::of(layer);
        self.0.print(&Row { function, way: way.name, trial, blocks, online: layer.online_cost(), paper });
        Ok(())
    }
}

/// A function in OPAF's way.
struct Opaf {
    function: Function,
    program: opaf::Program,
    exp: opaf::Exp,
    /// Bits of the results.
    to: u32,
}

impl Opaf {
    fn exp(scale: u32, inner: u32) -> Self {
        let exp = opaf::Exp { input: scale, scale, bits: scale + 4, inner };
        Self { function: self::exp(scale), program: opaf::Program::Exp, exp, to: exp.to() }
    }

    fn negative_exp(scale: u32, inner: u32) -> Self {
        let exp = opaf::Exp { input: scale, scale, bits: scale + 4, inner };
        Self { function: negative_exp(scale), program: opaf::Program::NegativeExp, exp, to: scale + 2 }
    }

    fn sigmoid(scale: u32, inner: u32) -> Self {
        let exp = opaf::Exp { input: scale, scale, bits: scale + 4, inner };
        Self { function: curve(scale, false), program: opaf::Program::Sigmoid, exp, to: scale + 1 }
    }

    /// Of half of the range, so that twice the input is in (-8, 8): that is the input with a fraction bit less.
    fn tanh(scale: u32, inner: u32) -> Self {
        let exp = opaf::Exp { input: scale - 1, scale: scale + 1, bits: scale + 3, inner };
        let function = Function::new("tanh in (-4, 4)", f64::tanh, scale, [-4, 4]);
        Self { function, program: opaf::Program::Tanh, exp, to: scale + 2 }
    }

    fn layer(&self) -> Result<Layer<opaf::Opaf>, Failure> {
        let program = opaf::Opaf { program: self.program, exp: self.exp };
        Ok(Layer::of(program, VALUES, self.exp.bits, self.to)?)
    }

    fn way<'w>(&self, name: &'w str, within: f64) -> Way<'w> {
        Way { name, ring: Ring::Pow2(self.exp.bits), offset: 0, within }
    }
}

/// The paper's Table V: the largest errors by the fraction bits of the parties' exponentials, as far as 62 bits hold products.
fn precision() -> Result<(), Failure> {
    let all = 12..28;
    println!("| s' | {} |", all.clone().map(|inner| inner.to_string()).collect::<Vec<_>>().join(" | "));
    println!("| --- {}|", all.clone().map(|_| "| ---: ").collect::<String>());
    for of in [Opaf::exp, Opaf::negative_exp, Opaf::sigmoid, Opaf::tanh] {
        let ulp = |inner: u32| -> Result<String, Failure> {
            let opaf = of(12, inner);
            if opaf.exp.products_bits(opaf.program) > 62 {
                return Ok("-".into());
            }
            let trial = Trial::run(&opaf.function, &opaf.way("OPAF", f64::INFINITY), &opaf.layer()?)?;
            Ok(format!("{:.*}", usize::from(trial.ulp < 10.0), trial.ulp))
        };
        let cells = all.clone().map(ulp).collect::<Result<Vec<_>, _>>()?;
        println!("| {} | {} |", of(12, 12).function.name, cells.join(" | "));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_is_as_close_as_it_says_at_scale_12() {
        Bench(Table::new(false)).at_scale_12().unwrap();
    }
}
