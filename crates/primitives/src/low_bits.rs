//! The low bits of blocks, which carry choices and colours.

use crate::{Block, arch};

/// Appends the low bits of `blocks` to `words`: bit `i % 64` of word `i / 64` is that of block `i`, and those behind the last are zero.
pub fn low_bits(blocks: &[Block], words: &mut Vec<u64>) {
    words.extend(blocks.chunks(64).map(arch::low_bits));
}
