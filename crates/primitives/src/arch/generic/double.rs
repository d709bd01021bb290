//! Products with `X` over `GF(2^128)`.

use crate::Block;
use crate::arch::registers::Registers;
use crate::block::REDUCED;

/// Replaces every `x[j]` by the sum of `y[j]` and its double, for `j` below the shorter length.
#[inline(always)]
pub(in crate::arch) fn double_and_add<S: Registers>(set: S, x: &mut [Block], y: &[Block]) {
    // What the highest bit of the other word of a block adds to each word: that of the upper is reduced.
    let carries = set.spread(Block(1 << 64 | REDUCED));
    let count = x.len().min(y.len());
    for (x, y) in x[..count].chunks_mut(S::LANES).zip(y[..count].chunks(S::LANES)) {
        let (doubled, added) = (set.load(x), set.load(y));
        let carried = set.and(set.where_other_is_high(doubled), carries);
        set.store(x, set.xor(set.xor(set.add(doubled, doubled), carried), added));
    }
}
