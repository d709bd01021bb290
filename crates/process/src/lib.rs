//! Which process a value was made in.
//!
//! `fork` copies a process with its memory: one-time masks, generators and the keys of connections are there twice, sockets and
//! databases are shared, and of the threads only the one that called it lives on. A value that must not be used twice keeps a
//! [`Mark`], and is checked against it wherever it is about to be used; what all of a process shares is kept in [`PerProcess`].
//!
//! A process is told by its number and by how many forks lie between it and the one that first asked: numbers return, and
//! a child that calls the kernel's `clone` itself is not counted.

mod arch;
mod mark;
mod per_process;

pub use mark::{Mark, OtherProcess};
pub use per_process::{MOST_FORKS, PerProcess};
