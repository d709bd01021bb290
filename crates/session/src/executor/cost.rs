//! What a step took, as one party saw it.

use std::time::Instant;

use lanner_wire::{Channel, Traffic};

/// The three phases of a prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Once a session.
    Setup,
    /// Per prediction, before the input is known.
    Offline,
    /// The rest.
    Online,
}

impl Phase {
    /// The phase's name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Setup => "setup",
            Self::Offline => "offline",
            Self::Online => "online",
        }
    }
}

/// Time, bytes and rounds of one step in one phase.
#[derive(Clone, Debug, PartialEq)]
pub struct StepCost {
    /// The step's name.
    pub name: String,
    /// Its protocol's name.
    pub protocol: &'static str,
    /// The phase.
    pub phase: Phase,
    /// Wall time.
    pub seconds: f64,
    /// Bytes and rounds.
    pub traffic: Traffic,
}

impl StepCost {
    /// Adds a later part of the same step.
    pub(super) fn add(&mut self, (seconds, traffic): (f64, Traffic)) {
        self.seconds += seconds;
        self.traffic = Traffic {
            sent: self.traffic.sent + traffic.sent,
            received: self.traffic.received + traffic.received,
            rounds: self.traffic.rounds + traffic.rounds,
        };
    }
}

/// A running measurement.
pub(super) struct Meter {
    start: Instant,
    before: Traffic,
}

impl Meter {
    pub(super) fn start(channel: &dyn Channel) -> Self {
        Self { start: Instant::now(), before: channel.traffic() }
    }

    /// Seconds and traffic so far.
    pub(super) fn elapsed(&self, channel: &dyn Channel) -> (f64, Traffic) {
        (self.start.elapsed().as_secs_f64(), channel.traffic().since(self.before))
    }

    pub(super) fn stop(
        self,
        channel: &dyn Channel,
        name: &str,
        protocol: &'static str,
        phase: Phase,
    ) -> StepCost {
        let (seconds, traffic) = self.elapsed(channel);
        StepCost { name: name.to_owned(), protocol, phase, seconds, traffic }
    }
}
