//! The kernels that have accelerated twins, and the choice between them at run time.

// The portable kernels are inlined into wrappers that enable vector instructions; without it those would not apply.
#![allow(clippy::inline_always)]

mod portable;

use crate::Block;

/// Transposes `rows` (128 rows of `out.len() / 128` blocks) into `out`; the lengths are equal multiples of 128.
pub(crate) fn transpose(rows: &[Block], out: &mut [Block]) {
    portable::transpose(rows, out);
}
