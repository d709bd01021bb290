//! How far a plan's steps have come, for whoever looks while they run: counters that only rise, so that looking takes no lock and waits for nobody.

use std::sync::atomic::{AtomicU64, Ordering};

use lanner_wire::Channel;

use super::clock::{Measured, Phase};

/// The counters of a set-up's parts and of a plan's steps, over all sessions and predictions of those who run it.
#[derive(Default)]
pub(super) struct Progress {
    setup: [Counter; SetUpPart::ALL.len()],
    offline: Vec<Counter>,
    online: Vec<Counter>,
}

/// What one step took in one phase.
#[derive(Default)]
struct Counter {
    begun: AtomicU64,
    ended: AtomicU64,
    nanoseconds: AtomicU64,
    bytes: AtomicU64,
}

/// A part of a session's set-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetUpPart {
    /// Keys are made, and those that the server lacks are sent.
    Keys,
    /// Base transfers, where a step needs any.
    Transfers,
}

impl SetUpPart {
    /// All parts, in order.
    pub const ALL: [Self; 2] = [Self::Keys, Self::Transfers];

    /// The part's name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Keys => "keys",
            Self::Transfers => "transfers",
        }
    }
}

/// How far one step has come in one phase, over all predictions of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct StepProgress {
    /// The step's name.
    pub name: String,
    /// Its protocol's name.
    pub protocol: &'static str,
    /// The phase: offline or online.
    pub phase: Phase,
    /// How often one prediction takes the step.
    pub visits: u64,
    /// How often it was begun.
    pub begun: u64,
    /// How often it has ended.
    pub ended: u64,
    /// Seconds of what has ended, and of its first half offline.
    pub seconds: f64,
    /// Bytes in both directions, likewise.
    pub bytes: u64,
}

impl Progress {
    /// Nothing yet of so many steps.
    pub(super) fn new(steps: usize) -> Self {
        let none = || (0..steps).map(|_| Counter::default()).collect();
        Self { setup: Default::default(), offline: none(), online: none() }
    }

    /// Measures a step from its begin to its end, into `cost` as well.
    pub(super) fn visit<T>(
        &self,
        step: usize,
        cost: &mut Measured,
        channel: &mut dyn Channel,
        part: impl FnOnce(&mut dyn Channel) -> T,
    ) -> T {
        let counter = &self.of(cost.phase)[step];
        counter.begun.fetch_add(1, Ordering::Relaxed);
        let made = self.add(step, cost, channel, part);
        // What it took is there for whoever sees that it has ended.
        counter.ended.fetch_add(1, Ordering::Release);
        made
    }

    /// Measures a part of a step that does not count as its begin.
    pub(super) fn add<T>(
        &self,
        step: usize,
        cost: &mut Measured,
        channel: &mut dyn Channel,
        part: impl FnOnce(&mut dyn Channel) -> T,
    ) -> T {
        let so_far = |cost: &Measured| (cost.seconds, cost.traffic.sent + cost.traffic.received);
        let before = so_far(cost);
        let made = cost.measure(channel, part);
        let (seconds, bytes) = so_far(cost);
        let counter = &self.of(cost.phase)[step];
        counter.nanoseconds.fetch_add(((seconds - before.0) * 1e9) as u64, Ordering::Relaxed);
        counter.bytes.fetch_add(bytes - before.1, Ordering::Relaxed);
        made
    }

    /// The counters of the set-up's parts now.
    pub(super) fn set_up(&self) -> Vec<StepProgress> {
        let part = |part: SetUpPart| {
            let (name, protocol) = (part.name().to_owned(), Phase::Setup.name());
            StepProgress { name, protocol, visits: 1, ..self.read(part as usize, Phase::Setup) }
        };
        SetUpPart::ALL.into_iter().map(part).collect()
    }

    /// The counters of a step now: name, protocol and visits are the plan's to add.
    pub(super) fn read(&self, step: usize, phase: Phase) -> StepProgress {
        let Counter { begun, ended, nanoseconds, bytes } = &self.of(phase)[step];
        // What has ended is read first: it never exceeds what was begun.
        let ended = ended.load(Ordering::Acquire);
        StepProgress {
            name: String::new(),
            protocol: "",
            phase,
            visits: 0,
            begun: begun.load(Ordering::Acquire).max(ended),
            ended,
            seconds: nanoseconds.load(Ordering::Relaxed) as f64 / 1e9,
            bytes: bytes.load(Ordering::Relaxed),
        }
    }

    fn of(&self, phase: Phase) -> &[Counter] {
        match phase {
            Phase::Online => &self.online,
            Phase::Setup => &self.setup,
            Phase::Offline => &self.offline,
        }
    }
}
