//! One sample layer by layer: the float network, the fixed-point reference, and what both parties compute, side by side.
//!
//! Both parties are in this process, where whoever has weights and input may look at everything.

use std::collections::{HashMap, HashSet};

use lanner_graph::{FloatExecutor, joined};
use lanner_network::repeats::Repeat;
use lanner_network::{FixedExecutor, FixedNode, FixedOp, ValueReport};
use lanner_primitives::Ring;
use lanner_session::executor::{Together, together};
use serde_json::{Value, json};

use crate::{Model, Result};

/// What one value of the integer network is, and how far it is from what it stands for.
struct Layer {
    /// The largest error against the float network, in its units; none where the float network has no such value.
    error: Option<f64>,
    /// The same as a part of the largest value, the sample's or that of the calibration samples.
    relative: Option<f64>,
    /// The smallest and the largest integer.
    range: [i128; 2],
    overflows: usize,
}

/// What an integer is worth, and the largest magnitude on the calibration samples.
#[derive(Clone, Copy)]
struct Unit {
    scale: f64,
    calibrated: i128,
}

/// One sample, layer by layer; with `secure`, both parties compute it, too.
///
/// For each value of the integer network: the error against the float network, the part of the calibrated range and of the ring that it takes, sums that
/// leave the ring, and in how many elements the parties' value differs from the reference's. Then the first layers that depart, and what to do.
///
/// # Errors
/// [`ErrorKind::Input`](crate::ErrorKind::Input) if the sample does not fit the model.
pub fn debug(model: &Model, sample: &[f32], secure: bool) -> Result<Value> {
    let (network, manifest) = (model.network(), model.manifest());
    let public = network.public();
    let (graph, tensors) = joined(model.graph(), model.tensors())?;
    let float = FloatExecutor::new(&graph, &tensors)?.run_all(sample)?;
    let names = graph.nodes.iter().map(|node| node.name.as_str());
    let float: HashMap<&str, Vec<f32>> = names.zip(float.into_iter().skip(1)).collect();
    let input = public.input().quantize(sample)?;
    let mut integers = Vec::new();
    let executor = FixedExecutor::new(network)?;
    let beyond = executor.trace(&input, |_, values| integers.push(values.to_vec()))?;
    let shared = if secure && manifest.plan.samples.is_one() {
        let made = together(network, &manifest.plan, &input)?.1;
        // What a step makes last under a node's name is the node's, but for what tells the result, whose name a node may have as well.
        let is_own = |made: &Together| !["share.reshare", "ot.softmax"].contains(&made.protocol);
        let places: HashMap<&str, usize> =
            public.nodes().iter().enumerate().map(|(place, node)| (node.name.as_str(), place)).collect();
        // What repeats has the names of its first iteration.
        let place = |made: &Together| {
            let node = *places.get(made.name.as_str())?;
            let of = |repeat: &Repeat| repeat.place(node).map(|_| node + made.iteration * repeat.length);
            Some(public.repeats().iter().find_map(of).unwrap_or(node))
        };
        made.into_iter().filter(is_own).filter_map(|made| Some((place(&made)?, made))).collect()
    } else {
        HashMap::new()
    };
    let values = network.values();
    let nodes: HashSet<&str> = public.nodes().iter().map(|node| node.name.as_str()).collect();
    let mut rows = Vec::new();
    for (index, node) in public.nodes().iter().enumerate() {
        let value = &values[index + 1];
        let stands_for = float
            .get(node.name.as_str())
            .or_else(|| float.get(base(&node.name)))
            .filter(|_| !is_part(&node.name, &nodes) && keeps_unit(node, index, values, &integers));
        let integers = &integers[index + 1];
        let [low, high] = value.calibrated;
        let calibrated = high.max(-low);
        let unit = Unit { scale: value.scale, calibrated };
        let layer = Layer::of(stands_for.map(Vec::as_slice), integers, unit, beyond.overflows[index]);
        let bits = node.accumulator.bits();
        let met = shared.get(&index).and_then(|made| differences(made, integers, bits));
        let most = layer.range[1].max(-layer.range[0]);
        let part = |of: i128| (of > 0).then(|| most as f64 / of as f64);
        rows.push(json!({
            "name": node.name,
            "operator": node.op.name(),
            "error": layer.error,
            "relative_error": layer.relative,
            "low": layer.range[0] as f64 * value.scale,
            "high": layer.range[1] as f64 * value.scale,
            "of_calibrated_range": part(calibrated),
            "of_ring": part(value.limit),
            "bits": bits,
            "overflows": layer.overflows,
            "saturated": beyond.saturated[index],
            "protocol": shared.get(&index).map(|made| made.protocol),
            "secure_differences": met.map(|[count, _]| count),
            "largest_secure_difference": met.map(|[_, largest]| largest),
        }));
    }
    Ok(json!({
        "model": manifest.name,
        "mode": manifest.mode,
        "is_exact": manifest.plan.mode.is_exact(),
        "tolerance": TOLERANCE,
        "layers": rows,
    }))
}

/// Scores that are off by more than this part of the largest are told as a departure, and the first layer that is, too: four times what a network is
/// compiled for where nothing is asked.
const TOLERANCE: f64 = 0.02;

impl Layer {
    fn of(float: Option<&[f32]>, integers: &[i128], unit: Unit, overflows: usize) -> Self {
        let Unit { scale, calibrated } = unit;
        let range = integers.iter().fold([0, 0], |[low, high], x| [low.min(*x), high.max(*x)]);
        let float = float.filter(|float| float.len() == integers.len());
        let error = float.map(|float| {
            let errors = float.iter().zip(integers).map(|(x, y)| (f64::from(*x) - *y as f64 * scale).abs());
            errors.fold(0.0, f64::max)
        });
        let relative = error.zip(float).map(|(error, float)| {
            let calibrated = calibrated as f64 * scale;
            let largest = float.iter().fold(calibrated, |largest: f64, x| largest.max(f64::from(x.abs())));
            if error == 0.0 { 0.0 } else { error / largest }
        });
        Self { error, relative: relative.filter(|relative| relative.is_finite()), range, overflows }
    }
}

/// Whether a node is the first part of a clip, whose value its upper bound has.
fn is_part(name: &str, nodes: &HashSet<&str>) -> bool {
    nodes.contains(format!("{name}{UPPER_BOUND}").as_str())
}

/// Whether a rescale is worth what it rescales. One that takes a factor of the network along stands for no value of the float network.
fn keeps_unit(node: &FixedNode, index: usize, values: &[ValueReport], integers: &[Vec<i128>]) -> bool {
    let (FixedOp::Rescale { .. }, [input]) = (&node.op, node.inputs.as_slice()) else { return true };
    let [before, after] = [*input, index + 1].map(|at| (&integers[at], values[at].scale));
    // Rounding moves a value by less than a unit, and the reference's to the next unit at most.
    let off = before.0.iter().zip(after.0).map(|(x, y)| (*x as f64 * before.1 - *y as f64 * after.1).abs());
    off.fold(0.0, f64::max) <= 2.0 * after.1
}

/// What the second part of a clip is called behind its name.
const UPPER_BOUND: &str = "/max";

/// The node behind which a rescale, a narrower ring or an upper bound is.
pub(crate) fn base(name: &str) -> &str {
    ["/rescale", "/narrow", "/saturate", UPPER_BOUND]
        .iter()
        .find_map(|suffix| name.strip_suffix(suffix))
        .map_or(name, base)
}

/// In how many elements the parties' value is not the reference's, and the largest difference; none if it is no such value.
fn differences(made: &Together, integers: &[i128], bits: u32) -> Option<[i128; 2]> {
    if made.integers.len() != integers.len() {
        return None;
    }
    let guard = match made.ring {
        Ring::Pow2(wide) => wide.checked_sub(bits)?,
        Ring::Prime(_) => 0,
    };
    let off = made.integers.iter().zip(integers).map(|(x, y)| (i128::from(x >> guard) - y).abs());
    Some(off.fold([0, 0], |[count, largest], off| [count + i128::from(off > 0), largest.max(off)]))
}
