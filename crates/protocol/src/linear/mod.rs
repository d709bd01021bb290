//! Linear layers on additive shares.

pub mod cheetah;
pub mod convolution;
pub mod delphi;
pub mod exchange;
pub mod falcon;
pub mod gazelle;
pub mod keys;
mod sets;
mod weight_form;

use lanner_bfv::ParameterSet;

pub use convolution::Convolution;
pub use sets::Sets;
pub use weight_form::WeightForm;

/// A party's layer with the parameter set whose keys it needs.
pub(crate) struct OfSet<L> {
    pub(crate) set: ParameterSet,
    pub(crate) layer: L,
}

/// The protocol's name, by whether the layer is a product with a vector or a convolution.
pub(crate) const fn layer_name(shape: &Convolution, names: [&'static str; 2]) -> &'static str {
    names[if shape.image[0] * shape.image[1] == 1 { 0 } else { 1 }]
}
