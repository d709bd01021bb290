//! Material that lives as long as its session.

use std::collections::VecDeque;

use lanner_step::Memory;

use crate::executor::{ExecutionError, Prepared};

/// Predictions that a client may have prepared and not used.
pub const MAX_PREPARED: usize = 64;

/// Bytes that either party keeps of them.
pub const MAX_PREPARED_BYTES: u64 = 4 << 30;

/// Predictions of a session that run at once.
pub const MAX_TOGETHER: usize = 8;

/// How many predictions may run at once, so that either party has `bytes` (4 GiB at most) for their material, that of as many others that are
/// prepared meanwhile, and what it works with; 1 to [`MAX_TOGETHER`].
#[must_use]
pub fn most_together(memory: &Memory, bytes: u64) -> usize {
    let of = |material: u64, working: u64| material.saturating_mul(2).saturating_add(working);
    let client = of(memory.client_material, memory.client_working);
    let each = client.max(of(memory.server_material, memory.working)).max(1);
    ((bytes.min(MAX_PREPARED_BYTES) / each) as usize).clamp(1, MAX_TOGETHER)
}

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
        self.len() == 0 || self.room() > 0
    }

    /// How many more predictions may be prepared.
    pub(super) fn room(&self) -> usize {
        let bytes = MAX_PREPARED_BYTES.checked_div(self.each).map_or(MAX_PREPARED, |count| count as usize);
        bytes.min(MAX_PREPARED).saturating_sub(self.len())
    }

    /// Drops all of it.
    pub(super) fn clear(&mut self) {
        self.prepared.clear();
    }

    pub(super) fn put(&mut self, prepared: Prepared) {
        self.prepared.push_back(prepared);
    }

    pub(super) fn take(&mut self) -> Result<Prepared, ExecutionError> {
        self.prepared.pop_front().ok_or(ExecutionError::Mismatch { what: "a prediction before its material" })
    }

    /// The oldest of it for a given number of predictions, or nothing.
    pub(super) fn take_for(&mut self, count: usize) -> Result<Vec<Prepared>, ExecutionError> {
        if self.len() < count {
            return Err(ExecutionError::Mismatch { what: "predictions before their material" });
        }
        Ok(self.prepared.drain(..count).collect())
    }
}
