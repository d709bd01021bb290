//! What is known of each value of a compiled network, for reports.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, Serializer};

use super::{Bound, FixedOp, LinearWeights, PublicNetwork};
use crate::CompileError;

/// Why a value is believed to stay in its range; the strongest reason is the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Evidence {
    /// For every accepted input, by the worst case over the weights.
    Proved,
    /// By the worst case over this layer's weights, as long as the calibrated layers before it stay in range.
    Implied,
    /// Twice the range seen on the calibration samples fits; nothing is proved.
    Calibrated,
}

/// What calibration saw of a value. Part of the private half's JSON.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibrated {
    /// Real value of one unit.
    pub scale: f64,
    /// The smallest integer over the calibration samples.
    pub low: i128,
    /// The largest integer over the calibration samples.
    pub high: i128,
    /// For a linear layer: the root mean square of the weights' rounding error over that of the weights.
    pub weight_error: Option<f64>,
    /// For a function by polynomials: how close these are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<FunctionFit>,
    /// Whether it is an upper bound of the compiler's own, with which the sums behind are proved: what is beyond saturates.
    #[serde(default, skip_serializing_if = "is_false")]
    pub saturates: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde calls")]
fn is_false(x: &bool) -> bool {
    !x
}

/// How close polynomials are to the function that they stand for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FunctionFit {
    /// The largest distance over all integers of the domain, in units of the output.
    pub error: f64,
    /// Whether the function goes on below and above its domain: an input there has no right value, and counts as an overflow.
    pub open: [bool; 2],
    /// Whether 0 is no such input: what it is multiplied with is 0, too, where its input is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub vanishes: bool,
}

/// One value of a compiled network: its scale, its range, and what calibration saw.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ValueReport {
    /// The node, or the input.
    pub name: String,
    /// The operator, or `Input`.
    pub operator: &'static str,
    /// Real value of one unit.
    pub scale: f64,
    /// The smallest integer it may take.
    #[serde(serialize_with = "number")]
    pub low: i128,
    /// The largest integer it may take.
    #[serde(serialize_with = "number")]
    pub high: i128,
    /// Why.
    pub evidence: Evidence,
    /// The largest absolute value that its ring allows here.
    #[serde(serialize_with = "number")]
    pub limit: i128,
    /// The smallest and the largest integer over the calibration samples.
    #[serde(serialize_with = "numbers")]
    pub calibrated: [i128; 2],
    /// For a linear layer, its weights.
    pub weights: Option<WeightReport>,
    /// For a function by polynomials, how close these are.
    pub function: Option<FunctionFit>,
    /// Whether it is an upper bound of the compiler's own: what is beyond it saturates.
    pub saturates: bool,
}

/// A number for a report, whose readers have none of more than 64 bits but floats.
fn number<S: Serializer>(x: &i128, serializer: S) -> Result<S::Ok, S::Error> {
    reported(*x).serialize(serializer)
}

fn numbers<S: Serializer>(x: &[i128; 2], serializer: S) -> Result<S::Ok, S::Error> {
    x.map(reported).serialize(serializer)
}

fn reported(x: i128) -> Reported {
    i64::try_from(x).map_or(Reported::Large(x as f64), Reported::Exact)
}

#[derive(Serialize)]
#[serde(untagged)]
enum Reported {
    Exact(i64),
    Large(f64),
}

/// A linear layer's integer weights in figures.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WeightReport {
    /// Bits of the largest weight, sign included.
    pub bits: u32,
    /// The root mean square of the rounding error over that of the weights.
    pub error: f64,
}

/// Joins bounds and calibration into reports.
///
/// # Errors
/// [`CompileError::Network`] if a calibrated range is damaged or exceeds half of what the ring allows without a proof.
pub(crate) fn join(
    network: &PublicNetwork,
    bounds: &[Bound],
    weights: &BTreeMap<usize, LinearWeights>,
    calibrated: &[Calibrated],
) -> Result<Vec<ValueReport>, CompileError> {
    if calibrated.len() != bounds.len() {
        let reason = format!("there are {} calibrated ranges for {} values", calibrated.len(), bounds.len());
        return Err(CompileError::Network { place: "the ranges".to_owned(), reason });
    }
    let report = |(value, (bound, seen)): (usize, (&Bound, &Calibrated))| {
        let node = value.checked_sub(1).map(|index| (index, &network.nodes()[index]));
        let name = node.map_or(&network.input().name, |(_, node)| &node.name).clone();
        let limit = network.limit(value);
        let grows = node.is_some_and(|(_, node)| node.op.may_grow());
        check(seen, grows && bound.evidence == Evidence::Calibrated, limit)
            .map_err(|reason| CompileError::Network { place: name.clone(), reason: reason.to_owned() })?;
        let layer = node.filter(|(_, node)| node.op.is_linear()).and_then(|(index, _)| weights.get(&index));
        let weights =
            layer.map(|layer| WeightReport { bits: bits_of(layer), error: seen.weight_error.unwrap_or(0.0) });
        let operator = node.map_or("Input", |(_, node)| node.op.name());
        let Bound { low, high, evidence } = *bound;
        let calibrated = [seen.low, seen.high];
        let Calibrated { scale, function, saturates, .. } = *seen;
        if saturates && !node.is_some_and(|(_, node)| matches!(node.op, FixedOp::Clip(_))) {
            let reason = "what saturates is no upper bound".to_owned();
            return Err(CompileError::Network { place: name, reason });
        }
        Ok(ValueReport {
            name,
            operator,
            scale,
            low,
            high,
            evidence,
            limit,
            calibrated,
            weights,
            function,
            saturates,
        })
    };
    let known = calibrated.last().map(|seen| seen.scale);
    if network.output_scale().is_some_and(|public| known != Some(public)) {
        let reason = "its public scale is not its scale".to_owned();
        return Err(CompileError::Network { place: "the output".to_owned(), reason });
    }
    bounds.iter().zip(calibrated).enumerate().map(report).collect()
}

fn check(seen: &Calibrated, unproved: bool, limit: i128) -> Result<(), &'static str> {
    let error_is_finite =
        seen.weight_error.is_none_or(f64::is_finite) && seen.function.is_none_or(|fit| fit.error.is_finite());
    if !(seen.scale.is_finite() && seen.scale > 0.0 && error_is_finite) || seen.low > seen.high {
        return Err("its scale or its calibrated range is damaged");
    }
    let half = limit / 2;
    if unproved && (seen.low < -half || seen.high > half) {
        return Err("its calibrated range exceeds half of what the ring allows");
    }
    Ok(())
}

fn bits_of(layer: &LinearWeights) -> u32 {
    u64::BITS - layer.largest_weight().leading_zeros() + 1
}
