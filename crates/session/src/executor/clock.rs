//! How long a party computes in a step: its wall time without what passes in the channel.

use std::time::{Duration, Instant};

use lanner_wire::{Channel, ChannelError, Kind, Traffic};

use super::Phase;

/// What one party computed for a step in one phase.
#[derive(Clone, Debug, PartialEq)]
pub struct Computation {
    /// The step's name.
    pub name: String,
    /// Its protocol's name.
    pub protocol: &'static str,
    /// The phase.
    pub phase: Phase,
    /// Wall time outside the channel: neither waits nor encryption for transport count.
    pub seconds: f64,
}

/// A channel whose time is told from that of the computation around it.
pub(super) struct Clock<'c> {
    channel: &'c mut dyn Channel,
    start: Instant,
    inside: Duration,
}

impl<'c> Clock<'c> {
    /// Starts to count.
    pub(super) fn start(channel: &'c mut dyn Channel) -> Self {
        Self { channel, start: Instant::now(), inside: Duration::ZERO }
    }

    /// Stops; what passed in the channel since the start does not count.
    pub(super) fn stop(self, name: &str, protocol: &'static str, phase: Phase) -> Computation {
        let seconds = self.start.elapsed().saturating_sub(self.inside).as_secs_f64();
        Computation { name: name.to_owned(), protocol, phase, seconds }
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
        let computation = clock.stop("conv1", "gazelle.conv", Phase::Online);
        // Four pauses in the channel, one outside.
        assert!(inside >= 4.0 * PAUSE.as_secs_f64());
        assert!(computation.seconds >= PAUSE.as_secs_f64());
        assert!((total - inside..total).contains(&computation.seconds), "{computation:?}");
    }
}
