//! Walks a plan on both sides: setup once a session, an offline phase for each prediction, an online phase.
//!
//! Material of the offline phase is a value that the online phase consumes, so that nothing is used twice.

mod client;
mod cost;
mod error;
mod kind;
mod server;

pub use client::{ClientPlan, ClientSession, Outcome, Prepared};
pub use cost::{Phase, StepCost};
pub use error::ExecutionError;
pub use server::{PreparedServer, ServedModel, ServerSession};

use lanner_bfv::{ParameterSet, Parameters};
use lanner_plan::{Plan, Protocol};
use lanner_protocol::ProtocolError;
use lanner_protocol::linear::gazelle::galois_element;
use lanner_protocol::linear::gazelle::packing::Packing;
use lanner_ring::GaloisElement;

/// The parameters of the packed layers.
fn parameters() -> Result<Parameters, ExecutionError> {
    Ok(ParameterSet::B.parameters().map_err(ProtocolError::from)?)
}

/// The automorphisms that need an evaluation key, in the order of their rotations.
fn rotations(plan: &Plan, parameters: &Parameters) -> Result<Vec<GaloisElement>, ExecutionError> {
    let mut needed = std::collections::BTreeSet::new();
    for step in &plan.steps {
        if let Protocol::GazelleLinear { shape, baby, .. } = &step.protocol {
            needed.extend(Packing::new(shape, parameters.degree(), *baby)?.keys());
        }
    }
    let elements = needed.into_iter().map(|rotation| galois_element(rotation, parameters.degree()));
    Ok(elements.collect::<Result<_, _>>()?)
}
