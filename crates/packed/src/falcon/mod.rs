//! FALCON's frequency-domain linear layers (Li et al. 2018, <https://arxiv.org/abs/1811.08257>, sections 5.2 and 5.4):
//! convolutions as slotwise products of transforms, without a rotation.
//!
//! ```text
//! C: x_C                                  S: x_S, W, b
//! offline:
//!   a uniform (c1 of [F x_C])
//!       ------------------------------->  r uniform in every slot
//!                                         (F x_S, a) * F W, blinded: [F y - r] but for C's message
//!       <-------------------------------  c1 of [F y - r]
//! online:
//!   c0 of [F x_C]
//!       ------------------------------->  [F y] = [F x_C + F x_S] * F W
//!       <-------------------------------  c0 of [F y - r]
//! sums of channels, F^-1, crop: y - r'    the same of r: r' + b
//! ```
//!
//! `F` is the exact transform over `Z_p` ([`lanner_ring::Dft2`]), a channel at a time; slots of an output ciphertext are partial sums of channels,
//! which the client adds after decryption (section 5.2.2), and the server adds its masks likewise.
//!
//! Threat model: semi-honest parties; the client learns a uniform value for every slot, and the sent ciphertext hides the weights
//! ([`lanner_bfv::function_privacy`]). Deviations from the paper: the transform is over `Z_p`, not over complex numbers, because a mask that is uniform mod
//! `p` does not survive a complex transform over integers, and because shares stay linear; so real and imaginary parts are one ciphertext and
//! one product. Parameters have 128-bit security, function privacy is as in [`super::gazelle`], and so is the work ahead of time.

mod arrangement;
mod axis;
mod client;
mod noise;
mod packing;
mod parameters;
mod scheme;
mod server;
mod spectrum;
mod step;

pub use crate::exchange::{ClientMaterial, ClientPending, ClientRequest};
pub use arrangement::{Operations, Variant};
pub use client::ClientLayer;
pub use noise::output_noise;
pub use packing::{Output, Packing, Run};
pub use parameters::{Choice, cheapest, choices};
pub use scheme::{EncryptedProducts, FirstHalfProducts, SlotProducts, evaluate};
pub use server::{ServerLayer, ServerMaterial};
pub use spectrum::Spectrum;
pub use step::Linear;

use lanner_bfv::Parameters;
use lanner_step::{Cost, OfflineCost, ProtocolError};

use crate::exchange;

/// The cost of the offline phase of a layer.
///
/// # Errors
/// [`ProtocolError::Bfv`] if the prime does not fit the parameters.
pub fn offline_cost(packing: &Packing, parameters: &Parameters) -> Result<OfflineCost, ProtocolError> {
    exchange::offline_cost(packing.ciphertexts(), parameters, packing.prime())
}

/// The cost of the online phase of a layer.
///
/// # Errors
/// [`ProtocolError::Bfv`] if the prime does not fit the parameters.
pub fn online_cost(packing: &Packing, parameters: &Parameters) -> Result<Cost, ProtocolError> {
    exchange::online_cost(packing.ciphertexts(), parameters, packing.prime())
}
