//! What a layout costs, in roughly nanoseconds: bytes on a line, transforms and products of one core.

use lanner_bfv::Parameters;

use super::packing::{AnswerForm, Packing};

/// The cost of layouts with halves modulo `q`, which all have the same width, on a line of two gigabits a second.
pub(super) fn whole(packing: &Packing) -> usize {
    let ([inputs, outputs], degree) = (packing.ciphertexts(), packing.degree());
    let bytes = 7 * degree * inputs + 4 * degree * outputs;
    3 * bytes + 40_000 * inputs + 150_000 * outputs + 1000 * packing.products()
}

/// The prices of layouts of guarded layers.
pub(super) struct Price<'p> {
    parameters: &'p Parameters,
    /// Elements of the layer's output.
    outputs: usize,
    nanoseconds_per_byte: usize,
}

impl<'p> Price<'p> {
    /// The prices of a layer with so many outputs.
    pub(super) fn new(parameters: &'p Parameters, outputs: usize, form: AnswerForm) -> Self {
        let nanoseconds_per_byte = match form {
            AnswerForm::Apart => GIGABIT,
            AnswerForm::Packed => SLOW,
        };
        Self { parameters, outputs, nanoseconds_per_byte }
    }

    /// The cheapest of some widths of coefficients of inputs, second halves and outputs, and its cost.
    pub(super) fn cheapest(&self, packing: &Packing, widths: &[[u32; 3]]) -> Option<(usize, [u32; 3])> {
        let ([inputs, outputs], degree) = (packing.ciphertexts(), packing.degree());
        let read = packing.read().iter().sum::<usize>().min(degree);
        let coefficients = [inputs * read, outputs * degree, self.outputs];
        let bits = |widths: &[u32; 3]| {
            coefficients.iter().zip(widths).map(|(count, bits)| count * *bits as usize).sum::<usize>()
        };
        let (bits, widths) = widths.iter().map(|widths| (bits(widths), *widths)).min()?;
        Some((bits * self.nanoseconds_per_byte / 8 + of_work(self.parameters, packing), widths))
    }
}

/// The nanoseconds that bytes take on a line of 400 megabits a second, roughly.
#[must_use]
pub const fn of_bytes(bytes: usize) -> usize {
    bytes * SLOW
}

/// The price of what both parties compute.
pub(super) fn of_work(parameters: &Parameters, packing: &Packing) -> usize {
    let [inputs, outputs] = packing.ciphertexts();
    let switches = if packing.packed() > 1 { SWITCH * packing.switches() } else { 0 };
    // Words of a polynomial, in units.
    let units = parameters.limbs() * parameters.degree().div_ceil(UNIT);
    units * (INPUT * inputs + OUTPUT * outputs + PRODUCT * packing.products() + switches)
}

/// Words of a unit of work.
const UNIT: usize = 2048;

/// Nanoseconds of a byte on a line of a gigabit a second.
const GIGABIT: usize = 10;
/// The same on one of 400 megabits: packed answers are for lines between buildings.
const SLOW: usize = 25;
/// Of one unit of an input, of an output, of a product of both halves and of a key switching, by both parties' processors.
const INPUT: usize = 15_000;
const OUTPUT: usize = 40_000;
const PRODUCT: usize = 2_500;
const SWITCH: usize = 45_000;
