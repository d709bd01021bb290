//! x86-64: what each group of instructions that a machine may have is used for.

mod double;
mod gf128;
mod hash;
mod local_code;
mod low_bits;
mod registers;
mod short_hash;
mod siblings;
mod transpose;
mod vaes;

use super::table::Kernels;
use super::wide::CipherKernels;

/// The tables of this machine behind the portable one, each with more instructions than the last.
pub(super) fn available(mut tables: Vec<Kernels>) -> Vec<Kernels> {
    let avx512 = is_x86_feature_detected!("avx512f");
    let groups: [(bool, fn(Kernels) -> Kernels); 5] = [
        (is_x86_feature_detected!("pclmulqdq") && is_x86_feature_detected!("sse4.1"), |last| Kernels {
            field_dot: gf128::field_dot,
            ..last
        }),
        (is_x86_feature_detected!("avx2"), |last| Kernels { transpose: transpose::transpose_avx2, ..last }),
        (avx512, |last| Kernels {
            add_at_siblings: siblings::add_at_siblings,
            add_by_parents: siblings::add_by_parents,
            low_bits: low_bits::low_bits,
            bit_of_words: low_bits::bit_of_words,
            double_and_add: double::double_and_add,
            ..last
        }),
        (
            avx512
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vbmi")
                && is_x86_feature_detected!("gfni"),
            |last| Kernels { transpose: transpose::transpose_wide, ..last },
        ),
        (avx512 && is_x86_feature_detected!("vaes") && is_x86_feature_detected!("aes"), |last| Kernels {
            cipher: Some(&CIPHER),
            ..last
        }),
    ];
    for (_, fill) in groups.into_iter().filter(|(available, _)| *available) {
        tables.extend(tables.last().copied().map(fill));
    }
    tables
}

/// Over schedules that are the round keys, one after the other.
const CIPHER: CipherKernels = CipherKernels {
    schedule: vaes::schedule,
    encrypt: vaes::encrypt,
    counter_mode: vaes::counter_mode,
    hash: hash::hash,
    expand: hash::expand,
    hash_low_words: short_hash::hash_low_words,
    hash_runs_to_bits: short_hash::hash_runs_to_bits,
    max_inputs: local_code::MAX_INPUTS,
    add_local: local_code::add_local,
};

/// Features that kernels of any crate look for, and whether this machine has them.
pub(super) fn features() -> [(&'static str, bool); 6] {
    [
        ("aes", is_x86_feature_detected!("aes")),
        ("avx2", is_x86_feature_detected!("avx2")),
        ("avx512f", is_x86_feature_detected!("avx512f")),
        ("avx512ifma", is_x86_feature_detected!("avx512ifma")),
        ("vaes", is_x86_feature_detected!("vaes")),
        ("gfni", is_x86_feature_detected!("gfni")),
    ]
}
