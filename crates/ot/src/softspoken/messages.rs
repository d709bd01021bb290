//! The shapes of the extension's messages: functions of public counts.

use lanner_primitives::Block;

use super::punctured::PUNCTURE_BLOCKS;
use super::small_field::STRIPE;
use super::{TREES, leaves};

/// Bytes that complete the trees, which come first in their message.
pub(super) const SUMS_BYTES: usize = TREES * PUNCTURE_BLOCKS * Block::BYTES;

/// Bytes of the setup message that completes the trees and proves them.
pub(super) const PUNCTURE_BYTES: usize = SUMS_BYTES + leaves::PROOF_BYTES;

/// Stripes of one message of corrections: 2^16 transfers.
pub(super) const CHUNK_STRIPES: usize = 8;

/// Whose choices an extension is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Choices {
    /// The first tree's `u`: its corrections are zero and not sent.
    Random,
    /// The receiver's input.
    Given,
}

impl Choices {
    /// The first tree whose corrections are sent.
    pub(super) const fn first_tree(self) -> usize {
        match self {
            Self::Random => 1,
            Self::Given => 0,
        }
    }

    /// The trees whose corrections are sent.
    pub(super) const fn trees(self) -> usize {
        TREES - self.first_tree()
    }
}

/// The columns of an extension in blocks of 128, chunk by chunk, stripe by stripe.
///
/// Each chunk is one message: its stripes one after the other, each with one row for each tree.
pub(super) struct Chunks {
    left: usize,
}

impl Chunks {
    /// The chunks of `count` transfers, rounded up to whole blocks of columns.
    pub(super) const fn of(count: usize) -> Self {
        Self { left: count.div_ceil(128) }
    }
}

impl Iterator for Chunks {
    type Item = usize;

    /// The blocks of columns of the next chunk.
    fn next(&mut self) -> Option<usize> {
        let blocks = self.left.min(CHUNK_STRIPES * STRIPE);
        self.left -= blocks;
        (blocks > 0).then_some(blocks)
    }
}
