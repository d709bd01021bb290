//! Client and server sessions: handshake, execution of a plan, one-time material.

pub mod executor;
pub mod handshake;
