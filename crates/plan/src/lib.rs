//! Chooses a protocol and parameters for each node of a network.
//!
//! A [`Plan`] is public: both parties derive every message's kind and length from it. It holds no weights.

mod account;
mod ahead;
mod built;
mod cost;
mod error;
mod estimate;
mod fuse;
mod layouts;
mod limits;
mod lower;
mod mode;
mod roll;
mod search;
mod step;
mod unroll;

pub use account::Account;
pub use ahead::Ahead;
pub use built::{BuiltPlan, BuiltStep};
pub use cost::PlanCost;
pub use error::PlanError;
pub use estimate::{
    Cores, Estimate, Kernels, Link, Measurement, Origin, PhaseEstimate, PhaseShares, Rates, Shares,
    StepEstimate, StepRates,
};
pub use lanner_step::Samples;
pub use limits::{ADDRESSABLE, Limits, check_outline};
pub use lower::{check_sums, plan, plan_within, polynomials, ring};
pub use mode::{Between, CHECKING, Design, Inexact, Layer, MODES, Mode, NodeDesign, Rings, Rules, TRIED};
pub use search::{Objective, Prices, choose, promise};
pub use step::{Carried, Choices, Designs, Item, Plan, Repeated, Saturation, Scan, Step};
pub use unroll::{Action, Visit};
