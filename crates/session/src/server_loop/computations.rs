//! How long a server has computed for each step of each model.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

use crate::executor::Measured;

/// Totals by step, to which sessions add. There are as many as the served models have steps and phases.
#[derive(Default)]
pub(super) struct Computations(Mutex<BTreeMap<Key, Total>>);

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    model: String,
    phase: &'static str,
    step: String,
    protocol: &'static str,
}

#[derive(Clone, Copy, Default)]
struct Total {
    seconds: f64,
    count: u64,
    sent: u64,
    received: u64,
}

/// What a server has computed for one step of a model in one phase, since its start.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ComputedStep {
    /// The name under which the model is served.
    pub model: String,
    /// `setup`, `offline` or `online`.
    pub phase: &'static str,
    /// The step's name; that of a set-up is `setup`, and so is its protocol's.
    pub step: String,
    /// Its protocol's name.
    pub protocol: &'static str,
    /// Wall time without what passed in the channel, in sum.
    pub seconds: f64,
    /// How often.
    pub count: u64,
    /// Bytes that the server sent for it.
    pub bytes_sent: u64,
    /// Bytes that it received.
    pub bytes_received: u64,
}

impl Computations {
    pub(super) fn add(&self, model: &str, computed: &[Measured]) {
        let mut totals = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for Measured { name, protocol, phase, computing, traffic, .. } in computed {
            let (model, step) = (model.to_owned(), name.clone());
            let total = totals.entry(Key { model, phase: phase.name(), step, protocol }).or_default();
            total.seconds += computing;
            total.count += 1;
            total.sent += traffic.sent;
            total.received += traffic.received;
        }
    }

    pub(super) fn steps(&self) -> Vec<ComputedStep> {
        let totals = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let step = |(key, total): (&Key, &Total)| ComputedStep {
            model: key.model.clone(),
            phase: key.phase,
            step: key.step.clone(),
            protocol: key.protocol,
            seconds: total.seconds,
            count: total.count,
            bytes_sent: total.sent,
            bytes_received: total.received,
        };
        totals.iter().map(step).collect()
    }
}

#[cfg(test)]
mod tests {
    use lanner_wire::Traffic;

    use super::*;
    use crate::executor::Phase;

    #[test]
    fn steps_add_up_by_model_phase_and_name() {
        let computations = Computations::default();
        let step = |name: &str, phase, computing| Measured {
            name: name.to_owned(),
            protocol: "gazelle.fc",
            phase,
            seconds: 2.0 * computing,
            computing,
            traffic: Traffic { sent: 10, received: 1, rounds: 0 },
        };
        computations.add("m", &[step("fc1", Phase::Offline, 1.0), step("fc2", Phase::Offline, 2.0)]);
        computations.add("m", &[step("fc1", Phase::Online, 4.0)]);
        computations.add("m", &[step("fc1", Phase::Online, 8.0)]);
        computations.add("n", &[step("fc1", Phase::Online, 16.0)]);
        let steps = computations.steps();
        let found: Vec<_> =
            steps.iter().map(|s| (s.model.as_str(), s.phase, s.step.as_str(), s.seconds, s.count)).collect();
        let bytes: Vec<_> = steps.iter().map(|s| (s.bytes_sent, s.bytes_received)).collect();
        assert_eq!(bytes, [(10, 1), (10, 1), (20, 2), (10, 1)]);
        let expected = [
            ("m", "offline", "fc1", 1.0, 1),
            ("m", "offline", "fc2", 2.0, 1),
            ("m", "online", "fc1", 12.0, 2),
            ("n", "online", "fc1", 16.0, 1),
        ];
        assert_eq!(found, expected);
    }
}
