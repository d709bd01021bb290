//! The number of this process, and how many forks lie between it and the one that first asked.

#[cfg(all(unix, not(miri)))]
mod counted;
#[cfg(any(not(unix), miri))]
mod portable;

#[cfg(all(unix, not(miri)))]
pub(crate) use counted::{forks, process};
#[cfg(any(not(unix), miri))]
pub(crate) use portable::{forks, process};
