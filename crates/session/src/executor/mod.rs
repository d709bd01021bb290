//! Walks a plan on both sides: setup once a session, an offline phase for each prediction, an online phase.
//!
//! Both parties take the same walk, each with its own steps. Material of the offline phase is a value that the online phase
//! consumes, so that nothing is used twice.

mod clock;
mod error;
mod material;
mod parts;
mod plan;
mod progress;
mod session;
mod together;
mod values;

pub use clock::{Measured, Phase};
pub use error::ExecutionError;
pub use lanner_step::Likely;
pub use lanner_step::Outcome;
pub use plan::{ClientPlan, PartyPlan, ServedModel};
pub use progress::{SetUpPart, StepProgress};
pub use session::{ClientKeys, ClientSession, Prepared, ServerSession, Session};
pub use together::{Together, together};
