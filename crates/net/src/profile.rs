//! The delay and the bandwidth of a network, and when bytes arrive over it.

use std::time::{Duration, Instant};

/// A network between the parties, the same in both directions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NetworkProfile {
    /// Bits that each direction carries in a second, counting only payload; positive.
    pub bandwidth_bits_per_second: f64,
    /// Seconds from a send to its answer when the peer takes no time.
    pub round_trip_seconds: f64,
}

impl NetworkProfile {
    /// A local network: 1 Gbit/s, 0.6 ms.
    pub const LAN: Self = Self { bandwidth_bits_per_second: 1e9, round_trip_seconds: 0.6e-3 };

    /// A wide network: 100 Mbit/s, 40 ms.
    pub const WAN: Self = Self { bandwidth_bits_per_second: 100e6, round_trip_seconds: 40e-3 };

    /// The profile of a name: `lan` or `wan`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "lan" => Some(Self::LAN),
            "wan" => Some(Self::WAN),
            _ => None,
        }
    }

    /// Time that `bytes` occupy one direction.
    #[must_use]
    pub fn transfer_time(&self, bytes: usize) -> Duration {
        seconds(bytes as f64 * 8.0 / self.bandwidth_bits_per_second)
    }

    /// Time from the departure of a bit to its arrival.
    #[must_use]
    pub fn latency(&self) -> Duration {
        seconds(self.round_trip_seconds / 2.0)
    }
}

/// A duration that no profile, however odd, makes panic.
fn seconds(value: f64) -> Duration {
    Duration::try_from_secs_f64(value).unwrap_or(Duration::ZERO)
}

/// One direction of a network: bytes leave one after another.
#[derive(Clone)]
pub(crate) struct Link {
    profile: NetworkProfile,
    /// When the bytes sent so far have all left.
    free: Option<Instant>,
}

impl Link {
    pub(crate) const fn new(profile: NetworkProfile) -> Self {
        Self { profile, free: None }
    }

    /// When the last of `bytes`, ready at `ready`, arrives.
    pub(crate) fn arrival(&mut self, ready: Instant, bytes: usize) -> Instant {
        let start = self.free.map_or(ready, |free| free.max(ready));
        let left = start + self.profile.transfer_time(bytes);
        self.free = Some(left);
        left + self.profile.latency()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_have_names() {
        let one_way = |name| NetworkProfile::named(name).map(|profile| profile.latency().as_micros());
        assert_eq!((one_way("lan"), one_way("wan"), one_way("loopback")), (Some(300), Some(20_000), None));
        assert_eq!(NetworkProfile::LAN.transfer_time(125_000_000).as_secs(), 1);
        assert_eq!(NetworkProfile::WAN.transfer_time(12_500_000).as_secs(), 1);
    }

    #[test]
    fn bytes_queue_behind_one_another_and_the_latency_is_paid_once() {
        let profile = NetworkProfile { bandwidth_bits_per_second: 8000.0, round_trip_seconds: 0.1 };
        let mut link = Link::new(profile);
        let now = Instant::now();
        let millis = |instant: Instant| (instant - now).as_millis();
        assert_eq!(millis(link.arrival(now, 1000)), 1050);
        assert_eq!(millis(link.arrival(now, 500)), 1550);
        assert_eq!(millis(link.arrival(now + Duration::from_secs(5), 1000)), 6050);
    }
}
