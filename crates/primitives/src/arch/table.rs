//! The table of kernels, and their calls.

use super::wide::CipherKernels;
use crate::Block;

/// The kernels, as a table that instruction sets fill. Only a machine that has the instructions of all has the table.
#[derive(Clone, Copy)]
pub(crate) struct Kernels {
    pub(super) instructions: Instructions,
    pub(super) transpose: unsafe fn(&[Block], &mut [Block]),
    pub(super) add_at_siblings: unsafe fn(&mut [Block], usize, [Block; 2]),
    pub(super) add_by_parents: unsafe fn(&mut [Block], Block),
    pub(super) low_bits: unsafe fn(&[Block]) -> u64,
    pub(super) bit_of_words: unsafe fn(&[u64], u32) -> u64,
    pub(super) double_and_add: unsafe fn(&mut [Block], &[Block]),
    pub(super) field_dot: unsafe fn(&[Block], &[Block]) -> Block,
    /// A cipher for many blocks at a time.
    pub(super) cipher: Option<&'static CipherKernels>,
}

/// The instructions that kernels are compiled for, by what they compute.
#[derive(Clone, Copy)]
pub(super) struct Instructions {
    pub(super) hashes: &'static str,
    pub(super) transposition: &'static str,
    pub(super) field_products: &'static str,
}

impl Instructions {
    /// Those that every machine of the architecture has.
    pub(super) const PORTABLE: Self =
        Self { hashes: "portable", transposition: "portable", field_products: "portable" };
}

impl Kernels {
    /// Transposes `rows` (128 rows of `out.len() / 128` blocks) into `out`; the lengths are equal multiples of 128.
    pub(crate) fn transpose(&self, rows: &[Block], out: &mut [Block]) {
        // SAFETY: this machine has the table.
        unsafe { (self.transpose)(rows, out) }
    }

    /// Adds `values` at block `place` of each half of `blocks`, whose length is even, reading and writing all of them.
    pub(crate) fn add_at_siblings(&self, blocks: &mut [Block], place: usize, values: [Block; 2]) {
        // SAFETY: as above.
        unsafe { (self.add_at_siblings)(blocks, place, values) }
    }

    /// Adds `value` to both blocks of each pair of siblings, one in each half of `blocks`, whose sum has a low bit; the length is even.
    pub(crate) fn add_by_parents(&self, blocks: &mut [Block], value: Block) {
        // SAFETY: as above.
        unsafe { (self.add_by_parents)(blocks, value) }
    }

    /// The low bits of at most 64 blocks.
    pub(crate) fn low_bits(&self, blocks: &[Block]) -> u64 {
        // SAFETY: as above.
        unsafe { (self.low_bits)(blocks) }
    }

    /// Bit `bit` of each of at most 64 words.
    pub(crate) fn bit_of_words(&self, words: &[u64], bit: u32) -> u64 {
        // SAFETY: as above.
        unsafe { (self.bit_of_words)(words, bit) }
    }

    /// Replaces every `x[j]` by the sum of `y[j]` and its double, for `j` below the shorter length.
    pub(crate) fn double_and_add(&self, x: &mut [Block], y: &[Block]) {
        // SAFETY: as above.
        unsafe { (self.double_and_add)(x, y) }
    }

    /// The sum of the products of the elements of `GF(2^128)` at equal places, below the shorter length.
    pub(crate) fn field_dot(&self, a: &[Block], b: &[Block]) -> Block {
        // SAFETY: as above.
        unsafe { (self.field_dot)(a, b) }
    }
}
