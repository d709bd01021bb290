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
//! ([`lanner_bfv::outgoing`]). Deviations from the paper: parameters with 128-bit security, function privacy by a fresh
//! encryption of zero and noise flooding, a layout that serves products and convolutions alike, and all work on the second
//! halves of ciphertexts, which hold no message, ahead of time ([`lanner_bfv::halves`]): the messages are those of the paper, half
//! of each offline.

mod axis;
mod client;
mod encrypted;
mod first_half;
mod kernel;
mod keys;
mod layout;
mod noise;
pub mod packing;
pub mod program;
mod rotation;
pub mod scheme;
mod server;

pub use client::{ClientLayer, ClientMaterial, ClientPending, ClientRequest};
pub use encrypted::{EncryptedSlots, galois_element};
pub use first_half::FirstHalfSlots;
pub use kernel::{Kernel, Operations};
pub use keys::{ClientKeys, keys_cost, parameters, receive_keys, send_keys};
pub use noise::output_noise;
pub use server::{ServerLayer, ServerMaterial};

use lanner_bfv::halves::{FirstHalf, SecondHalf};
use lanner_bfv::outgoing::half_len;
use lanner_bfv::{Parameters, PlaintextModulus};

use crate::{Cost, OfflineCost, ProtocolError};
use packing::Packing;

/// The cost of the offline phase of a layer modulo `prime`.
///
/// # Errors
/// [`ProtocolError::Bfv`] if the prime does not fit the parameters.
pub fn offline_cost(
    packing: &Packing,
    parameters: &Parameters,
    prime: u64,
) -> Result<OfflineCost, ProtocolError> {
    let half = half_len(&PlaintextModulus::new(parameters, prime)?)?;
    let operations = packing.operations();
    Ok(OfflineCost {
        request: Cost::NONE.client(operations.input_ciphertexts * SecondHalf::ENCODED_LEN),
        answer: (0..operations.output_ciphertexts).fold(Cost::NONE, |cost, _| cost.server(half)),
    })
}

/// The cost of the online phase of a layer modulo `prime`.
///
/// # Errors
/// [`ProtocolError::Bfv`] if the prime does not fit the parameters.
pub fn online_cost(packing: &Packing, parameters: &Parameters, prime: u64) -> Result<Cost, ProtocolError> {
    let (input, output) =
        (FirstHalf::encoded_len(parameters), half_len(&PlaintextModulus::new(parameters, prime)?)?);
    let operations = packing.operations();
    let sent = (0..operations.input_ciphertexts).fold(Cost::NONE, |cost, _| cost.client(input));
    Ok((0..operations.output_ciphertexts).fold(sent, |cost, _| cost.server(output)))
}
