//! What the phases of one session's predictions took, layer by layer, for who traces them.
//!
//! Times and sizes alone: what both parties see on the wire, and how long this one computed. A session keeps a bounded number of them, and
//! counts the others.

use std::mem::take;
use std::time::Duration;

use lanner_wire::Traffic;
use serde::Serialize;

use crate::executor::{Measured, Phase};

/// One run of a phase, at a client's request.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Run {
    /// `setup`, `offline` or `online`.
    pub phase: &'static str,
    /// When it began, in seconds from the session's begin.
    pub after: f64,
    /// How long the request took. Phases of predictions that run together take the same time.
    pub seconds: f64,
    /// For how many predictions it was; a set-up is for none in particular.
    pub predictions: u64,
    /// Bytes that the server sent.
    pub bytes_sent: u64,
    /// Bytes that it received.
    pub bytes_received: u64,
    /// Sends followed by a wait for the client.
    pub rounds: u64,
    /// Its layers in their order, each over all of these predictions; none of a set-up.
    pub layers: Vec<LayerRun>,
}

/// What a layer took in one run of a phase.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LayerRun {
    /// The layer's name.
    pub name: String,
    /// Its protocol's name.
    pub protocol: &'static str,
    /// Wall time, waits for the client included.
    pub seconds: f64,
    /// Wall time without what passed in the channel.
    pub computing: f64,
    /// Bytes that the server sent for it.
    pub bytes_sent: u64,
    /// Bytes that it received.
    pub bytes_received: u64,
    /// Sends followed by a wait for the client.
    pub rounds: u64,
}

impl Run {
    /// What a request took in one phase; none if it had nothing of it.
    fn new(phase: Phase, after: Duration, seconds: Duration, steps: &[Measured]) -> Option<Self> {
        let steps: Vec<_> = steps.iter().filter(|step| step.phase == phase).collect();
        let first = steps.first()?;
        let (after, seconds) = (after.as_secs_f64(), seconds.as_secs_f64());
        let (mut total, mut predictions) = (Traffic { sent: 0, received: 0, rounds: 0 }, 0);
        let mut layers: Vec<LayerRun> = Vec::new();
        for step in &steps {
            total.sent += step.traffic.sent;
            total.received += step.traffic.received;
            total.rounds += step.traffic.rounds;
            if phase == Phase::Setup {
                continue;
            }
            predictions += u64::from(is_same(step, &first.name, first.protocol));
            match layers.iter_mut().find(|layer| is_same(step, &layer.name, layer.protocol)) {
                Some(layer) => layer.add(step),
                None => layers.push(LayerRun::of(step)),
            }
        }
        let Traffic { sent: bytes_sent, received: bytes_received, rounds } = total;
        let phase = phase.name();
        Some(Self { phase, after, seconds, predictions, bytes_sent, bytes_received, rounds, layers })
    }

    /// What it takes to keep: itself and its layers.
    fn rows(&self) -> usize {
        1 + self.layers.len()
    }
}

fn is_same(step: &Measured, name: &str, protocol: &str) -> bool {
    step.name == name && step.protocol == protocol
}

impl LayerRun {
    fn of(step: &Measured) -> Self {
        let Measured { ref name, protocol, seconds, computing, traffic, .. } = *step;
        let Traffic { sent: bytes_sent, received: bytes_received, rounds } = traffic;
        Self { name: name.clone(), protocol, seconds, computing, bytes_sent, bytes_received, rounds }
    }

    fn add(&mut self, step: &Measured) {
        self.seconds += step.seconds;
        self.computing += step.computing;
        self.bytes_sent += step.traffic.sent;
        self.bytes_received += step.traffic.received;
        self.rounds += step.traffic.rounds;
    }
}

/// The runs of one session, the first ones; those beyond [`LIMIT`] rows are counted only.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Runs {
    /// In the order of their ends.
    #[serde(rename = "runs")]
    kept: Vec<Run>,
    /// How many more there were.
    #[serde(rename = "runs_omitted")]
    omitted: u64,
}

impl Runs {
    /// The runs that are kept, in the order of their ends.
    #[must_use]
    pub fn kept(&self) -> &[Run] {
        &self.kept
    }

    /// How many more there were.
    #[must_use]
    pub const fn omitted(&self) -> u64 {
        self.omitted
    }

    /// Notes a request that began so long after the session and took so long: a run of each of its phases.
    pub(super) fn add(&mut self, after: Duration, seconds: Duration, steps: &[Measured]) {
        for phase in [Phase::Setup, Phase::Offline, Phase::Online] {
            let Some(run) = Run::new(phase, after, seconds, steps) else { continue };
            if self.omitted == 0 && self.rows() + run.rows() <= LIMIT {
                self.kept.push(run);
            } else {
                self.omitted += 1;
            }
        }
    }

    /// What they take to keep: runs and their layers.
    pub(super) fn rows(&self) -> usize {
        self.kept.iter().map(Run::rows).sum()
    }

    /// Keeps none of them.
    pub(super) fn omit(&mut self) {
        self.omitted += take(&mut self.kept).len() as u64;
    }
}

/// Runs and layers that a session keeps: a client that asks for ever fills no memory.
const LIMIT: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn step(name: &str, phase: Phase) -> Measured {
        let traffic = Traffic { sent: 10, received: 1, rounds: 2 };
        Measured {
            name: name.to_owned(),
            protocol: "gazelle.fc",
            phase,
            seconds: 2.0,
            computing: 1.0,
            traffic,
        }
    }

    const AFTER: Duration = Duration::from_secs(5);
    const SECONDS: Duration = Duration::from_secs(3);

    #[test]
    fn predictions_that_run_together_are_one_run_of_each_phase() {
        let mut runs = Runs::default();
        let online = ["fc1", "fc2"].map(|name| step(name, Phase::Online));
        let offline = ["fc1", "fc2"].map(|name| step(name, Phase::Offline));
        runs.add(AFTER, SECONDS, &[&online[..], &online, &offline].concat());
        let found: Vec<_> =
            runs.kept().iter().map(|run| (run.phase, run.predictions, run.bytes_sent, run.rounds)).collect();
        assert_eq!(found, [("offline", 1, 20, 4), ("online", 2, 40, 8)]);
        let Run { after, seconds, bytes_received, layers, .. } = &runs.kept()[1];
        assert_eq!((*after, *seconds, *bytes_received), (5.0, 3.0, 4));
        let layers: Vec<_> =
            layers.iter().map(|l| (l.name.as_str(), l.seconds, l.computing, l.bytes_sent)).collect();
        assert_eq!(layers, [("fc1", 4.0, 2.0, 20), ("fc2", 4.0, 2.0, 20)]);
    }

    #[test]
    fn a_set_up_has_bytes_and_no_layers() {
        let mut runs = Runs::default();
        runs.add(AFTER, SECONDS, &[step("setup", Phase::Setup)]);
        runs.add(AFTER, SECONDS, &[]);
        let [Run { phase: "setup", predictions: 0, bytes_sent: 10, layers, .. }] = runs.kept() else {
            panic!("{runs:?}")
        };
        assert!(layers.is_empty());
    }

    #[test]
    fn runs_beyond_the_limit_are_counted_only() {
        let mut runs = Runs::default();
        for _ in 0..LIMIT {
            runs.add(AFTER, SECONDS, &[step("fc1", Phase::Online)]);
        }
        assert_eq!((runs.rows(), runs.kept().len(), runs.omitted()), (LIMIT, LIMIT / 2, LIMIT as u64 / 2));
        runs.omit();
        assert_eq!((runs.rows(), runs.omitted()), (0, LIMIT as u64));
    }
}
