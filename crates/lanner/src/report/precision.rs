//! What precision was asked of a model, what it reaches, and with how many bits.

use lanner_network::Network;
use lanner_plan::Plan;
use serde_json::{Value, json};

/// What was asked and what is reached on the calibration samples; null for a network that nothing was asked of.
pub(super) fn reached(network: &Network) -> Value {
    let Some(reached) = network.reached() else { return Value::Null };
    json!({
        "asked": reached.asked.to_string(),
        "reached": reached.said(),
        "is_met": reached.is_met(),
        "logit_error": reached.error,
        "samples": reached.samples,
        "labels_kept": reached.labels_kept,
        "labels_lost": reached.labels_lost,
    })
}

/// For each linear layer, the bits that its input spans on the calibration samples, those of its largest weight, and its ring's.
pub(super) fn layers(network: &Network) -> Vec<Value> {
    let (nodes, values) = (network.public().nodes(), network.values());
    let layer = |(index, value): (usize, &lanner_network::ValueReport)| {
        let weights = value.weights?.bits;
        let [low, high] = values[nodes[index].inputs[0]].calibrated;
        // 0 to 255 are 256 values, and 8 bits.
        let activations = u128::BITS - high.abs_diff(low).leading_zeros();
        let ring = nodes[index].accumulator.bits();
        Some(json!({"name": value.name, "activations": activations, "weights": weights, "ring": ring}))
    };
    values.iter().skip(1).enumerate().filter_map(layer).collect()
}

/// For each lookup of a plan the bits that it keeps, sign included, and those that it drops; null in modes without lookups.
pub(super) fn lookups(plan: &Plan, network: &Network) -> Value {
    let nodes = network.public().nodes();
    let made = network.public().lookups().filter(|lookup| plan.looks_up(&nodes[lookup.first].name));
    let row = |lookup: lanner_network::Lookup| json!({"name": nodes[lookup.rescale].name, "kept": lookup.kept, "dropped": lookup.dropped});
    let rows: Vec<Value> = made.map(row).collect();
    if rows.is_empty() { Value::Null } else { rows.into() }
}
