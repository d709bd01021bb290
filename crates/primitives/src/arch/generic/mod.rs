//! Kernels over [`Registers`](super::registers::Registers).
//!
//! They are always inlined: what instructions they may use is said where they are compiled for a set.

pub(super) mod double;
pub(super) mod encryption;
pub(super) mod hash;
pub(super) mod local_code;
pub(super) mod low_bits;
mod numbers;
#[cfg(not(target_arch = "x86_64"))]
pub(super) mod schedule;
pub(super) mod short_hash;
pub(super) mod siblings;

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

/// A module of all generic kernels for this set, with the key schedule of its architecture; both are named from the crate's root. The local
/// code makes the places of `$columns` outputs at a time, which fill `$registers` registers.
macro_rules! kernels_of {
    ($module:ident, $set:ty, $schedule:path, $features:literal, $columns:literal, $registers:literal) => {
        mod $module {
            use crate::Block;
            use crate::arch::generic::{double, encryption, hash, local_code, low_bits, short_hash, siblings};
            use crate::arch::table::{Instructions, Kernels};
            use crate::arch::wide::{CipherKernels, Numbering, RoundKeys};

            /// The table with these kernels.
            pub(super) fn fill(last: Kernels) -> Kernels {
                Kernels {
                    instructions: Instructions { hashes: $features, ..last.instructions },
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
                schedule: $schedule,
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
