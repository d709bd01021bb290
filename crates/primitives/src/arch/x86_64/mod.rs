//! x86-64: what each group of instructions that a machine may have is used for.

mod aes;
mod avx2;
mod avx512;
mod gf128;
mod schedule;
mod transpose;

use super::generic::{double, encryption, hash, local_code, low_bits, short_hash, siblings};
use super::table::Kernels;
use super::wide::{CipherKernels, Numbering, RoundKeys};
use crate::Block;

/// The tables of this machine behind the portable one, each with more instructions than the last.
pub(super) fn available(mut tables: Vec<Kernels>) -> Vec<Kernels> {
    let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("aes");
    let vaes = avx2 && is_x86_feature_detected!("vaes");
    let avx512 = is_x86_feature_detected!("avx512f");
    let groups: [(bool, fn(Kernels) -> Kernels); 6] = [
        (is_x86_feature_detected!("pclmulqdq") && is_x86_feature_detected!("sse4.1"), |last| Kernels {
            field_dot: gf128::field_dot,
            ..last
        }),
        (is_x86_feature_detected!("avx2"), |last| Kernels { transpose: transpose::transpose_avx2, ..last }),
        (avx2, one_block::fill),
        (vaes, two_blocks::fill),
        (vaes && avx512, four_blocks::fill),
        (
            avx512
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vbmi")
                && is_x86_feature_detected!("gfni"),
            |last| Kernels { transpose: transpose::transpose_wide, ..last },
        ),
    ];
    for (_, fill) in groups.into_iter().filter(|(available, _)| *available) {
        tables.extend(tables.last().copied().map(fill));
    }
    tables
}

/// Functions of the table that are generic kernels, compiled with these features for this set of registers.
macro_rules! compile {
    ($set:ty, $features:literal: $(fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? = $kernel:expr;)*) => {$(
        #[target_feature(enable = $features)]
        fn $name($($argument: $type),*) $(-> $result)? {
            // SAFETY: the features are those of the set.
            let set = unsafe { <$set>::new() };
            $kernel(set, $($argument),*)
        }
    )*};
}

/// A module of all generic kernels for this set. The local code makes the places of `$columns` outputs at a time, which fill
/// `$registers` registers.
macro_rules! kernels_of {
    ($module:ident, $set:ty, $features:literal, $columns:literal, $registers:literal) => {
        mod $module {
            use super::*;

            /// The table with these kernels.
            pub(super) fn fill(last: Kernels) -> Kernels {
                Kernels {
                    add_at_siblings,
                    add_by_parents,
                    low_bits,
                    bit_of_words,
                    double_and_add,
                    cipher: Some(&CIPHER),
                    ..last
                }
            }

            const CIPHER: CipherKernels = CipherKernels {
                schedule: schedule::schedule,
                encrypt,
                counter_mode,
                hash,
                expand,
                hash_low_words,
                hash_runs_to_bits,
                max_inputs: local_code::MAX_INPUTS,
                add_local,
            };

            compile! { $set, $features:
                fn add_at_siblings(blocks: &mut [Block], place: usize, values: [Block; 2]) = siblings::add_at_siblings;
                fn add_by_parents(blocks: &mut [Block], value: Block) = siblings::add_by_parents;
                fn low_bits(blocks: &[Block]) -> u64 = low_bits::low_bits;
                fn bit_of_words(words: &[u64], bit: u32) -> u64 = low_bits::bit_of_words;
                fn double_and_add(x: &mut [Block], y: &[Block]) = double::double_and_add;
                fn encrypt(keys: &RoundKeys, blocks: &mut [Block]) = encryption::encrypt;
                fn counter_mode(keys: &RoundKeys, first: u64, blocks: &mut [Block]) = encryption::counter_mode;
                fn hash(keys: &RoundKeys, x: &mut [Block], offset: Block, tweaks: Numbering) = hash::hash;
                fn expand(keys: &RoundKeys, nodes: &mut [Block], tweaks: Numbering, keep: Block) -> Block = hash::expand;
                fn hash_low_words(keys: &RoundKeys, x: &[Block], offset: Block, first: u64, out: &mut [u64])
                    = short_hash::hash_low_words;
                fn hash_runs_to_bits(
                    keys: &RoundKeys, x: &[Block], offsets: &[Block], first: u64, rows: usize, out: &mut [u16]
                ) = short_hash::hash_runs_to_bits;
                fn add_local(keys: &RoundKeys, input: &[Block], first: u64, out: &mut [Block])
                    = local_code::add_local::<_, $columns, $registers>;
            }
        }
    };
}

kernels_of!(one_block, aes::Aes, "avx2,aes", 4, 10);
kernels_of!(two_blocks, avx2::Avx2, "avx2,aes,vaes", 8, 10);
kernels_of!(four_blocks, avx512::Avx512, "avx512f,aes,vaes", 8, 5);

/// For the shuffles of 32-bit integers: the words of each block swapped.
const SWAP: i32 = 0b01_00_11_10;
/// For the same: in each word twice the upper integer of the block's other word.
const OTHER_HIGH: i32 = 0b01_01_11_11;

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
