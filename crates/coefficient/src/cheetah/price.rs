//! What a layout costs, in roughly nanoseconds: bytes on a line, transforms and products of one core.

use lanner_bfv::Parameters;

use super::packing::Packing;

/// The cost of layouts with halves modulo `q`, which all have the same width, on a line of two gigabits a second.
pub(super) fn whole(packing: &Packing) -> usize {
    let ([inputs, outputs], degree) = (packing.ciphertexts(), packing.degree());
    let bytes = 7 * degree * inputs + 4 * degree * outputs;
    3 * bytes + 40_000 * inputs + 150_000 * outputs + 1000 * packing.products()
}

/// The prices of parameters.
pub(super) struct Price {
    degree: usize,
    /// Elements of the layer's output.
    outputs: usize,
    /// Words of a polynomial, in units of 2048.
    units: usize,
}

impl Price {
    /// The prices of a layer with so many outputs.
    pub(super) fn new(parameters: &Parameters, outputs: usize) -> Self {
        let degree = parameters.degree();
        Self { degree, outputs, units: parameters.limbs() * degree.div_ceil(UNIT) }
    }

    /// The cheapest of some widths of coefficients of inputs, second halves and outputs, and its cost.
    pub(super) fn cheapest(&self, packing: &Packing, widths: &[[u32; 3]]) -> Option<(usize, [u32; 3])> {
        let [inputs, outputs] = packing.ciphertexts();
        let read = packing.read().iter().sum::<usize>().min(self.degree);
        let coefficients = [inputs * read, outputs * self.degree, self.outputs];
        let bits = |widths: &[u32; 3]| {
            coefficients.iter().zip(widths).map(|(count, bits)| count * *bits as usize).sum::<usize>()
        };
        let (bits, widths) = widths.iter().map(|widths| (bits(widths), *widths)).min()?;
        let work = INPUT * inputs
            + OUTPUT * outputs
            + PRODUCT * packing.products()
            + if packing.packed() > 1 { SWITCH * packing.switches() } else { 0 };
        Some((of_bytes(bits / 8) + self.units * work, widths))
    }
}

/// The price of bytes on a line of a gigabit a second.
pub(super) const fn of_bytes(bytes: usize) -> usize {
    bytes * NANOSECONDS_PER_BYTE
}

/// Words of a unit of work.
const UNIT: usize = 2048;

/// On a line of a gigabit a second, and of both parties' processors.
const NANOSECONDS_PER_BYTE: usize = 10;
/// Of one unit of an input, of an output, of a product of both halves and of a key switching.
const INPUT: usize = 15_000;
const OUTPUT: usize = 40_000;
const PRODUCT: usize = 2_500;
const SWITCH: usize = 45_000;
