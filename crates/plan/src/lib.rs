//! Chooses a protocol and parameters for each node of a network.
//!
//! A [`Plan`] is public: both parties derive every message's kind and length from it. It holds no weights.

mod cost;
mod error;
mod fuse;
mod held;
mod limits;
mod lower;
mod step;

pub use cost::PlanCost;
pub use error::PlanError;
pub use held::Held;
pub use lower::plan;
pub use step::{Mode, Plan, Protocol, Step};
