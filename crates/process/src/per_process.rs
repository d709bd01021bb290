//! What all of a process shares, and a copy of it must not.

use crate::arch;

/// Forks, one in the child of the other, up to which each process has a value of its own.
pub const MOST_FORKS: usize = 64;

/// A value for each of a line of processes, parent, child, grandchild. One that holds a lock or threads is of no use in a child: whoever
/// held the lock, and the threads, are not there.
pub struct PerProcess<T>([T; MOST_FORKS]);

impl<T> PerProcess<T> {
    /// A value for each process of the line.
    #[must_use]
    pub const fn new(values: [T; MOST_FORKS]) -> Self {
        Self(values)
    }

    /// This process's. None after more than [`MOST_FORKS`] forks, which has to do without.
    #[must_use]
    pub fn get(&self) -> Option<&T> {
        self.0.get(arch::forks() as usize)
    }

    /// Those of the processes that this one is a copy of, as they were at the fork. A lock may be held for ever.
    #[must_use]
    pub fn inherited(&self) -> &[T] {
        &self.0[..self.0.len().min(arch::forks() as usize)]
    }
}

#[cfg(all(test, unix, not(miri)))]
mod tests {
    use std::sync::Mutex;

    use lanner_testkit::in_a_fork;

    use super::*;

    static LOCKS: PerProcess<Mutex<u32>> = PerProcess::new([const { Mutex::new(0) }; MOST_FORKS]);

    #[test]
    fn a_child_has_a_lock_of_its_own_while_its_parents_is_held() {
        let own = LOCKS.get();
        let held = own.and_then(|lock| lock.lock().ok());
        assert!(held.is_some());
        let inherited = LOCKS.inherited().len();
        let free = || LOCKS.get().is_some_and(|lock| lock.try_lock().is_ok_and(|value| *value == 0));
        assert!(!free());
        assert!(in_a_fork(|| free()
            && LOCKS.inherited().len() == inherited + 1
            && LOCKS.inherited()[inherited].try_lock().is_err()));
    }

    #[test]
    fn a_line_that_is_too_long_has_to_do_without() {
        fn deep(forks: usize) -> bool {
            if forks == 0 {
                LOCKS.get().is_none() && LOCKS.inherited().len() == MOST_FORKS
            } else {
                in_a_fork(|| deep(forks - 1))
            }
        }
        assert!(deep(MOST_FORKS));
    }
}
