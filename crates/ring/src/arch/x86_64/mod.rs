//! x86-64 with AVX2, or with AVX-512.

mod avx2;
mod avx512;

use super::Kernels;

/// The tables of this machine, the fastest first.
pub(super) fn available() -> impl Iterator<Item = &'static Kernels> {
    let avx512 = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512ifma");
    let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
    let tables = [avx512.then_some(&avx512::KERNELS), avx2.then_some(&avx2::KERNELS)];
    tables.into_iter().flatten()
}
