//! The parts that a layer's instances are worked on in: each is garbled, sent, given its labels and evaluated by itself, so that parts
//! are evaluated on several cores, and some while the next are on their way.
//!
//! The batch numbers run on over all parts of a layer: they are those of garbling all instances at once.

use std::ops::Range;

use lanner_gc::{Circuit, INSTANCES_PER_BATCH, batches};
use lanner_primitives::parallel;

/// Some of a layer's instances.
pub(super) struct Part {
    instances: Range<usize>,
}

/// The parts of a given number of instances of a circuit: functions of public counts.
pub(super) fn parts(circuit: &Circuit, instances: usize) -> impl Iterator<Item = Part> + use<> {
    let length = length(circuit);
    (0..instances).step_by(length).map(move |first| Part { instances: first..instances.min(first + length) })
}

/// The instances of every part but the last.
pub(super) fn length(circuit: &Circuit) -> usize {
    WORD * (PART_BYTES / circuit.table_bytes(WORD).max(1)).max(1)
}

/// As many at a time as are worked on at once.
pub(super) fn in_turns<T>(items: impl IntoIterator<Item = T>) -> impl Iterator<Item = Vec<T>> {
    let mut items = items.into_iter();
    std::iter::from_fn(move || {
        let some: Vec<T> = items.by_ref().take(parallel::threads()).collect();
        (!some.is_empty()).then_some(some)
    })
}

impl Part {
    pub(super) fn len(&self) -> usize {
        self.instances.len()
    }

    /// The place of the part's first of values that every instance has `each` of.
    pub(super) const fn first_of(&self, each: usize) -> usize {
        self.instances.start * each
    }

    /// The word that the part's bits begin with, of those of all instances with `width` bits each.
    pub(super) const fn first_word(&self, width: usize) -> usize {
        self.instances.start / WORD * width
    }

    /// The batch number of the part's first instances, where the layer's is `first`.
    pub(super) const fn first_batch(&self, first: u64) -> u64 {
        first + batches(self.instances.start)
    }
}

/// Bits of a word. Parts begin with whole words of bits and with whole batches.
const WORD: usize = 64;

const _: () = assert!(WORD.is_multiple_of(INSTANCES_PER_BATCH));

/// Bytes of a part's tables, unless a word of instances has more: few enough to stay in a core's cache.
const PART_BYTES: usize = 512 << 10;
