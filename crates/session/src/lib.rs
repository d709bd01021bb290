//! Client and server sessions: handshake, execution of a plan, one-time material.

mod cores;
pub mod executor;
pub mod handshake;
mod memory;
pub mod requests;
pub mod server_loop;
pub mod serving;

pub use cores::use_all_cores;
pub use memory::quarter_of_memory;
