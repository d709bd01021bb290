//! A network for clients that may do anything: what they compute is checked before they are told a result. `docs/protocols/hardened.md` has the proofs.
//!
//! ```text
//! C                                                      S
//! offline:
//!                                            <--------   seed of a
//! b = -a s + e; commitments                  -------->
//!                                            <--------   which to open
//! openings; seeds of c1; transfers           -------->
//!                                                        V_1..V_128, chi, beta;  v_k = sum_l beta_kl rev(V_l);  eta_k = sum L^T (v_k - M^T chi_k) - sum n chi_k
//!                                            <--------   salts; c1 of V_l and of M, blinded
//!                                            <--------   tables; corrections: 2^j chi_k, 2^j and 2^j eta_k
//! online:
//! bits of x                                  -------->
//! for each sum: c0 of its layers             -------->
//!                                            <--------   M c0 under uniform masks; in the end coefficient N - 1 of V_l c0 likewise
//!   bits of c, the sum of shares             -------->
//!                                            <--------   labels; in the end the seed of beta
//! hash of D                                  -------->   compares with E, else ends
//!                                            <--------   permute bits, or the share of the scores
//! ```
//!
//! Threat model: the client may deviate as it likes; the server follows the protocol. What the server knows of an activation's value, `y_S`, goes into its share of the next layer's outputs as
//! `M L y_S`, in the clear, and not into a ciphertext; so `K` of the page is the mask alone.
#![allow(clippy::doc_markdown, reason = "ReLU is the field's name, not code")]

mod checks;
mod client;
mod form;
mod linear;
mod scheme;
mod server;
mod spec;
mod step;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

pub use client::{Client, ClientMaterial};
pub use linear::MOST_WEIGHT;
pub use scheme::{Scheme, bound};
pub use server::{Server, ServerMaterial};
pub use spec::{Activation, Item, Layer, Map, Network, Sum, Term, Told};
pub use step::Whole;

/// Labels of a message.
const LABELS_OF_A_MESSAGE: usize = 1 << 15;
