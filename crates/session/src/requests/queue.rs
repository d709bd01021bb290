//! Material that lives as long as its session.

use std::collections::VecDeque;

use crate::executor::{ExecutionError, Prepared};

/// Predictions that a client may have prepared and not used.
pub const MAX_PREPARED: usize = 64;

/// Bytes that either party keeps of them.
pub const MAX_PREPARED_BYTES: u64 = 4 << 30;

/// A session's material: first made, first used.
pub(super) struct Queue {
    prepared: VecDeque<Prepared>,
    /// Bytes kept of one prediction.
    each: u64,
}

impl Queue {
    pub(super) const fn new(each: u64) -> Self {
        Self { prepared: VecDeque::new(), each }
    }

    pub(super) fn len(&self) -> usize {
        self.prepared.len()
    }

    /// Whether one more prediction may be prepared; one always may.
    pub(super) fn has_room(&self) -> bool {
        let bytes = self.each.saturating_mul(self.len() as u64 + 1);
        self.len() == 0 || self.len() < MAX_PREPARED && bytes <= MAX_PREPARED_BYTES
    }

    pub(super) fn put(&mut self, prepared: Prepared) {
        self.prepared.push_back(prepared);
    }

    pub(super) fn take(&mut self) -> Result<Prepared, ExecutionError> {
        self.prepared.pop_front().ok_or(ExecutionError::Mismatch { what: "a prediction before its material" })
    }
}
