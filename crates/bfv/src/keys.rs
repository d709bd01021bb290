//! The client's keys.

mod evaluation;
mod needed;
mod public;
mod secret;

pub use evaluation::EvaluationKeys;
pub(crate) use evaluation::SwitchingKey;
pub use needed::NeededKey;
pub(crate) use public::Blind;
pub use public::PublicKey;
pub use secret::SecretKey;
