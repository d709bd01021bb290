//! How far a client's predictions have come, for whoever looks while they run.

use std::sync::Arc;

use lanner_session::executor::ClientPlan;
use serde::Serialize;

/// Looks at a session without waiting for it.
#[derive(Clone)]
pub struct Watch(Arc<ClientPlan>);

/// How far one step of the plan has come in one phase, over all predictions of a session.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepProgress {
    /// The layer.
    pub name: String,
    /// Its protocol.
    pub protocol: &'static str,
    /// `offline` or `online`.
    pub phase: &'static str,
    /// How often one request takes the step.
    pub visits: u64,
    /// How often it was begun.
    pub begun: u64,
    /// How often it has ended.
    pub ended: u64,
    /// Seconds of what has ended.
    pub seconds: f64,
    /// Bytes of what has ended, in both directions.
    pub bytes: u64,
}

impl Watch {
    pub(crate) fn new(plan: &Arc<ClientPlan>) -> Self {
        Self(Arc::clone(plan))
    }

    /// How far every step has come: the offline phase's in the plan's order, then the online phase's.
    #[must_use]
    pub fn steps(&self) -> Vec<StepProgress> {
        let step = |step: lanner_session::executor::StepProgress| StepProgress {
            name: step.name,
            protocol: step.protocol,
            phase: step.phase.name(),
            visits: step.visits,
            begun: step.begun,
            ended: step.ended,
            seconds: step.seconds,
            bytes: step.bytes,
        };
        self.0.progress().into_iter().map(step).collect()
    }
}
