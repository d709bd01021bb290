//! What systems do differently: who may use a file, what wakes a thread that waits for a socket, how exactly a thread sleeps.

#[cfg(not(unix))]
mod elsewhere;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(not(unix))]
pub(crate) use elsewhere::*;
#[cfg(unix)]
pub(crate) use unix::*;
#[cfg(windows)]
pub(crate) use windows::*;
