//! What is known of a compiled model: ranges, bits, operations, circuits, leakage.

use lanner_graph::Network;
use lanner_plan::Protocol;
use lanner_protocol::linear::gazelle;
use lanner_protocol::linear::gazelle::packing::Packing;
use lanner_protocol::nonlinear::yao;
use serde_json::{Value, json};

use crate::{Error, Manifest, Result};

/// Ranges, bits, operations, circuits and leakage.
pub(crate) fn report(manifest: &Manifest, network: &Network) -> Result<Value> {
    let degree = gazelle::parameters()?.degree();
    let steps = manifest.plan.steps.iter().map(|step| {
        let mut row = step_report(&step.protocol, degree).map_err(Error::from)?;
        row["name"] = json!(step.name);
        row["protocol"] = json!(step.protocol.name());
        Ok(row)
    });
    Ok(json!({
        "values": network.values(),
        "steps": steps.collect::<Result<Vec<_>>>()?,
        "parameters": {"set": "B", "degree": degree, "security_bits": 128, "statistical_bits": 40},
        "leakage": leakage(&manifest.output),
    }))
}

fn step_report(
    protocol: &Protocol,
    degree: usize,
) -> std::result::Result<Value, lanner_protocol::ProtocolError> {
    Ok(match protocol {
        Protocol::GazelleLinear { shape, prime, kernel } => {
            let operations = Packing::of(shape, degree, *kernel)?.operations();
            json!({
                "ring": prime,
                "hoisted_rotations": operations.hoisted_rotations,
                "rotations": operations.rotations,
                "multiplications": operations.multiplications,
                "input_ciphertexts": operations.input_ciphertexts,
                "output_ciphertexts": operations.output_ciphertexts,
            })
        }
        Protocol::Yao { function, windows, from, to } => {
            let layer = yao::Layer::new(*function, windows, *from, *to)?;
            json!({"ring": from, "output_ring": to, "instances": layer.instances(), "and_gates": layer.circuit().and_count() * layer.instances()})
        }
        Protocol::YaoArgMax { classes, from } => {
            let layer = yao::ArgMax::new(*classes, *from)?;
            json!({"ring": from, "instances": 1, "and_gates": layer.circuit().and_count()})
        }
        Protocol::SumPool { prime, .. }
        | Protocol::GazelleSquare { prime, .. }
        | Protocol::Add { prime, .. }
        | Protocol::Scale { prime, .. }
        | Protocol::Move { prime, .. }
        | Protocol::Remask { prime, .. }
        | Protocol::Reveal { from: prime, .. } => {
            json!({"ring": prime})
        }
    })
}

/// What each party learns beyond its own secrets, in sentences.
fn leakage(output: &str) -> Value {
    let result = if output == "logits" { "every score of its input" } else { "the label of its input" };
    json!({
        "client": format!("the architecture (operators, shapes, rings, shifts), the input's scale and range, and {result}"),
        "server": "that a prediction was made, and when; nothing of the input or the result",
        "not_protected": "against a client that deviates from the protocol, or that asks many questions to imitate the model",
    })
}
