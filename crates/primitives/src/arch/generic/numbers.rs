//! Numbers of consecutive blocks, a register of them at a time.

use crate::Block;
use crate::arch::registers::{MAX_LANES, Registers};
use crate::arch::wide::Numbering;

/// Those of the next blocks, and what they grow by.
pub(super) struct Numbers<S: Registers> {
    next: S::Register,
    step: S::Register,
}

impl<S: Registers> Numbers<S> {
    /// From the first block on.
    #[inline(always)]
    pub(super) fn new(set: S, numbering: Numbering) -> Self {
        Self::as_blocks(set, numbering, |number| Block(u128::from(number)))
    }

    /// The same, with the number in both words of a block.
    #[inline(always)]
    pub(super) fn in_both_words(set: S, numbering: Numbering) -> Self {
        Self::as_blocks(set, numbering, |number| Block(u128::from(number) << 64 | u128::from(number)))
    }

    #[inline(always)]
    fn as_blocks(set: S, numbering: Numbering, block: impl Fn(u64) -> Block) -> Self {
        let mut lanes = [Block::ZERO; MAX_LANES];
        for (number, lane) in lanes.iter_mut().enumerate() {
            *lane = block(numbering.of(number));
        }
        let step = numbering.of(S::LANES).wrapping_sub(numbering.of(0));
        Self { next: set.load(&lanes[..S::LANES]), step: set.spread(block(step)) }
    }

    /// Those of the next registers.
    #[inline(always)]
    pub(super) fn take<const COUNT: usize>(&mut self, set: S) -> [S::Register; COUNT] {
        let mut taken = [self.next; COUNT];
        for taken in &mut taken {
            *taken = self.next;
            self.next = set.add(self.next, self.step);
        }
        taken
    }
}
