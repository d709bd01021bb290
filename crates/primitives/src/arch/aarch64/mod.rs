//! aarch64: what each group of instructions that a machine may have is used for. NEON is part of every machine.

mod gf128;
mod neon;
mod schedule;

use std::arch::is_aarch64_feature_detected;

use super::table::{Instructions, Kernels};

/// The tables of this machine behind the portable one, each with more instructions than the last.
pub(super) fn available(mut tables: Vec<Kernels>) -> Vec<Kernels> {
    // The multiplications of polynomials come with AES.
    if is_aarch64_feature_detected!("aes") && is_aarch64_feature_detected!("pmull") {
        let with_aes = tables.last().copied().map(one_block::fill);
        tables.extend(with_aes.map(|last| Kernels {
            instructions: Instructions { field_products: "pmull", ..last.instructions },
            field_dot: gf128::field_dot,
            ..last
        }));
    }
    tables
}

kernels_of!(
    one_block,
    crate::arch::aarch64::neon::Neon,
    crate::arch::aarch64::schedule::schedule,
    "neon,aes",
    4,
    10
);

/// Features that kernels look for, and whether this machine has them.
pub(super) fn features() -> [(&'static str, bool); 2] {
    [("aes", is_aarch64_feature_detected!("aes")), ("pmull", is_aarch64_feature_detected!("pmull"))]
}
