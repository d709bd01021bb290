//! Additions at a secret place, or under secret bits.

use crate::{Block, arch};

/// Adds the first value to block `place` of the first half of `blocks` and the second to that of the second half: a node's children in
/// a level of a tree.
///
/// All blocks are read and written, whatever the place. The length of `blocks` is even, and `place` is below half of it; otherwise
/// nothing changes.
pub fn add_at_siblings(blocks: &mut [Block], place: usize, values: [Block; 2]) {
    debug_assert!(blocks.len().is_multiple_of(2));
    arch::kernels().add_at_siblings(blocks, place, values);
}

/// Adds `value` to both blocks of each pair of siblings, one in each half of `blocks`, whose sum has a low bit: the correction of a half tree's level,
/// whose nodes add up to their parent, under the parent's control bit.
///
/// All blocks are read and written. The length of `blocks` is even.
pub fn add_by_parents(blocks: &mut [Block], value: Block) {
    debug_assert!(blocks.len().is_multiple_of(2));
    arch::kernels().add_by_parents(blocks, value);
}
