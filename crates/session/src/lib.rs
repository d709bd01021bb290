//! Client and server sessions: handshake, execution of a plan, one-time material.

pub mod dialogue;
pub mod executor;
pub mod handshake;
pub mod server_loop;
pub mod store;
