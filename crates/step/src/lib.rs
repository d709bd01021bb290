//! The seam that every protocol has: what a plan writes down, what both parties build of it, and what each of them runs.
//!
//! ```text
//! Spec    the public parameters of one step, which a plan stores; infers types, bounds the work
//!   -> Built    with its circuits and layouts, built once: costs, memory, what it needs of a session
//!        -> Step<Client>, Step<Server>    what each party runs: request, prepare (offline), online
//! ```
//!
//! It knows no protocol by name, and neither does what walks over a plan: see `docs/adding-a-protocol.md`. What families of protocols have in
//! common lies here, too: the shapes of layers, and what a session supplies to its steps.
#![allow(clippy::doc_markdown, reason = "ReLU is the field's name, not code")]

mod answer;
mod built;
mod cost;
mod dynamic;
mod encoded;
pub mod encoding;
mod error;
pub mod kind;
mod likely;
mod memory;
pub mod messages;
mod model;
mod needs;
mod party;
mod rotation;
mod run;
mod samples;
mod set_up;
mod shape;
mod shared;
mod spec;
mod state;
mod supply;
mod turns;
mod unprepared;
mod value;
mod weight_form;

pub use answer::{Answer, Answering, Asked};
pub use built::{Answers, Built, StepCost};
pub use cost::{Cost, OfflineCost};
pub use dynamic::{AnyState, BoxedStep, DynStep};
pub use encoded::{LayerWeights, moduli};
pub use error::{ProtocolError, Result};
pub use likely::{Likely, MAX_DIGITS, softmax_ring};
pub use memory::{AHEAD, LABEL, Memory, WORD, limb};
pub use model::{ModelParts, Weights};
pub use needs::{EvaluationNeeds, KeyUse, Lifetime, Needs};
pub use party::Party;
pub(crate) use rotation::power_of;
pub use rotation::{Rotation, galois_element};
pub use run::Step;
pub use samples::Samples;
pub use set_up::{SetKeys, SetUp};
pub use shape::{Convolution, Function, Slope, Windows, is_zero};
pub use shared::{EncodedWeights, Shared};
pub use spec::{Spec, Work};
pub use state::{Client, KeyedClient, Keys, PartyState, Server};
pub use supply::{
    ClientKeys, Correlations, CotSupply, EvaluationSession, GarblingSession, Sets, Transfers, Tweaks,
    garbling_cost, keys_cost, receive_keys, secret_key, send_keys, transfer_sets, transfers_cost,
};
pub use turns::in_turns;
pub use unprepared::{Online, Unprepared};
pub use value::{Encrypted, Inputs, Known, Outcome, Value, ValueType};
pub use weight_form::WeightForm;
