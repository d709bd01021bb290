//! Versions, processor features and what the kernels make of them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::manifest::FORMAT_VERSION;
use crate::model::rings;

/// Versions, processor features and the chosen kernels.
#[must_use]
pub fn doctor() -> Value {
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "wire_version": lanner_session::handshake::WIRE_VERSION,
        "format_version": FORMAT_VERSION,
        "profile": if cfg!(debug_assertions) { "debug" } else { "release" },
        "architecture": std::env::consts::ARCH,
        "system": std::env::consts::OS,
        "cores": std::thread::available_parallelism().map_or(1, usize::from),
        "features": lanner_primitives::features().into_iter().collect::<BTreeMap<_, _>>(),
        "kernels": kernels(),
        "rings": rings(),
    })
}

/// The instructions that each family of kernels uses on this machine, the fastest that are written for it.
fn kernels() -> BTreeMap<&'static str, String> {
    let transforms = format!("{:?}", lanner_ring::Backend::available()[0]);
    let garbling = format!("{:?}", lanner_gc::Backend::detect());
    let named = [("transforms", transforms), ("garbling", garbling)];
    let others = lanner_primitives::instructions().map(|(family, used)| (family, used.to_owned()));
    named.into_iter().chain(others).map(|(family, used)| (family, used.to_lowercase())).collect()
}
