//! Counters of a server.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use lanner_wire::Traffic;
use serde::Serialize;

use super::computations::{Computations, ComputedStep};
use crate::executor::Measured;

/// Counters that sessions add to.
#[derive(Default)]
pub struct Metrics {
    sessions: AtomicU64,
    /// By the model's name; there are as many as models are served.
    predictions: Mutex<BTreeMap<String, u64>>,
    failures: AtomicU64,
    refused: AtomicU64,
    failed_handshakes: AtomicU64,
    bytes_sent: AtomicU64,
    bytes_received: AtomicU64,
    computations: Computations,
}

/// The counters at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Snapshot {
    /// Sessions that began.
    pub sessions: u64,
    /// Requests for predictions that were answered.
    pub predictions: u64,
    /// The same by the name under which the model is served; those that nobody asked for are not among them.
    pub predictions_by_model: BTreeMap<String, u64>,
    /// Sessions that ended with an error or a panic.
    pub failures: u64,
    /// Connections turned away, and sessions ended, because the server was busy.
    pub refused: u64,
    /// Connections that did not get through the TLS handshake.
    pub failed_handshakes: u64,
    /// Bytes of material that sessions keep at this moment.
    pub material: u64,
    /// Sessions under way at this moment.
    pub under_way: u64,
    /// Bytes sent on TCP by sessions that ended.
    pub bytes_sent: u64,
    /// Bytes received on TCP by sessions that ended.
    pub bytes_received: u64,
}

impl Metrics {
    /// The counters now; how many sessions there are and what they keep is not among them.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let predictions_by_model = self.predictions.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Snapshot {
            sessions: read(&self.sessions),
            predictions: predictions_by_model.values().sum(),
            predictions_by_model,
            failures: read(&self.failures),
            refused: read(&self.refused),
            failed_handshakes: read(&self.failed_handshakes),
            material: 0,
            under_way: 0,
            bytes_sent: read(&self.bytes_sent),
            bytes_received: read(&self.bytes_received),
        }
    }

    /// What was computed for each step of each model so far.
    #[must_use]
    pub fn computed(&self) -> Vec<ComputedStep> {
        self.computations.steps()
    }

    pub(super) fn count_computation(&self, model: &str, computed: &[Measured]) {
        self.computations.add(model, computed);
    }

    pub(super) fn count_session(&self) {
        self.sessions.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_predictions(&self, model: &str, count: u64) {
        let mut predictions = self.predictions.lock().unwrap_or_else(PoisonError::into_inner);
        *predictions.entry(model.to_owned()).or_default() += count;
    }

    pub(super) fn count_failure(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_failed_handshake(&self) {
        self.failed_handshakes.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_traffic(&self, traffic: Traffic) {
        self.bytes_sent.fetch_add(traffic.sent, Ordering::Relaxed);
        self.bytes_received.fetch_add(traffic.received, Ordering::Relaxed);
    }
}
