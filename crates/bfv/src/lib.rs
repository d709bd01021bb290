//! BFV homomorphic encryption ([FV12], <https://eprint.iacr.org/2012/144>) for two parties: a client who holds the secret
//! key, and a server who evaluates linear functions with weights that the client must not learn.
//!
//! - [`Parameters`]: ring degree and moduli, refused unless they give 128 bits of security.
//! - [`SlotEncoder`], [`CoefficientEncoder`]: vectors modulo a plaintext modulus `t`. No key depends on `t`.
//! - [`SecretKey`], [`PublicKey`], [`EvaluationKeys`]: the client's keys; uploads are symmetric and seeded.
//! - [`Evaluator`], [`Hoisted`], [`LinearCombination`], [`ExtendedCombination`]: what the server computes.
//! - [`outgoing`]: the one function through which a ciphertext leaves the server.
//! - [`NoiseBound`]: bounds on the noise from public quantities, carried by every [`Ciphertext`].
//!
//! Threat model: both parties follow the protocol and look at everything they see. Messages are hidden from the server
//! by ring-LWE with ternary secrets; the server's function is hidden from the client by [`outgoing`]. Messages are scaled
//! by `round(q m / t)` exactly, so that shares modulo `t` wrap without a trace.

mod ciphertext;
mod combination;
mod encode;
mod error;
mod evaluator;
mod hoisting;
mod keys;
mod noise;
pub mod outgoing;
mod packing;
mod parameters;
mod plaintext;
mod reduce;
mod security;

pub use ciphertext::{Ciphertext, SeededCiphertext};
pub use combination::{ExtendedCombination, ExtendedCombinations, LinearCombination};
pub use encode::{CoefficientEncoder, Multiplier, SlotEncoder};
pub use error::BfvError;
pub use evaluator::Evaluator;
pub use hoisting::{ExtendedCiphertext, Hoisted};
pub use keys::{EvaluationKeys, PublicKey, SecretKey};
pub use lanner_ring::GaloisElement;
pub use noise::NoiseBound;
pub use outgoing::{Blinding, OutgoingCiphertext, seal};
pub use parameters::{ParameterSet, Parameters};
pub use plaintext::{Plaintext, PlaintextModulus};
