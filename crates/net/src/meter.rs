//! What has crossed a connection so far, for whoever looks from another thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of one connection's bytes on TCP, in both directions: they only rise, and looking waits for nobody.
#[derive(Clone, Default)]
pub struct Meter(Arc<Bytes>);

#[derive(Default)]
struct Bytes {
    sent: AtomicU64,
    received: AtomicU64,
}

impl Meter {
    /// Bytes handed to the system so far.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.0.sent.load(Ordering::Relaxed)
    }

    /// Bytes taken from the system so far.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.0.received.load(Ordering::Relaxed)
    }

    pub(crate) fn add_sent(&self, bytes: usize) {
        self.0.sent.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn add_received(&self, bytes: usize) {
        self.0.received.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}
