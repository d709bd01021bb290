//! How many forks lie between this process and the one that first asked.

#[cfg(unix)]
mod counted;
#[cfg(not(unix))]
mod portable;

#[cfg(unix)]
pub(crate) use counted::forks;
#[cfg(not(unix))]
pub(crate) use portable::forks;
