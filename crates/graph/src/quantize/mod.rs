//! From the float graph to the fixed-point network: scales, rings and shifts chosen on calibration samples.
//!
//! Quantisation is symmetric with one scale per layer. Each layer takes the smallest ring offered in which its weights keep the bits
//! asked for: with sums proved to fit if that is possible, else with room for twice the calibrated sums. Larger sums cost nothing in
//! a ring already chosen and allow a larger shift, so weights use all the room there is. `docs/numerics.md` is normative.

mod calibrate;
mod item;
mod layer;
mod lower;
mod reach;
mod structure;

use structure::{Squares, Structure};

use crate::accumulator::Accumulator;
use crate::graph::Graph;
use crate::network::{Calibrated, Evidence, Head, Network};
use crate::tensor::Tensors;
use crate::{CompileError, pass};

/// What quantisation aims for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuantizationOptions {
    /// Bits of an activation over its calibrated range: 2 to 16.
    pub activation_bits: u32,
    /// Bits that the largest weight of a layer must keep, sign included: 2 to 16. A larger ring is taken where they do not fit.
    pub min_weight_bits: u32,
    /// Bits that the largest weight may have, sign included: at least `min_weight_bits`, at most 24.
    pub max_weight_bits: u32,
    /// The rings offered; the smallest sufficient one is taken for each layer.
    pub accumulators: Vec<Accumulator>,
}

impl Default for QuantizationOptions {
    /// 8-bit activations, weights of 8 to 12 bits, every ring from 20 bits on.
    fn default() -> Self {
        let accumulators = Accumulator::PRIMES.into_iter().filter(|ring| ring.bits() >= 20).collect();
        Self { activation_bits: 8, min_weight_bits: 8, max_weight_bits: 12, accumulators }
    }
}

impl QuantizationOptions {
    /// As the default, but with every ring modulo a power of two.
    #[must_use]
    pub fn powers_of_two() -> Self {
        Self { accumulators: Accumulator::powers_of_two().collect(), ..Self::default() }
    }
}

/// Room beyond twice the calibrated sums, tried in turn: the integers differ a little from the floats that scales were chosen on.
const SLACK: [f64; 4] = [1.0, 1.03, 1.1, 1.25];

/// Compiles a graph.
///
/// `calibration` holds one or more samples of the graph's input, one after the other, row-major; 32 or more are advised.
///
/// # Errors
/// [`CompileError`] naming the node: damaged graphs or tensors, operators that fixed point lacks, sums that no ring holds; and
/// calibration samples that are missing, misshapen or not finite.
pub fn compile(
    graph: &Graph,
    tensors: &Tensors,
    calibration: &[f32],
    options: &QuantizationOptions,
) -> Result<Network, CompileError> {
    let options = check(options)?;
    let (draft, head) = pass::prepare(graph, tensors)?;
    let ranges = calibrate::float_ranges(&draft, calibration)?;
    let items = item::items(&draft, &ranges, options.activation_bits)?;
    let source = lower::Source { draft: &draft, items: &items, input: ranges[0], options: &options };
    let whole = with_squares(Squares::Whole, &source, head, calibration);
    if whole.is_err() && has_squares(&items) {
        return with_squares(Squares::Rescaled, &source, head, calibration);
    }
    whole
}

fn has_squares(items: &[item::Item]) -> bool {
    items.iter().any(|item| matches!(item.action, item::Action::Square))
}

/// Compiles with one way to treat squares: with more and more slack, then with larger rings for the groups that overflow.
fn with_squares(
    squares: Squares,
    source: &lower::Source<'_>,
    head: Head,
    calibration: &[f32],
) -> Result<Network, CompileError> {
    let structure = Structure::new(source.items, squares);
    let mut least = vec![0; structure.groups];
    loop {
        let mut refused = None;
        for slack in SLACK {
            let lowered = lower::lower(source, &structure, slack, &least)?;
            let provisional = lowered.network(head, None)?;
            let measured = calibrate::integer_ranges(&provisional, calibration)?;
            let Some((node, error)) = overflow(&provisional, &measured) else {
                return lowered.network(head, Some(&measured));
            };
            refused = Some((lowered.group(node), lowered.ring(node), error));
        }
        let Some((group, ring, error)) = refused else { return Err(no_scale()) };
        let next = 1 + source.options.accumulators.iter().position(|offered| *offered == ring).unwrap_or(0);
        if next >= source.options.accumulators.len() {
            return Err(error);
        }
        least[group] = least[group].max(next);
    }
}

fn no_scale() -> CompileError {
    CompileError::Calibration { reason: "no scale fits; pass other samples".to_owned() }
}

/// Sorts the rings and checks every option.
fn check(options: &QuantizationOptions) -> Result<QuantizationOptions, CompileError> {
    let mut options = options.clone();
    options.accumulators.sort_by_key(|ring| ring.bits());
    let QuantizationOptions { activation_bits, min_weight_bits, max_weight_bits, ref accumulators } = options;
    let rules = [
        ("activation_bits", u64::from(activation_bits), (2..=16).contains(&activation_bits), "2..=16"),
        ("min_weight_bits", u64::from(min_weight_bits), (2..=16).contains(&min_weight_bits), "2..=16"),
        (
            "max_weight_bits",
            u64::from(max_weight_bits),
            (min_weight_bits..=24).contains(&max_weight_bits),
            "min_weight_bits..=24",
        ),
        ("accumulators", accumulators.len() as u64, !accumulators.is_empty(), "one or more rings"),
    ];
    match rules.into_iter().find(|rule| !rule.2) {
        Some((option, value, _, allowed)) => Err(CompileError::Option { option, value, allowed }),
        None => Ok(options),
    }
}

/// The first node without a proof whose calibrated range, doubled, exceeds what its ring allows.
fn overflow(network: &Network, measured: &[Calibrated]) -> Option<(usize, CompileError)> {
    let nodes = network.public().nodes();
    network.values().iter().zip(measured).enumerate().skip(1).find_map(|(value, (report, seen))| {
        let grows = nodes[value - 1].op.may_grow();
        let largest = seen.high.max(-seen.low);
        let exceeds = grows && report.evidence == Evidence::Calibrated && largest > report.limit / 2;
        let (bound, limit) = (2 * i128::from(largest), report.limit);
        exceeds.then(|| (value - 1, CompileError::RangeOverflow { node: report.name.clone(), bound, limit }))
    })
}
