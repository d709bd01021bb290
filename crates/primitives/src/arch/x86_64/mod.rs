//! x86-64: what each group of instructions that a machine may have is used for.

mod aes;
mod avx2;
mod avx512;
mod gf128;
mod schedule;
mod shuffles;
mod transpose;

use super::table::{Instructions, Kernels};

/// The tables of this machine behind the portable one, each with more instructions than the last.
pub(super) fn available(mut tables: Vec<Kernels>) -> Vec<Kernels> {
    let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("aes");
    let vaes = avx2 && is_x86_feature_detected!("vaes");
    let avx512 = is_x86_feature_detected!("avx512f");
    let groups: [(bool, fn(Kernels) -> Kernels); 7] = [
        (is_x86_feature_detected!("pclmulqdq") && is_x86_feature_detected!("sse4.1"), |last| Kernels {
            instructions: Instructions { field_products: "pclmulqdq,sse4.1", ..last.instructions },
            field_dot: gf128::field_dot,
            ..last
        }),
        (is_x86_feature_detected!("avx2"), |last| Kernels {
            instructions: Instructions { transposition: "avx2", ..last.instructions },
            transpose: transpose::transpose_avx2,
            ..last
        }),
        (avx2, one_block::fill),
        (vaes, two_blocks::fill),
        (vaes && avx512, four_blocks::fill),
        (avx512 && is_x86_feature_detected!("vpclmulqdq") && is_x86_feature_detected!("pclmulqdq"), |last| {
            Kernels {
                instructions: Instructions {
                    field_products: "avx512f,vpclmulqdq,pclmulqdq,sse4.1",
                    ..last.instructions
                },
                field_dot: gf128::field_dot_wide,
                ..last
            }
        }),
        (
            avx512
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vbmi")
                && is_x86_feature_detected!("gfni"),
            |last| Kernels {
                instructions: Instructions { transposition: "avx512vbmi,gfni", ..last.instructions },
                transpose: transpose::transpose_wide,
                ..last
            },
        ),
    ];
    for (_, fill) in groups.into_iter().filter(|(available, _)| *available) {
        tables.extend(tables.last().copied().map(fill));
    }
    tables
}

kernels_of!(
    one_block,
    crate::arch::x86_64::aes::Aes,
    crate::arch::x86_64::schedule::schedule,
    "avx2,aes",
    4,
    10
);
kernels_of!(
    two_blocks,
    crate::arch::x86_64::avx2::Avx2,
    crate::arch::x86_64::schedule::schedule,
    "avx2,aes,vaes",
    8,
    10
);
kernels_of!(
    four_blocks,
    crate::arch::x86_64::avx512::Avx512,
    crate::arch::x86_64::schedule::schedule,
    "avx512f,aes,vaes",
    8,
    5
);

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
