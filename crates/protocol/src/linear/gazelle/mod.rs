//! GAZELLE's packed linear layers (Juvekar et al., USENIX Security 2018, <https://www.usenix.org/conference/usenixsecurity18/presentation/juvekar>):
//! matrix-vector products and convolutions on slots.
//!
//! ```text
//! C: x_C                                  S: x_S, W, b
//!                                         r uniform in every slot (offline)
//! [x_C] ------------------------------->
//!                                         [y] = W [x_C + x_S]
//!       <-------------------------------  [y - r], blinded
//! y - r                                   r + b
//! ```
//!
//! Threat model: semi-honest parties; the client learns a uniform share, and the sent ciphertext hides the weights
//! (`lanner_bfv`'s outgoing step). Deviations from the paper: parameters with 128-bit security, function privacy by a fresh
//! encryption of zero and noise flooding, a layout that serves products and convolutions alike.

mod axis;
mod client;
mod encrypted;
mod kernel;
mod keys;
mod layout;
mod noise;
pub mod packing;
pub mod program;
mod rotation;
pub mod scheme;
mod server;

pub use client::ClientLayer;
pub use encrypted::{EncryptedSlots, galois_element};
pub use kernel::{Kernel, Operations};
pub use keys::{ClientKeys, keys_cost, parameters, receive_keys, send_keys};
pub use noise::output_noise;
pub use server::{ServerLayer, ServerMaterial};

use lanner_bfv::{OutgoingCiphertext, Parameters, PlaintextModulus, SeededCiphertext};

use crate::{Cost, ProtocolError};
use packing::Packing;

/// The cost of a layer modulo `prime`: all of it is online.
///
/// # Errors
/// [`ProtocolError::Bfv`] if the prime does not fit the parameters.
pub fn online_cost(packing: &Packing, parameters: &Parameters, prime: u64) -> Result<Cost, ProtocolError> {
    let output = OutgoingCiphertext::encoded_len(&PlaintextModulus::new(parameters, prime)?)?;
    let operations = packing.operations();
    let inputs = (0..operations.input_ciphertexts)
        .fold(Cost::NONE, |cost, _| cost.client(SeededCiphertext::encoded_len(parameters)));
    Ok((0..operations.output_ciphertexts).fold(inputs, |cost, _| cost.server(output)))
}
