//! From the float graph to the fixed-point network: scales, rings and shifts chosen on calibration samples.
//!
//! Quantisation is symmetric with one scale per layer. Each layer takes the smallest ring offered in which its weights keep the bits
//! asked for: with sums proved to fit if that is possible, else with room for twice the calibrated sums. Larger sums cost nothing in
//! a ring already chosen and allow a larger shift, so weights use all the room there is. `docs/numerics.md` is normative.

mod allot;
mod beside;
mod bits;
mod calibrate;
mod choice;
mod closeness;
mod compared;
mod elementwise;
mod features;
mod fit;
mod fits;
mod item;
mod layer;
mod lower;
mod made;
mod normalised;
mod options;
mod outlier;
mod outline;
mod precision;
mod prepared;
mod primes;
mod reach;
mod replace;
mod search;
mod steps;
mod structure;
#[cfg(test)]
mod tests;
mod trace;
mod trees;

pub use elementwise::polynomials;
pub use options::{ChoiceRows, QuantizationOptions};
use options::{check, refuse_all};
pub use outline::outline;
pub use precision::{Aim, Told};
use prepared::Prepared;
pub use replace::{Replaced, replace_relu};
pub use search::{Cost, NoRoom, compile_to};
pub use trace::{Calibration, Earlier, OneCore, OwnCores, Trace, Tracer};
use trees::TreeGraph;

use lanner_graph::Graph;
use lanner_network::{CompileError, Network, Tensors};

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
    if let Some(trees) = TreeGraph::of(graph, tensors)? {
        return trees.network(calibration, &options, None);
    }
    let prepared = Prepared::new(graph, tensors, calibration.into(), &options)?;
    let mut refused = None;
    for kept in prepared.kept() {
        let part = prepared.part(kept, &options)?;
        let bits = bits::LayerBits::uniform(&part.items, &options);
        match part.choose(&options, &bits, part.samples.clone()) {
            Err(error @ CompileError::RangeOverflow { .. }) => refused = Some(error),
            chosen => return Ok(chosen?.network.with_set_aside(part.set_aside)),
        }
    }
    Err(refused.unwrap_or_else(refuse_all))
}
