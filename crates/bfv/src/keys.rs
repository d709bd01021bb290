//! The client's keys.

mod evaluation;
mod needed;
mod proven;
mod public;
mod secret;

pub use evaluation::EvaluationKeys;
pub(crate) use evaluation::SwitchingKey;
pub use needed::NeededKey;
pub use proven::{KeyChallenge, KeyProof, KeyVerifier};
pub(crate) use public::Blind;
pub use public::PublicKey;
pub use secret::SecretKey;
