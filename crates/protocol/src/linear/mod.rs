//! Linear layers on additive shares.

pub mod cheetah;
pub mod convolution;
pub mod falcon;
mod form;
pub mod gazelle;
pub mod keys;
mod sets;
pub(crate) mod transfer;

pub use convolution::Convolution;
pub use form::Form;
pub use sets::{Set, Sets};
