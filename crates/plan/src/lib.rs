//! Chooses a protocol and parameters for each node of a network.
//!
//! A [`Plan`] is public: both parties derive every message's kind and length from it. It holds no weights.

mod built;
mod cost;
mod error;
mod fuse;
mod held;
mod layouts;
mod limits;
mod lower;
mod memory;
pub mod protocol;
mod step;

pub use built::{BuiltPlan, BuiltStep, NeededKeys, Needs};
pub use cost::PlanCost;
pub use error::PlanError;
pub use held::Held;
pub use lower::{plan, ring};
pub use memory::Memory;
pub use protocol::{Built, Protocol};
pub use step::{Mode, Plan, Step};
