//! Client and server sessions: handshake, execution of a plan, one-time material.

#![cfg_attr(not(unix), allow(dead_code, reason = "a server needs threads and sockets"))]

mod cores;
pub mod executor;
pub mod handshake;
mod memory;
pub mod requests;
#[cfg(unix)]
pub mod server_loop;
#[cfg(unix)]
pub mod serving;

pub use cores::use_all_cores;
pub use memory::quarter_of_memory;
