//! Walks a plan on both sides: setup once a session, an offline phase for each prediction, an online phase.
//!
//! Material of the offline phase is a value that the online phase consumes, so that nothing is used twice.

mod client;
mod clock;
mod cost;
mod error;
mod keys;
mod server;
mod steps;
mod values;

pub use client::{ClientPlan, ClientSession, Outcome, Prepared};
pub use clock::Computation;
pub use cost::{Phase, StepCost};
pub use error::ExecutionError;
pub use lanner_protocol::nonlinear::softmax::Likely;
pub use server::{PreparedServer, ServedModel, ServerSession};
