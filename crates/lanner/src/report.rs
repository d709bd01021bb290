//! What is known of a compiled model: ranges, bits, operations, circuits, leakage.

use lanner_graph::network::InputScale;
use lanner_graph::{FixedOp, Network, Policy, PublicNetwork};
use lanner_plan::{BuiltPlan, BuiltStep, Mode, Step};
use serde_json::{Value, json};

use crate::rounding::{self, Trial};
use crate::{Manifest, Result};

/// Ranges, bits, operations, circuits and leakage; in mode cheetah, why it rounds as it does.
pub(crate) fn report(manifest: &Manifest, network: &Network, trial: Option<Trial>) -> Result<Value> {
    let built = manifest.plan.build()?;
    let keys = built.keys()?.into_iter().map(|keys| {
        json!({
            "set": keys.set.name(), "degree": keys.parameters.degree(), "evaluation_keys": keys.automorphisms.len(),
            "security_bits": 128, "statistical_bits": 40
        })
    });
    let steps = manifest.plan.steps.iter().zip(built.steps()).map(step_report);
    let mut report = json!({
        "mode": manifest.plan.mode,
        "values": network.values(),
        "calibration": {"samples_set_aside": network.set_aside()},
        "steps": steps.collect::<Vec<_>>(),
        "memory": memory(&built)?,
        "parameters": keys.collect::<Vec<_>>(),
        "leakage": leakage(manifest),
    });
    if let Mode::Cheetah(chosen) = manifest.plan.mode {
        report["rounding"] = json!(rounding::reason(chosen, trial));
    }
    Ok(report)
}

/// Bytes that each party keeps, to within small change.
fn memory(built: &BuiltPlan) -> Result<Value> {
    let (server, held) = (built.memory()?, built.held());
    Ok(json!({
        "server_bytes": server.model,
        "server_bytes_per_session": server.session,
        "server_bytes_per_prediction": server.prediction,
        "server_bytes_at_work": server.working,
        "client_bytes_per_prediction": held.client,
    }))
}

fn step_report((step, built): (&Step, &BuiltStep)) -> Value {
    let protocol = step.protocol.describe();
    let mut row = json!({"name": step.name, "protocol": protocol.name(), "ring": protocol.ring().modulus()});
    if let Some(ring) = protocol.output_ring() {
        row["output_ring"] = json!(ring.modulus());
    }
    for (name, count) in built.built.facts().counts() {
        row[name] = json!(count);
    }
    row
}

/// What each party learns beyond its own secrets, in sentences.
fn leakage(manifest: &Manifest) -> Value {
    let result = match manifest.policy {
        Policy::Label => "the label of its input".to_owned(),
        Policy::Probability { digits } => {
            format!("the label of its input and the label's probability to {digits} decimal digits")
        }
        Policy::TopK { k } => format!("the {k} best labels of its input, in order"),
        Policy::Logits => "every score of its input".to_owned(),
    };
    json!({
        "client": format!("the architecture (operators, shapes, rings, shifts), {}, and {result}", numbers(&manifest.network)),
        "server": "that a prediction was made, and when; nothing of the input or the result",
        "not_protected": "against a client that deviates from the protocol, or that asks many questions to imitate the model",
    })
}

/// What of the public half follows from weights or samples, or is the owner's word.
fn numbers(network: &PublicNetwork) -> String {
    let has = |what: fn(&FixedOp) -> bool| network.nodes().iter().any(|node| what(&node.op));
    let stated = matches!(network.input().scale, InputScale::Stated { .. });
    let input = if stated {
        "the input's range as its owner states it"
    } else {
        "the input's scale and range (those of the calibration samples, rounded up to eighths of a doubling)"
    };
    let others = [
        (network.output_scale().is_some(), "the scale of the scores (rounded up to eighths of a doubling)"),
        (
            has(|op| matches!(op, FixedOp::Add { .. } | FixedOp::Scale { .. })),
            "the factors of sums and joins (ratios of rounded scales)",
        ),
        (
            has(|op| matches!(op, FixedOp::Clip { .. })),
            "the upper bounds of activations (in units of rounded scales)",
        ),
    ];
    let told = others.into_iter().filter_map(|(is_told, what)| is_told.then_some(what));
    std::iter::once(input).chain(told).collect::<Vec<_>>().join(", ")
}
