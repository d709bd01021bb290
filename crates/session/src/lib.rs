//! Client and server sessions: handshake, execution of a plan, one-time material.

#![cfg_attr(target_family = "wasm", allow(dead_code, reason = "a server needs threads and sockets"))]

mod cores;
pub mod executor;
pub mod handshake;
mod memory;
pub mod requests;
#[cfg(not(target_family = "wasm"))]
pub mod server_loop;
#[cfg(not(target_family = "wasm"))]
pub mod serving;

pub use cores::use_all_cores;
pub use memory::quarter_of_memory;
