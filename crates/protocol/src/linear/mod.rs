//! Linear layers on additive shares.

pub mod convolution;
pub mod gazelle;

pub use convolution::Convolution;
