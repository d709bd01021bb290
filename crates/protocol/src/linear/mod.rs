//! Linear layers on additive shares.

pub mod cheetah;
pub mod convolution;
pub mod falcon;
pub mod gazelle;
pub(crate) mod transfer;

pub use convolution::Convolution;
