//! What is known of a compiled model: ranges, bits, operations, circuits, leakage.

mod precision;

use lanner_network::{Features, InputScale, NetworkInput};
use lanner_network::{FixedOp, Network, Policy};
use lanner_plan::{Account, Action, BuiltStep, Rings};
use lanner_step::{Memory, ValueType};
use lanner_text::TextInput;
use serde_json::{Value, json};

use crate::named::{Coding, Column};
use crate::{Embeddings, Manifest, Result};

/// Ranges, bits, operations, circuits and leakage; over powers of two, how it rounds.
pub(crate) fn report(manifest: &Manifest, network: &Network) -> Result<Value> {
    let built = manifest.plan.build()?;
    let (set_up, account) = (built.set_up()?, built.account()?);
    let keys = set_up.keys.iter().map(|keys| {
        json!({
            "set": keys.set.name(), "degree": keys.parameters.degree(), "evaluation_keys": keys.needed.len(),
        })
    });
    let security = set_up.security().into_iter().map(|(name, bits)| json!({"name": name, "bits": bits}));
    let mut times = vec![0_u64; built.steps().len()];
    for visit in built.visits() {
        if let Action::Step(step) = visit.action {
            times[step] += 1;
        }
    }
    let steps = built.steps().iter().zip(times).map(|(step, times)| step_report(step, times));
    let mut report = json!({
        "mode": manifest.plan.mode,
        "samples_per_request": manifest.plan.samples.count(),
        "precision": precision::reached(network),
        "bits": precision::layers(network),
        "lookups": precision::lookups(&manifest.plan, network),
        "values": network.values(),
        "unproved": network.unproved().map(|value| value.name.as_str()).collect::<Vec<_>>(),
        "calibration": {"samples_set_aside": network.set_aside(), "inputs_made": network.made(), "inputs_given_up": network.given_up()},
        "steps": steps.collect::<Vec<_>>(),
        "memory": memory_of(&built.memory()?, built.shared_bytes(&manifest.plan, network)?),
        "parameters": keys.collect::<Vec<_>>(),
        "security": security.collect::<Vec<_>>(),
        "statistical_distance": distances(&account),
        "leakage": leakage(manifest, &account),
    });
    if let Some(features) = features(network.public().input()) {
        report["features"] = features;
    }
    let published: Vec<Value> = published(manifest).collect();
    if !published.is_empty() {
        report["embeddings"] = json!(published);
        report["leakage"]["embeddings"] = json!(EMBEDDINGS);
    }
    if let Some(text) = &manifest.text {
        report["leakage"]["text"] = json!(texts(text));
    }
    if !manifest.plan.saturation.is_empty() {
        report["leakage"]["saturation"] = json!(SATURATION);
    }
    let mode = manifest.plan.mode;
    if mode.design().checks_clients() {
        report["leakage"]["server"] = json!(
            "that a prediction was made, and when, and whether it was served; nothing of the input or the result"
        );
        report["leakage"]["cheating"] = json!(CHEATING);
        report["leakage"]["assumed"] = json!(ASSUMED);
        report["leakage"]["not_protected"] = json!(NOT_CHECKED);
    }
    if let Some(rounding) = mode.inexact() {
        report["rounding"] = json!(rounding.said);
        report["leakage"]["rounding"] = json!(rounding.leak);
    } else if mode.design().rings == Rings::PowersOfTwo {
        report["rounding"] = json!("exact: every result is a function of the input and the weights");
    }
    Ok(report)
}

/// What a client that deviates gets where it is checked, for people.
const CHEATING: &str = "A client that cheats gets the result for one accepted input, or nothing. It passes the check by luck with probability at most 2^-59. \
                        Whether a check fails depends on the weights by at most 2^-40 for each failure.";

/// What that rests on, for people.
const ASSUMED: &str = "ring-LWE (degree 8192, a modulus of 150 bits), AES as an ideal cipher, SHA-256 as a random oracle, computational Diffie-Hellman; the \
                       protocol and its proof are the project's own, and nobody outside it has reviewed them";

/// What no check helps against, for people.
const NOT_CHECKED: &str = "against a client that asks many questions to imitate the model; against a server that deviates from the protocol";

/// What the bit of saturation tells a client, for people.
const SATURATION: &str = "The bit reveals whether a hidden value reached a limit. A client that asks about many chosen inputs learns more of the weights than \
                          from scores alone.";

/// What published tables tell, for people.
const EMBEDDINGS: &str = "The embedding tables are public, every weight. The client therefore knows the exact input of the first layer.";

/// What is learnt of texts.
fn texts(text: &TextInput) -> String {
    format!(
        "Clients receive the tokenizer. Every text becomes {} tokens, so the server sees how many texts there are, not how long they are.",
        text.length
    )
}

/// The tables that are published, and how many weights they are.
fn published(manifest: &Manifest) -> impl Iterator<Item = Value> {
    manifest.inputs.iter().filter_map(|input| {
        let Embeddings { rows, width, .. } = input.embeddings.as_ref()?;
        Some(json!({"input": input.name, "rows": rows, "width": width, "weights": rows.saturating_mul(*width)}))
    })
}

/// What is told of each feature of an input whose features have units of their own: the range accepted, a unit, the centre, and of a public
/// preprocessing the factor and the term.
fn features(input: &NetworkInput) -> Option<Value> {
    let features = input.features.as_ref()?;
    let rows = features.first_elements(&input.shape).enumerate().map(|(feature, index)| {
        let [low, high] = input.limits_of(index);
        let unit = input.unit(index);
        let mut row = json!({
            "name": feature, "low": low, "high": high, "unit": unit, "centre": features.centres[feature] as f64 * unit,
        });
        if let Some(constants) = &features.preprocessing {
            row["factor"] = json!(constants.factors[feature]);
            row["term"] = json!(constants.terms[feature]);
        }
        row
    });
    Some(rows.collect())
}

/// Bytes that each party keeps, to within small change; `shared` of the server's are kept once for several layers.
pub(crate) fn memory_of(memory: &Memory, shared: u64) -> Value {
    let [client, server] = memory.of_unprepared();
    json!({
        "server_bytes": memory.model - shared,
        "server_bytes_per_session": memory.session,
        "server_bytes_per_prediction": server,
        "server_bytes_per_prepared_prediction": memory.server_material,
        "server_bytes_at_work": memory.working,
        "client_bytes_per_prediction": client,
        "client_bytes_per_prepared_prediction": memory.client_material,
        "client_bytes_at_work": memory.client_working,
        "layout_bytes": memory.layouts,
    })
}

/// A step, and what it counts in all its visits together.
fn step_report(step: &BuiltStep, times: u64) -> Value {
    let ring = |value: &ValueType| match value {
        ValueType::Shared { ring, .. } => Some(json!(ring.modulus())),
        // Beyond what JSON's readers have as a number.
        ValueType::Encrypted(value) => Some(json!(value.modulus.to_string())),
        ValueType::Revealed => None,
    };
    let (inputs, made) = &step.types;
    let (from, to) = (inputs.first().and_then(ring), ring(made));
    let mut row = json!({"name": step.name, "protocol": step.protocol, "ring": from});
    if to.is_some() && to != from {
        row["output_ring"] = json!(to);
    }
    if times > 1 {
        row["times"] = json!(times);
    }
    for (name, count) in step.built.counts() {
        row[name] = json!(if SIZES.contains(&name) { count } else { count * times });
    }
    row
}

/// What a step counts that is no work: it is the same in every visit.
const SIZES: [&str; 3] = ["degree", "limbs", "primes"];

/// How far ciphertexts may be from ones that do not depend on the weights: `2^-bits`; no bits where masks are uniform.
fn distances(account: &Account) -> Value {
    let tenths = |bits| Some(tenths(bits)).filter(|bits| bits.is_finite());
    json!({
        "ciphertext_bits": tenths(account.ciphertext_bits()),
        "ciphertexts_per_prediction": account.ciphertexts(),
        "predictions": Account::PREDICTIONS,
        "bits": tenths(account.session_bits()),
    })
}

/// The same for people.
fn ciphertexts(account: &Account) -> String {
    let (count, all) = (account.ciphertexts(), tenths(account.session_bits()));
    if all.is_infinite() {
        return format!(
            "Each prediction sends the client {count} ciphertexts, masked uniformly: they reveal nothing of the weights beyond the result"
        );
    }
    format!(
        "Each prediction sends the client {count} ciphertexts. Over 2^20 predictions a client's advantage in learning more of the weights than the \
         result is at most 2^-{all}."
    )
}

/// Rounded down to tenths.
fn tenths(bits: f64) -> f64 {
    (bits * 10.0).floor() / 10.0
}

/// What each party learns beyond its own secrets, in sentences.
fn leakage(manifest: &Manifest, account: &Account) -> Value {
    let result = match manifest.policy {
        Policy::Label => "the label of its input".to_owned(),
        Policy::LabelMap { places } => format!("the label of each of {places} places"),
        Policy::Labels => "which labels its input has".to_owned(),
        Policy::Probability { digits } => {
            let plural = if digits == 1 { "" } else { "s" };
            format!("the label of its input and the label's probability to {digits} decimal digit{plural}")
        }
        Policy::TopK { k: 1 } => "the best label of its input".to_owned(),
        Policy::TopK { k } => format!("the {k} best labels of its input, in order"),
        Policy::Logits => "every score of its input".to_owned(),
        Policy::Value => "every output for its input".to_owned(),
    };
    let result = if manifest.plan.saturation.is_empty() {
        format!("and {result}")
    } else {
        format!(
            "{result}, whether any activation was cut off (one bit per input), and where the compiler set such limits"
        )
    };
    let columns = if has_codes(manifest) { COLUMNS } else { "" };
    json!({
        "client": format!("the architecture (operators, shapes, rings, shifts), {}, {result}{columns}", numbers(manifest)),
        "ciphertexts": ciphertexts(account),
        "server": "that a prediction was made, and when; nothing about the input or the result",
        "not_protected": "a client that deviates from the protocol can learn the weights, and one that asks many questions can imitate the model",
    })
}

/// The columns of all tables.
fn columns(manifest: &Manifest) -> impl Iterator<Item = &Column> {
    manifest.inputs.iter().flat_map(|input| input.columns.iter().flatten())
}

/// Whether trees read columns.
fn has_codes(manifest: &Manifest) -> bool {
    columns(manifest).any(|column| column.coding == Coding::Code)
}

/// What is known of the columns that trees read, behind the rest.
const COLUMNS: &str = ". For each column: its name and words (as the owner states them), its unit (a power of ten or two), its range (that of the calibration \
                       samples, to 1/16, or exactly where it is narrow) and whether numbers may be missing.";

/// What of the public half follows from weights or samples, or is the owner's word.
fn numbers(manifest: &Manifest) -> String {
    let network = &manifest.network;
    let scores = "the scale of the scores (rounded up to eighths of a doubling)";
    if has_codes(manifest) {
        let trees = "the number of trees, the largest number of nodes and leaves per tree (rounded up)";
        let scores = network.output_scale().map(|_| scores);
        return std::iter::once(trees).chain(scores).collect::<Vec<_>>().join(", ");
    }
    let has = |what: fn(&FixedOp) -> bool| network.nodes().iter().any(|node| what(&node.op));
    let by_feature = |features: &Features| {
        features.exponents.iter().any(|exponent| *exponent != features.exponents[0])
            || features.centres.iter().any(|centre| *centre != 0)
    };
    let features = network.input().features.as_ref();
    let input = match network.input().scale {
        InputScale::Stated { .. } => "the input's range as its owner states it",
        InputScale::Grid(_) if features.is_some_and(by_feature) => {
            "for each feature its unit (a power of two) and its centre (in steps of an eighth to a quarter of the range), both from the \
             calibration samples"
        }
        InputScale::Grid(_) => {
            "the input's scale and range (those of the calibration samples, rounded up to eighths of a doubling)"
        }
    };
    let published = features.is_some_and(|features| features.preprocessing.is_some());
    let others = [
        (
            columns(manifest).next().is_some(),
            "of each column its name and whether it may lack numbers, and of a column of words the words that the model knows",
        ),
        (
            published,
            "the constants in front of the first layer (exactly, as the owner asked: public preprocessing)",
        ),
        (network.output_scale().is_some(), scores),
        (
            has(|op| matches!(op, FixedOp::Add { .. } | FixedOp::Scale { .. })),
            "the ratios between the scales of values that are added or joined (of rounded scales)",
        ),
        (
            has(|op| matches!(op, FixedOp::Narrow)),
            "the ranges of looked-up values (those of the calibration samples, to a power of two)",
        ),
        (has(|op| matches!(op, FixedOp::Bias { .. })), "the size in bits of constants added outside layers"),
        (
            has(|op| matches!(op, FixedOp::Clip { .. })),
            "the upper bounds of activations (in units of rounded scales)",
        ),
    ];
    let told = others.into_iter().filter_map(|(is_told, what)| is_told.then_some(what));
    std::iter::once(input).chain(told).collect::<Vec<_>>().join(", ")
}
