//! The client's keys.

mod evaluation;
mod public;
mod secret;

pub use evaluation::EvaluationKeys;
pub(crate) use evaluation::SwitchingKey;
pub(crate) use public::Blind;
pub use public::PublicKey;
pub use secret::SecretKey;
