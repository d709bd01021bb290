//! WebAssembly with vectors of 128 bits, which a module has or has not when it is compiled.

mod simd128;
mod sliced;

use super::generic::schedule;
use super::table::Kernels;
use super::wide::RoundKeys;

/// The table of this machine behind the portable one.
pub(super) fn available(mut tables: Vec<Kernels>) -> Vec<Kernels> {
    let with_vectors = tables.last().copied().map(one_block::fill);
    tables.extend(with_vectors);
    tables
}

fn schedule(key: &[u8; 16]) -> RoundKeys {
    schedule::schedule(key, sliced::substituted_word)
}

kernels_of!(
    one_block,
    crate::arch::wasm32::simd128::Simd128,
    crate::arch::wasm32::schedule,
    "simd128",
    16,
    40
);
