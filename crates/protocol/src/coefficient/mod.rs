//! Linear layers in coefficient encodings: a product of polynomials is a convolution.

pub mod cheetah;
pub mod delphi;
