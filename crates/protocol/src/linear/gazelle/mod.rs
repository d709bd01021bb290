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
mod noise;
pub mod packing;
pub mod program;
mod rotation;
pub mod scheme;
mod server;

pub use client::ClientLayer;
pub use encrypted::{EncryptedSlots, galois_element};
pub use kernel::{Kernel, Operations};
pub use noise::output_noise;
pub use server::{ClientKeys, ServerLayer, ServerMaterial};

use lanner_share::{Ring, Share};

use crate::ProtocolError;
use packing::Packing;

/// The slots of each input ciphertext that carry `share`; the others are zero.
fn pack(packing: &Packing, ring: Ring, share: &Share) -> Result<Vec<Vec<u64>>, ProtocolError> {
    if (share.ring(), share.len()) != (ring, packing.inputs()) {
        return Err(ProtocolError::Shape { what: "input share of a linear layer" });
    }
    let slot = |element: Option<usize>| element.map_or(0, |i| share.values()[i]);
    let ciphertexts = 0..packing.operations().input_ciphertexts;
    Ok(ciphertexts.map(|c| packing.input_slots(c).into_iter().map(slot).collect()).collect())
}
