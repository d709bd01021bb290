//! What quantisation aims for.

use lanner_network::{Accumulator, CompileError};

/// What quantisation aims for.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub struct QuantizationOptions {
    /// Bits of an activation over its calibrated range: 2 to 16.
    pub activation_bits: u32,
    /// Bits that the largest weight of a layer must keep, sign included: 2 to 16. A larger ring is taken where they do not fit.
    pub min_weight_bits: u32,
    /// Bits that the largest weight may have, sign included: at least `min_weight_bits`, at most 24.
    pub max_weight_bits: u32,
    /// The rings offered; the smallest sufficient one is taken for each layer.
    pub accumulators: Vec<Accumulator>,
    /// The smallest and the largest input accepted, with 0 between them. The calibration samples decide where it is `None`, and then the
    /// public half tells of them, to the next step of the grid.
    pub input_range: Option<[f64; 2]>,
    /// Where the input is choices, of which no samples show all: inputs with others join them.
    pub choices: Vec<ChoiceRows>,
    /// Whether inputs of the compiler's own making join samples that cover little of a stated range. Not where all inputs are made of a known table.
    pub widens: bool,
    /// Whether the constants in front of the first layer are published, for the client to apply in floating point.
    pub public_preprocessing: bool,
    /// Whether values are rescaled where they have grown. If not, there is nothing but sums and products, in one ring, and weights have no more bits
    /// than they must, for every bit of a layer comes back in each of those behind it.
    pub rescales: bool,
    /// Whether a square may take sums that are not rescaled: larger rings, and fewer values in circuits.
    pub squares_of_sums: bool,
    /// The fewest bits that activations and weights may be left with around such squares: 2 to 16.
    pub min_square_bits: u32,
    /// Whether what is rescaled is taken in a ring of its own, the smallest with room for it: for modes whose rescales cost by its bits.
    pub narrow: bool,
    /// The bits that each of these rescales keeps of the calibrated range and as much again, its sign among them, instead of those that make
    /// `activation_bits` of the typical range: 3 to 16. Goes with `narrow` alone, and ranges are those of calibration, whatever is proved.
    pub kept_bits: Option<u32>,
    /// Whether activations saturate at twice their calibrated largest or more, and sums take the rings in which they are proved to fit then, where
    /// there are any: they never wrap, whatever the input.
    pub saturates: bool,
    /// Whether nothing but that will do: what no ring has room to prove is refused.
    pub proves: bool,
    /// Whether clients commit values bit by bit: inputs are accepted in a power of two of integers, and sums keep away from where a share has two representatives.
    pub commits: bool,
    /// Whether weights may have fewer bits than activations: in the one ring that there is, a layer that adds up the most may need that for its proof.
    pub spares_weights: bool,
    /// What a unit of the output is to be at most, if sums that the output is made of are to be rounded to it.
    pub output_unit: Option<f64>,
}

/// Rows of the input that each have a 1 at the place of what is chosen, and zeros elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChoiceRows {
    /// The first element of the first row.
    pub first: usize,
    /// How many rows follow each other.
    pub rows: usize,
    /// Elements of a row.
    pub choices: usize,
}

impl Default for QuantizationOptions {
    /// 8-bit activations, weights of 8 to 12 bits, every ring from 20 bits on.
    fn default() -> Self {
        let accumulators = Accumulator::PRIMES.into_iter().filter(|ring| ring.bits() >= 20).collect();
        Self {
            activation_bits: 8,
            min_weight_bits: 8,
            max_weight_bits: 12,
            accumulators,
            input_range: None,
            choices: Vec::new(),
            widens: true,
            public_preprocessing: false,
            rescales: true,
            squares_of_sums: true,
            min_square_bits: 5,
            narrow: false,
            kept_bits: None,
            saturates: true,
            proves: false,
            commits: false,
            spares_weights: false,
            output_unit: None,
        }
    }
}

impl QuantizationOptions {
    /// As the default, but with every ring modulo a power of two, and all that is squared rescaled: what squares and layers cost
    /// there grows with the ring, and a rescale is cheap.
    #[must_use]
    pub fn powers_of_two() -> Self {
        let accumulators = Accumulator::powers_of_two().collect();
        Self { accumulators, squares_of_sums: false, saturates: false, ..Self::default() }
    }

    /// Whether values of which no differences are taken may fill their rings, modulo powers of two: where they are proved to fit. What calibration alone
    /// decides on keeps that room whatever follows.
    pub(crate) fn fills_rings(&self) -> bool {
        self.saturates && self.has_powers_of_two()
    }

    /// Whether all rings offered are modulo powers of two.
    pub(crate) fn has_powers_of_two(&self) -> bool {
        self.accumulators.iter().all(|ring| ring.is_power_of_two())
    }

    /// As the default, but with all values in one ring modulo a prime, in which every sum is proved to fit, for clients that commit them.
    #[must_use]
    pub fn one_prime() -> Self {
        let accumulators = Accumulator::PRIMES.into_iter().filter(|ring| ring.bits() == 25).collect();
        Self { accumulators, squares_of_sums: false, proves: true, commits: true, ..Self::default() }
    }

    /// As the default, but without rescales, over products of primes: for networks of sums and products that are computed on ciphertexts.
    #[must_use]
    pub fn without_rescales() -> Self {
        let accumulators = Accumulator::products().collect();
        Self { accumulators, squares_of_sums: false, rescales: false, saturates: false, ..Self::default() }
    }
}

/// Sorts the rings and checks every option.
pub(crate) fn check(options: &QuantizationOptions) -> Result<QuantizationOptions, CompileError> {
    let mut options = options.clone();
    options.accumulators.sort_by_key(|ring| ring.bits());
    let QuantizationOptions {
        activation_bits,
        min_weight_bits,
        max_weight_bits,
        min_square_bits,
        ref accumulators,
        ..
    } = options;
    let rules = [
        ("activation_bits", u64::from(activation_bits), (2..=16).contains(&activation_bits), "2..=16"),
        ("min_weight_bits", u64::from(min_weight_bits), (2..=16).contains(&min_weight_bits), "2..=16"),
        (
            "max_weight_bits",
            u64::from(max_weight_bits),
            (min_weight_bits..=24).contains(&max_weight_bits),
            "min_weight_bits..=24",
        ),
        (
            "output_unit",
            0,
            options.output_unit.is_none_or(|unit| unit.is_normal() && unit > 0.0),
            "a number above 0",
        ),
        (
            "kept_bits",
            u64::from(options.kept_bits.unwrap_or(0)),
            options.kept_bits.is_none_or(|bits| options.narrow && (3..=16).contains(&bits)),
            "3..=16, where values are narrowed",
        ),
        ("min_square_bits", u64::from(min_square_bits), (2..=16).contains(&min_square_bits), "2..=16"),
        ("accumulators", accumulators.len() as u64, !accumulators.is_empty(), "one or more rings"),
    ];
    if let Some([low, high]) = options.input_range
        && !(low <= 0.0 && high >= 0.0 && (high - low).is_normal())
    {
        return Err(CompileError::InputRange { low, high });
    }
    if options.public_preprocessing && options.input_range.is_some() {
        let reason = "it does not go with a stated range of inputs".to_owned();
        return Err(CompileError::Preprocessing { reason, fix: "give one of the two" });
    }
    match rules.into_iter().find(|rule| !rule.2) {
        Some((option, value, _, allowed)) => Err(CompileError::Option { option, value, allowed }),
        None => Ok(options),
    }
}

/// No scale fits, without a value to blame.
pub(crate) fn refuse_all() -> CompileError {
    CompileError::Calibration {
        reason: "no fixed-point scale fits their values".to_owned(),
        fix: "pass samples of ordinary size".to_owned(),
    }
}
