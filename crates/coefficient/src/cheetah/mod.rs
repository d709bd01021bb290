//! Coefficient-encoded linear layers over `Z_2^l`, after Cheetah ([HLHD22](https://eprint.iacr.org/2022/207), section 3): no rotations, no
//! evaluation keys, any plaintext modulus.
//!
//! ```text
//! C: x_C mod 2^l                          S: x_S, W, b
//! offline:
//!   a uniform (c1 of [x_C])
//!       ------------------------------->  masks r modulo 2^w
//!                                         a K, blinded by an encryption of zero, switched to 2^w
//!       <-------------------------------  c1
//! online:
//!   c0 of [x_C], rounded
//!       ------------------------------->  (c0 + x_S) K, blinded, switched; r added
//!       <-------------------------------  c0 at the outputs' coefficients alone
//! the high bits of the phase              b less the high bits of r
//! ```
//!
//! `K` is the polynomial of the filters ([`Packing`]). Threat model: semi-honest; the client learns masked phases and pseudorandom
//! second halves ([`lanner_bfv::function_privacy::PhaseSealing`]), the server ciphertexts. [`Accuracy`] says how phases are masked, and so how often
//! the shares' sum is off by one. Deviations from the paper: masks hide the noise, too: uniform elements of `Z_2^w`, or uniform messages with a
//! flooding around them; where a rescale follows, shares have bits of guard below the sum, so that it is exact under uniform masks; inputs are
//! rounded and sent where outputs read them; answers of which few coefficients are outputs are [packed](lanner_bfv::Interleaving), by key switchings on second halves alone
//! and before the encryption of zero is added; both halves are switched to a power of two, so that a coefficient takes `w` bits and no more; channels and
//! filters are spread over ciphertexts by cost; dilations and groups; and all work on second halves is done ahead.

mod client;
mod input;
mod packing;
mod price;
mod scheme;
mod server;
mod stacked;
mod step;

pub use client::{ClientLayer, ClientMaterial, ClientRequest};
pub(crate) use client::{coefficients, scattered};
pub(crate) use input::{InputForm, Prepared, announce};
pub use packing::{AnswerForm, Packing, Place, search_steps};
pub use price::of_bytes as price_of_bytes;
pub use scheme::{Accuracy, Scheme};
pub use server::{ServerLayer, ServerMaterial};
pub use stacked::Stacked;
pub(super) use step::BuiltLinear;
pub use step::{Linear, work};
