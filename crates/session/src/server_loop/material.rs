//! How much of material, keys and unread bytes all sessions of a server keep together.
//!
//! A client may have material made long before it uses it, may have keys and send ahead, and each session is bounded by itself. Together they are bounded here, so
//! that many clients cannot take more memory than the server was given, whatever they do.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use thiserror::Error;

/// What sessions may keep, and what they keep now.
pub(super) struct Budget {
    limit: u64,
    held: Mutex<u64>,
    released: Condvar,
}

/// Room in the budget for what a session keeps; it is given back when this is dropped.
#[must_use = "dropped, it gives the room back"]
pub struct Reservation {
    budget: Arc<Budget>,
    bytes: u64,
}

/// There is no room for more. The client hears that the server is busy: what others keep is none of its secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{bytes} bytes do not fit beside the {held} bytes that sessions keep, of {limit}")]
#[non_exhaustive]
pub struct Exhausted {
    /// Bytes that were asked for.
    pub bytes: u64,
    /// Bytes that sessions keep.
    pub held: u64,
    /// Bytes that they may keep.
    pub limit: u64,
}

impl Budget {
    pub(super) fn new(limit: u64) -> Self {
        Self { limit, held: Mutex::default(), released: Condvar::new() }
    }

    /// Bytes that they may keep.
    pub(super) const fn limit(&self) -> u64 {
        self.limit
    }

    /// Bytes that sessions keep.
    pub(super) fn held(&self) -> u64 {
        *self.lock()
    }

    /// Takes room. It waits a moment for a session that is just ending, so that a client that comes back at once finds its own room
    /// free.
    pub(super) fn reserve(self: &Arc<Self>, bytes: u64) -> Result<Reservation, Exhausted> {
        let full = |held: &mut u64| held.checked_add(bytes).is_none_or(|sum| sum > self.limit);
        let waited = self.released.wait_timeout_while(self.lock(), RESERVE_PATIENCE, full);
        self.take(waited.unwrap_or_else(PoisonError::into_inner).0, bytes, self.limit)
    }

    /// Takes room if there is some now, of one half of all: the other one is for what sessions cannot do without.
    pub(super) fn try_reserve(self: &Arc<Self>, bytes: u64) -> Option<Reservation> {
        self.take(self.lock(), bytes, self.limit / 2).ok()
    }

    fn take(
        self: &Arc<Self>,
        mut held: MutexGuard<'_, u64>,
        bytes: u64,
        limit: u64,
    ) -> Result<Reservation, Exhausted> {
        match held.checked_add(bytes) {
            Some(sum) if sum <= limit => *held = sum,
            _ => return Err(Exhausted { bytes, held: *held, limit }),
        }
        Ok(Reservation { budget: Arc::clone(self), bytes })
    }

    fn lock(&self) -> MutexGuard<'_, u64> {
        // A number is consistent whoever panicked.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        *self.budget.lock() -= self.bytes;
        self.budget.released.notify_all();
    }
}

/// How long a session waits for room.
const RESERVE_PATIENCE: Duration = Duration::from_millis(500);

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn room_is_given_to_the_last_byte_and_comes_back() {
        let budget = Arc::new(Budget::new(100));
        let first = budget.reserve(60).unwrap();
        let second = budget.reserve(40).unwrap();
        assert_eq!(budget.reserve(1).err(), Some(Exhausted { bytes: 1, held: 100, limit: 100 }));
        drop(first);
        assert_eq!(budget.held(), 40);
        assert!(budget.reserve(u64::MAX).is_err(), "no sum overflows");
        // Half of all is 50, of which 40 are held.
        assert!(budget.try_reserve(11).is_none() && budget.try_reserve(u64::MAX).is_none());
        drop(budget.try_reserve(10).unwrap());
        assert!(budget.reserve(60).is_ok(), "and it is given back when nobody takes it");
        drop(second);
        assert_eq!(budget.held(), 0);
    }

    #[test]
    fn who_asks_waits_for_who_is_leaving() {
        let budget = Arc::new(Budget::new(10));
        let leaving = budget.reserve(10).unwrap();
        thread::scope(|scope| {
            let asking = scope.spawn(|| budget.reserve(10).is_ok());
            thread::sleep(RESERVE_PATIENCE / 10);
            drop(leaving);
            assert!(asking.join().unwrap());
        });
    }

    #[test]
    fn a_panic_gives_room_back() {
        let budget = Arc::new(Budget::new(10));
        let panicking = thread::spawn({
            let budget = Arc::clone(&budget);
            move || {
                let _reservation = budget.reserve(10).unwrap();
                assert_eq!(budget.held(), 0, "a panic on purpose");
            }
        });
        assert!(panicking.join().is_err());
        assert_eq!(budget.held(), 0);
    }
}
