//! GAZELLE's packed linear layers (Juvekar et al., USENIX Security 2018, <https://www.usenix.org/conference/usenixsecurity18/presentation/juvekar>):
//! matrix-vector products and convolutions on slots.
//!
//! ```text
//! C: x_C                                  S: x_S, W, b
//! offline:
//!   a uniform (c1 of [x_C])
//!       ------------------------------->  r uniform in every slot
//!                                         W applied to (0, a), blinded: [y - r] but for the message
//!       <-------------------------------  c1 of [y - r]
//! online:
//!   c0 of [x_C]
//!       ------------------------------->  W applied to c0 + x_S, added: [y] = W [x_C + x_S]
//!       <-------------------------------  c0 of [y - r]
//! y - r                                   r + b
//! ```
//!
//! Threat model: semi-honest parties; the client learns a uniform share, and the sent ciphertext hides the weights
//! ([`lanner_bfv::function_privacy`]). Deviations from the paper: parameters with 128-bit security, function privacy by a fresh
//! encryption of zero and noise flooding, a layout that serves products and convolutions alike, and all work on the second
//! halves of ciphertexts, which hold no message, ahead of time ([`lanner_bfv::halves`]): the messages are those of the paper, half
//! of each offline.

mod axis;
mod c0;
mod client;
mod encrypted;
mod kernel;
mod layout;
mod noise;
pub mod packing;
pub mod program;
pub mod scheme;
mod server;
mod step;

pub use crate::exchange::{ClientMaterial, ClientPending, ClientRequest};
pub use c0::FirstHalfSlots;
pub use client::ClientLayer;
pub use encrypted::{EncryptedSlots, working_bytes};
pub use kernel::{Kernel, Operations};
pub use noise::{noise_after, output_noise};
pub use server::{ServerLayer, ServerMaterial};
pub use step::{Linear, SETS, SLOTS, work};
pub(crate) use step::{counts, needs, weights_memory};

pub use layout::Layout;
pub(crate) use server::LinearMap;

use lanner_bfv::{ParameterSet, Parameters};
use lanner_step::{Cost, OfflineCost, ProtocolError};
use packing::Packing;

use crate::exchange;

/// The parameters of the packed layers.
///
/// # Errors
/// None: the set is one that is accepted.
pub fn parameters() -> Result<Parameters, ProtocolError> {
    Ok(ParameterSet::B.parameters()?)
}

/// The cost of the offline phase of a layer modulo `prime`.
///
/// # Errors
/// [`ProtocolError::Bfv`] if the prime does not fit the parameters.
pub fn offline_cost(
    packing: &Packing,
    parameters: &Parameters,
    prime: u64,
) -> Result<OfflineCost, ProtocolError> {
    exchange::offline_cost(packing.ciphertexts(), parameters, prime)
}

/// The cost of the online phase of a layer modulo `prime`.
///
/// # Errors
/// [`ProtocolError::Bfv`] if the prime does not fit the parameters.
pub fn online_cost(packing: &Packing, parameters: &Parameters, prime: u64) -> Result<Cost, ProtocolError> {
    exchange::online_cost(packing.ciphertexts(), parameters, prime)
}
