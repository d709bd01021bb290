//! What a step takes, as one party sees it: time, bytes and rounds, and how much of the time it computes.

use std::time::{Duration, Instant};

use lanner_wire::{Channel, ChannelError, Kind, Traffic};

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
pub struct Measured {
    /// The step's name.
    pub name: String,
    /// Its protocol's name.
    pub protocol: &'static str,
    /// The phase.
    pub phase: Phase,
    /// Wall time.
    pub seconds: f64,
    /// Wall time outside the channel: neither waits nor encryption for transport count.
    pub computing: f64,
    /// Bytes and rounds.
    pub traffic: Traffic,
}

impl Measured {
    /// Nothing yet of a set-up.
    pub(crate) fn of_setup() -> Self {
        Self::none("setup", "setup", Phase::Setup)
    }

    /// Nothing yet.
    pub(super) fn none(name: &str, protocol: &'static str, phase: Phase) -> Self {
        let (name, traffic) = (name.to_owned(), Traffic { sent: 0, received: 0, rounds: 0 });
        Self { name, protocol, phase, seconds: 0.0, computing: 0.0, traffic }
    }

    /// Adds what a part of the step takes.
    pub(crate) fn measure<T>(
        &mut self,
        channel: &mut dyn Channel,
        part: impl FnOnce(&mut dyn Channel) -> T,
    ) -> T {
        let mut clock = Clock::start(channel);
        let made = part(&mut clock);
        self.add(clock.elapsed());
        made
    }

    /// Adds what came after it.
    pub(crate) fn join(&mut self, after: &Self) {
        self.add((after.seconds, after.computing, after.traffic));
    }

    fn add(&mut self, (seconds, computing, traffic): (f64, f64, Traffic)) {
        self.seconds += seconds;
        self.computing += computing;
        self.traffic = Traffic {
            sent: self.traffic.sent + traffic.sent,
            received: self.traffic.received + traffic.received,
            rounds: self.traffic.rounds + traffic.rounds,
        };
    }
}

/// A channel whose time is told from that of the computation around it.
struct Clock<'c> {
    before: Traffic,
    channel: &'c mut dyn Channel,
    start: Instant,
    inside: Duration,
}

impl<'c> Clock<'c> {
    /// Starts to count.
    fn start(channel: &'c mut dyn Channel) -> Self {
        Self { before: channel.traffic(), channel, start: Instant::now(), inside: Duration::ZERO }
    }

    /// Seconds, those of them outside the channel, and traffic.
    fn elapsed(&self) -> (f64, f64, Traffic) {
        let seconds = self.start.elapsed();
        let computing = seconds.saturating_sub(self.inside);
        (seconds.as_secs_f64(), computing.as_secs_f64(), self.channel.traffic().since(self.before))
    }

    fn within<T>(&mut self, call: impl FnOnce(&mut dyn Channel) -> T) -> T {
        let entered = Instant::now();
        let result = call(self.channel);
        self.inside += entered.elapsed();
        result
    }
}

impl Channel for Clock<'_> {
    fn send(&mut self, kind: Kind, payload: &[u8]) -> Result<(), ChannelError> {
        self.within(|channel| channel.send(kind, payload))
    }

    fn flush(&mut self) -> Result<(), ChannelError> {
        self.within(|channel| channel.flush())
    }

    fn receive_header(&mut self) -> Result<(Kind, usize), ChannelError> {
        self.within(|channel| channel.receive_header())
    }

    fn receive_body(&mut self, buffer: &mut [u8]) -> Result<(), ChannelError> {
        self.within(|channel| channel.receive_body(buffer))
    }

    fn traffic(&self) -> Traffic {
        self.channel.traffic()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A peer that takes its time over every call.
    struct Slow;

    const PAUSE: Duration = Duration::from_millis(50);

    impl Channel for Slow {
        fn send(&mut self, _: Kind, _: &[u8]) -> Result<(), ChannelError> {
            std::thread::sleep(PAUSE);
            Ok(())
        }

        fn flush(&mut self) -> Result<(), ChannelError> {
            self.send(Kind(1), &[])
        }

        fn receive_header(&mut self) -> Result<(Kind, usize), ChannelError> {
            self.flush()?;
            Ok((Kind(1), 3))
        }

        fn receive_body(&mut self, buffer: &mut [u8]) -> Result<(), ChannelError> {
            buffer.fill(7);
            self.flush()
        }

        fn traffic(&self) -> Traffic {
            Traffic { sent: 1, received: 2, rounds: 3 }
        }
    }

    #[test]
    fn time_in_the_channel_does_not_count_and_time_outside_does() {
        let mut slow = Slow;
        let mut clock = Clock::start(&mut slow);
        clock.send(Kind(1), &[1]).unwrap();
        clock.flush().unwrap();
        assert_eq!(clock.receive(Kind(1), 3).unwrap(), [7; 3]);
        assert_eq!(clock.traffic().rounds, 3);
        std::thread::sleep(PAUSE);
        let (total, inside) = (clock.start.elapsed().as_secs_f64(), clock.inside.as_secs_f64());
        let (seconds, computing, _) = clock.elapsed();
        // Four pauses in the channel, one outside.
        assert!(inside >= 4.0 * PAUSE.as_secs_f64());
        assert!(computing >= PAUSE.as_secs_f64() && seconds >= 5.0 * PAUSE.as_secs_f64());
        assert!((total - inside..total).contains(&computing), "{computing} s");
    }
}
