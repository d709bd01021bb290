//! What needs the system's own calls.

#[cfg(unix)]
mod forked;

#[cfg(unix)]
pub use forked::in_a_fork;
