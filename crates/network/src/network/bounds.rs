//! Interval arithmetic over a network: which values are proved to fit their rings.

use std::collections::BTreeMap;

use super::{Evidence, FixedOp, LinearWeights, PublicNetwork};
use crate::CompileError;
use crate::accumulator::{Accumulator, rounding_constant};
use crate::integer::Integer;
use crate::product;

/// An interval that a value stays in, and why; 0 lies in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Its lower end, not above 0.
    pub low: i128,
    /// Its upper end, not below 0.
    pub high: i128,
    /// Why.
    pub evidence: Evidence,
}

/// The bound of every value: the input, then each node's output.
///
/// A linear layer's bound is the worst case over its weights (a sum of absolute values, split by sign). Where that exceeds what the
/// ring allows, or where the weights are not known, the ring's limit stands in its place, on the evidence of calibration.
///
/// # Errors
/// [`CompileError::Network`] if a rescaled value or a function's does not fit the ring it moves to.
pub(crate) fn propagate(
    network: &PublicNetwork,
    weights: Option<&BTreeMap<usize, LinearWeights>>,
) -> Result<Vec<Bound>, CompileError> {
    let input = network.input();
    let mut bounds =
        vec![Bound { low: input.low.into(), high: input.high.into(), evidence: Evidence::Proved }];
    for (index, node) in network.nodes().iter().enumerate() {
        let layer = weights.and_then(|weights| weights.get(&index));
        let inputs: Vec<Bound> = node.inputs.iter().map(|&value| bounds[value]).collect();
        let bound = Bound::after(&inputs, &node.op, layer, network.limit(index + 1), node.accumulator)
            .map_err(|reason| CompileError::Network { place: node.name.clone(), reason })?;
        bounds.push(bound);
    }
    Ok(bounds)
}

impl Bound {
    /// The bound after one operator whose output may reach `limit` in `ring`; the reason where it does not fit.
    ///
    /// # Errors
    /// The reason, for people.
    pub fn after(
        inputs: &[Self],
        op: &FixedOp,
        layer: Option<&LinearWeights>,
        limit: i128,
        ring: Accumulator,
    ) -> Result<Self, String> {
        let first = inputs[0];
        let (low, high) = (first.low, first.high);
        let evidence = inputs.iter().map(|bound| bound.evidence).max().unwrap_or(first.evidence);
        Ok(match op {
            FixedOp::Conv2d(_) | FixedOp::Linear { .. } => {
                within(layer.map(|layer| linear_interval(first, layer, ring)), evidence, limit)
            }
            FixedOp::Bias { bits } => {
                let [least, most] =
                    layer.map_or([1 - (1 << bits), (1 << bits) - 1], LinearWeights::bias_ends);
                within(Some(((low + least).min(0), (high + most).max(0))), evidence, limit)
            }
            FixedOp::SumPool(window) => {
                let area = window.area() as i128;
                within(Some((low * area, high * area)), evidence, limit).inheriting(evidence)
            }
            FixedOp::Narrow => within(Some((low, high)), evidence, limit).inheriting(evidence),
            FixedOp::Scale { factor } => within(Some(first.times(*factor)), evidence, limit),
            FixedOp::Add { factors } => {
                let (a, b) = (first.times(factors[0]), inputs[1].times(factors[1]));
                within(Some((a.0 + b.0, a.1 + b.1)), evidence, limit)
            }
            FixedOp::Rescale { shift } => rescaled(first, *shift, ring).fitting(ring.limit(0), ring)?,
            FixedOp::Mul => {
                let [low, high] = product::interval(first.ends(), inputs[1].ends());
                within(Some((low, high)), evidence, limit)
            }
            FixedOp::MatrixProduct { inner } => {
                let [low, high] = product::interval(first.ends(), inputs[1].ends());
                let inner = *inner as i128;
                within(Some((low.saturating_mul(inner), high.saturating_mul(inner))), evidence, limit)
            }
            _ => match op.elementwise().map(|op| (op.interval([low, high]), op.multiplies())) {
                Some(([low, high], true)) => within(Some((low, high)), evidence, limit),
                Some(([low, high], false)) => {
                    let bound = Self { low, high, evidence };
                    if op.changes_ring() { bound.fitting(limit, ring)? } else { bound }
                }
                // Maxima and movements: every value is one of an input's, or 0.
                None => Self {
                    low: inputs.iter().map(|bound| bound.low).min().unwrap_or(0),
                    high: inputs.iter().map(|bound| bound.high).max().unwrap_or(0),
                    evidence,
                },
            },
        })
    }

    /// A sum of few values, or a value in another ring, is as certain as the values, unless it had to be cut at the limit.
    fn inheriting(self, before: Evidence) -> Self {
        let evidence = if self.evidence == Evidence::Calibrated { self.evidence } else { before };
        Self { evidence, ..self }
    }

    /// The bound, if it fits the ring that its values enter.
    fn fitting(self, limit: i128, ring: Accumulator) -> Result<Self, String> {
        let (magnitude, modulus) = (self.magnitude(), ring.modulus());
        if magnitude > limit {
            return Err(format!("values up to {magnitude} do not fit the ring modulo {modulus}"));
        }
        Ok(self)
    }

    /// Both ends.
    fn ends(self) -> [i128; 2] {
        [self.low, self.high]
    }

    /// The interval times a factor of either sign.
    fn times(self, factor: i64) -> (i128, i128) {
        let ends = [self.low, self.high].map(|end| end.saturating_mul(factor.into()));
        (ends[0].min(ends[1]), ends[0].max(ends[1]))
    }

    /// The largest absolute value.
    #[must_use]
    pub fn magnitude(self) -> i128 {
        self.high.max(-self.low)
    }
}

/// The worst-case interval where it fits; otherwise the limit itself, on the evidence of calibration.
fn within(worst: Option<(i128, i128)>, input: Evidence, limit: i128) -> Bound {
    match worst {
        Some((low, high)) if low >= -limit && high <= limit => {
            let evidence = if input == Evidence::Proved { Evidence::Proved } else { Evidence::Implied };
            Bound { low, high, evidence }
        }
        _ => Bound { low: -limit, high: limit, evidence: Evidence::Calibrated },
    }
}

/// The interval of rescaled values. Modulo a power of two each may be rounded down or be one more than that.
fn rescaled(x: Bound, shift: u32, ring: Accumulator) -> Bound {
    if shift > 0 && ring.is_power_of_two() {
        return Bound { low: x.low >> shift, high: (x.high >> shift) + 1, ..x };
    }
    Bound { low: x.low.rescale(shift), high: x.high.rescale(shift), ..x }
}

/// The exact range of `W x + b` over all x with `low <= x <= high`, hull with 0 (padded borders use fewer taps), and what a layer
/// over `ring` may be off by.
#[must_use]
pub fn linear_interval(x: Bound, layer: &LinearWeights, ring: Accumulator) -> (i128, i128) {
    let (low, high) = (x.low, x.high);
    let mut hull = (0, 0);
    let sum = |a: i128, x: i128, b: i128, y: i128| a.saturating_mul(x).saturating_add(b.saturating_mul(y));
    for ([positive, negative], biases) in layer.sums() {
        for &b in biases {
            hull.0 = hull.0.min(sum(positive, low, negative, high).saturating_add(b));
            hull.1 = hull.1.max(sum(positive, high, negative, low).saturating_add(b));
        }
    }
    let error = i128::from(ring.sum_error());
    (hull.0 - error, hull.1 + error)
}

/// The largest absolute value that each value can take in the reference executor, whatever the input: sums outside the ring's limit
/// come back into the ring.
///
/// # Errors
/// [`CompileError::Network`] if a sum could overflow the integers that the reference runs on.
pub(crate) fn machine_bounds(
    network: &PublicNetwork,
    weights: &BTreeMap<usize, LinearWeights>,
) -> Result<Vec<i128>, CompileError> {
    let (input, limit) = (network.input(), network.machine_limit());
    let mut bounds = vec![i128::from(input.high).max(-i128::from(input.low))];
    for (index, node) in network.nodes().iter().enumerate() {
        let before = node.inputs.iter().map(|&value| bounds[value]).max().unwrap_or(0);
        // Products, and functions that change the ring, stay within it.
        let half = (node.accumulator.modulus() / 2) as i128;
        let worst: i128 = match (&node.op, weights.get(&index)) {
            (FixedOp::Conv2d(_) | FixedOp::Linear { .. } | FixedOp::Bias { .. }, Some(layer)) => {
                sum_bound(layer, before)
            }
            (FixedOp::SumPool(window), _) => before.saturating_mul(window.area() as i128),
            (FixedOp::Add { factors }, _) => {
                let of = |at: usize| i128::from(factors[at].abs()).saturating_mul(bounds[node.inputs[at]]);
                of(0).saturating_add(of(1))
            }
            (FixedOp::Scale { factor }, _) => before.saturating_mul(factor.abs().into()),
            (FixedOp::Mul, _) => {
                let [a, b] = [0, 1].map(|at| bounds[node.inputs[at]]);
                a.saturating_mul(b).min(half)
            }
            // Summed in 128 bits.
            (FixedOp::MatrixProduct { inner }, _) => {
                let [a, b] = [0, 1].map(|at| bounds[node.inputs[at]]);
                a.saturating_mul(b).saturating_mul(*inner as i128).min(half)
            }
            (FixedOp::Rescale { shift }, _) => {
                ((before + i128::from(rounding_constant(*shift))) >> shift) + 1
            }
            (op, _) if op.multiplies() || op.changes_ring() => op.elementwise().map_or(before, |op| {
                let [low, high] = op.interval([-before, before]);
                high.max(-low).min(half)
            }),
            _ => before,
        };
        if worst >= limit {
            let reason = format!("its sums could reach {worst}, beyond what the reference adds up in");
            return Err(CompileError::Network { place: node.name.clone(), reason });
        }
        bounds.push(if node.op.may_grow() { worst.min(half) } else { worst });
    }
    Ok(bounds)
}

/// The largest absolute partial sum of `W x + b` for |x| <= `magnitude`.
pub(crate) fn sum_bound(layer: &LinearWeights, magnitude: i128) -> i128 {
    let bias = layer.bias().iter().map(|b| b.saturating_abs()).max().unwrap_or(0);
    let absolute = |([positive, negative], _): ([i128; 2], &[i128])| positive - negative;
    layer.sums().map(absolute).max().unwrap_or(0).saturating_mul(magnitude).saturating_add(bias)
}

/// Whether a row of weights is one element's alone.
fn picks_one(row: &[i64]) -> bool {
    row.iter().all(|w| matches!(w, 0 | 1)) && row.iter().sum::<i64>() == 1
}

/// Checks that every linear layer, and nothing else, has weights of the right number and size.
pub(crate) fn check_weights(
    network: &PublicNetwork,
    weights: &BTreeMap<usize, LinearWeights>,
) -> Result<(), CompileError> {
    for (index, node) in network.nodes().iter().enumerate() {
        let wrong =
            |reason: &str| CompileError::Network { place: node.name.clone(), reason: reason.to_owned() };
        let input = network.shape(node.inputs[0]);
        let (expected, channels) = match &node.op {
            FixedOp::Conv2d(geometry) => (geometry.weight_count(input[0]), geometry.out_channels),
            FixedOp::Linear { outputs, .. } => (outputs * input[0], *outputs),
            FixedOp::Bias { .. } => (0, node.len()),
            _ if weights.contains_key(&index) => {
                return Err(wrong("it has weights but takes none"));
            }
            _ => continue,
        };
        let layer = weights.get(&index).ok_or_else(|| wrong("its weights are missing"))?;
        if layer.weight().len() != expected || layer.channels() != channels {
            return Err(wrong(&format!("it has {} weights, expected {expected}", layer.weight().len())));
        }
        if layer.bias().len() != channels && layer.bias().len() != node.len() {
            return Err(wrong(&format!(
                "it has {} biases, expected {channels} or {}",
                layer.bias().len(),
                node.len()
            )));
        }
        if let FixedOp::Bias { bits } = node.op
            && layer.bias().iter().any(|b| b.unsigned_abs() >> bits != 0)
        {
            return Err(wrong("what it adds has more bits than it says"));
        }
        if layer.weight_ends().into_iter().any(|w| i32::try_from(w).is_err()) {
            return Err(wrong("a weight does not fit 32 bits"));
        }
        if matches!(node.op, FixedOp::Linear { picks: true, .. })
            && let Some(row) = layer.rows().position(|row| !picks_one(row))
        {
            return Err(wrong(&format!(
                "it says that each row of its weights has a single 1 and zeros else, but row {row} has not"
            )));
        }
    }
    let nodes = network.nodes().len();
    match weights.keys().find(|&&index| index >= nodes) {
        Some(index) => Err(CompileError::Network {
            place: format!("node {index}"),
            reason: "weights without a node".to_owned(),
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Calibrated, Network};

    /// A layer of two rows over three elements, with or without what is said of its rows.
    fn file(says: &str) -> String {
        format!(
            r#"{{"format_version":7,"input":{{"name":"x","shape":[3],"scale":{{"grid":0}},"low":0,"high":7,"modulus":4096}},"nodes":[{{"name":"fc","op":{{"Linear":{{"outputs":2{says}}}}},"inputs":[0],"shape":[2],"modulus":4096}}],"output_scale":null,"head":"scores"}}"#
        )
    }

    fn network(says: &str, weight: [i64; 6]) -> Result<Network, CompileError> {
        let public = PublicNetwork::from_json(&file(says))?;
        let seen = |_| Calibrated {
            scale: 1.0,
            low: 0,
            high: 0,
            weight_error: None,
            function: None,
            saturates: false,
        };
        let layer = LinearWeights::new(2, weight.to_vec(), vec![0, -3]);
        Network::new(public, BTreeMap::from([(0, layer)]), &[0, 1].map(seen))
    }

    #[test]
    fn rows_that_are_said_to_pick_one_element_do() {
        let picks = r#","picks":true"#;
        let made = network(picks, [0, 0, 1, 1, 0, 0]).unwrap();
        // Ciphertexts may be off by one.
        assert_eq!([made.values()[1].low, made.values()[1].high], [-4, 8]);
        for weight in [[0, 0, 1, 0, 0, 0], [0, 0, 1, 1, 1, 0], [0, 2, 0, 1, 0, 0], [0, 0, 1, -1, 1, 1]] {
            let refusal = network(picks, weight).unwrap_err().to_string();
            assert!(refusal.contains("fc: ") && refusal.contains("a single 1"), "{refusal}");
            assert!(network("", weight).is_ok());
        }
    }

    #[test]
    fn a_layer_that_is_not_said_to_pick_is_written_as_before() {
        for says in ["", r#","picks":true"#] {
            let written = PublicNetwork::from_json(&file(says)).unwrap().to_json().unwrap();
            assert!(written.contains(&format!(r#"{{"Linear":{{"outputs":2{says}}}}}"#)), "{written}");
        }
    }
}
