//! Products of two shared values' matrices over `Z_2^l`, by encryption: the coefficient encodings of [`cheetah`](crate::cheetah), both ways.
//!
//! `(X_C + X_S)(Y_C + Y_S)` is `X_C Y_C`, which needs nobody, and `X Y_S + X_S Y_C`. A product of matrices is a layer of kernel 1 whose pixels are the
//! rows: `X` is laid out as its input, `Y` as its filters ([`Packing`](crate::cheetah::Packing)). Polynomials commute, so the client encrypts both, the
//! server multiplies each by its share of the other, and the two sums lie on the same coefficients.
//!
//! ```text
//! C: X_C, Y_C mod 2^l                      S: X_S, Y_S
//! offline:
//!   a, a' uniform (c1 of [X_C], [Y_C])
//!       ------------------------------->   seeds of the blinding and of the masks r
//! online:
//!   c0 of [X_C] and [Y_C], rounded
//!       ------------------------------->   ([X_C] + X_S) Y_S + [Y_C] X_S, blinded, switched to 2^w; r added
//!       <-------------------------------   c1, and c0 at the products' coefficients alone
//! 2^g X_C Y_C + the phase's high bits      less the high bits of r
//! ```
//!
//! Threat model: semi-honest. All pairs of matrices go in the same messages, one each way. Phases are masked by uniform elements modulo `2^w`, which leave
//! nothing of the noise: what the client knows of it is its own error times the server's shares. Second halves are pseudorandom by a fresh encryption of zero.
//! The parties' shares have `g` bits of guard, as those of a layer, so a product must be rescaled before a result is made of it.

mod client;
mod scheme;
mod server;
mod step;

pub use client::{ClientMaterial, ClientProduct, ClientRequest};
pub use scheme::{Scheme, Shape};
pub use server::{ServerMaterial, ServerProduct};
pub use step::MatrixProduct;
