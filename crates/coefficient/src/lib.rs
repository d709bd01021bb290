//! Linear layers in coefficient encodings: a product of polynomials is a convolution.
#![allow(clippy::doc_markdown, reason = "ReLU is the field's name, not code")]

pub mod cheetah;
pub mod delphi;
pub mod matrices;

use lanner_bfv::ParameterSet;

/// A party's layer with the parameter set whose keys it needs.
pub(crate) struct OfSet<L> {
    pub(crate) set: ParameterSet,
    pub(crate) layer: L,
}
