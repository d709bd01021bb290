//! Additions at a secret place or under secret bits.

use super::numbers::Numbers;
use crate::Block;
use crate::arch::registers::Registers;
use crate::arch::wide::Numbering;

/// Adds `values` at the siblings of number `place`.
#[inline(always)]
pub(in crate::arch) fn add_at_siblings<S: Registers>(
    set: S,
    blocks: &mut [Block],
    place: usize,
    values: [Block; 2],
) {
    let (left, right) = blocks.split_at_mut(blocks.len() / 2);
    let [left_value, right_value] = values.map(|value| set.spread(value));
    let place = set.spread(Block((place as u128) << 64 | place as u128));
    let mut numbers = Numbers::in_both_words(set, Numbering::From(0));
    for (left, right) in left.chunks_mut(S::LANES).zip(right.chunks_mut(S::LANES)) {
        let [here] = numbers.take(set);
        let mask = set.where_equal(here, place);
        set.store(left, set.xor(set.load(left), set.and(mask, left_value)));
        set.store(right, set.xor(set.load(right), set.and(mask, right_value)));
    }
}

/// Adds `value` to siblings whose sum has a low bit.
#[inline(always)]
pub(in crate::arch) fn add_by_parents<S: Registers>(set: S, blocks: &mut [Block], value: Block) {
    let (left, right) = blocks.split_at_mut(blocks.len() / 2);
    let value = set.spread(value);
    for (left, right) in left.chunks_mut(S::LANES).zip(right.chunks_mut(S::LANES)) {
        let (x, y) = (set.load(left), set.load(right));
        let due = set.and(set.where_odd(set.xor(x, y)), value);
        set.store(left, set.xor(x, due));
        set.store(right, set.xor(y, due));
    }
}
