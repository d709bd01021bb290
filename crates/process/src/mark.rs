//! Marks of the process that made a value.

use thiserror::Error;

use crate::arch;

/// The process that a value was made in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    process: u32,
    forks: u32,
}

/// A value is used in another process than the one that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{what} belongs to process {made}, and this is process {here}, a copy that fork made")]
pub struct OtherProcess {
    /// The value, as in "this client".
    pub what: &'static str,
    /// The number of the process that made it.
    pub made: u32,
    /// The number of this one.
    pub here: u32,
}

impl Mark {
    /// This process.
    #[must_use]
    pub fn here() -> Self {
        Self { process: arch::process(), forks: arch::forks() }
    }

    /// Whether this is still the process that was marked, and no copy of it.
    #[must_use]
    pub fn is_here(&self) -> bool {
        *self == Self::here()
    }

    /// Checks that `what` is used in the process that made it.
    ///
    /// # Errors
    /// [`OtherProcess`] in every other one.
    pub fn check(&self, what: &'static str) -> Result<(), OtherProcess> {
        let here = Self::here();
        if *self == here {
            return Ok(());
        }
        Err(OtherProcess { what, made: self.process, here: here.process })
    }
}

#[cfg(all(test, unix, not(miri)))]
mod tests {
    use lanner_testkit::in_a_fork;

    use super::*;

    #[test]
    fn a_fork_is_told_from_its_parent_and_its_own_child() {
        let mark = Mark::here();
        assert!(mark.is_here() && mark.check("this").is_ok());
        let told = in_a_fork(|| {
            let own = Mark::here();
            let error = mark.check("this client").err();
            let parent = error.is_some_and(|error| {
                error.made == mark.process
                    && error.here == own.process
                    && error.to_string().starts_with("this client belongs to")
            });
            parent && !mark.is_here() && own.is_here() && in_a_fork(|| !own.is_here() && !mark.is_here())
        });
        assert!(told);
        assert!(mark.is_here(), "the parent stays what it is");
    }

    #[test]
    fn a_process_that_has_the_number_of_an_earlier_one_is_another() {
        let mark = Mark::here();
        // As after all numbers were given once.
        assert!(in_a_fork(|| !Mark { process: std::process::id(), ..mark }.is_here()));
    }
}
