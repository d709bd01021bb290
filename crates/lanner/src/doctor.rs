//! Versions, processor features and what the kernels make of them.

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
        "features": features(),
        "rings": rings(),
    })
}

/// Processor features that a kernel looks for, and whether this machine has them.
fn features() -> Value {
    #[cfg(target_arch = "x86_64")]
    return json!({
        "aes": std::arch::is_x86_feature_detected!("aes"),
        "avx2": std::arch::is_x86_feature_detected!("avx2"),
        "avx512f": std::arch::is_x86_feature_detected!("avx512f"),
        "avx512ifma": std::arch::is_x86_feature_detected!("avx512ifma"),
        "vaes": std::arch::is_x86_feature_detected!("vaes"),
        "gfni": std::arch::is_x86_feature_detected!("gfni"),
    });
    #[cfg(not(target_arch = "x86_64"))]
    json!({})
}
