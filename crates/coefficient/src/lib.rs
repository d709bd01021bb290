//! Linear layers in coefficient encodings: a product of polynomials is a convolution.
#![allow(clippy::doc_markdown, reason = "ReLU is the field's name, not code")]

pub mod cheetah;
pub mod delphi;
pub mod matrices;
