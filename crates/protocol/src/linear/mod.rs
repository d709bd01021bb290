//! Linear layers on additive shares.

pub mod cheetah;
pub mod convolution;
pub mod exchange;
pub mod falcon;
mod form;
pub mod gazelle;
pub mod keys;
mod sets;

pub use convolution::Convolution;
pub use form::Form;
pub use sets::{Set, Sets};

/// A party's layer with the parameter set whose keys it needs.
pub(crate) struct OfSet<L> {
    pub(crate) set: Set,
    pub(crate) layer: L,
}

/// The protocol's name, by whether the layer is a product with a vector or a convolution.
pub(crate) const fn layer_name(shape: &Convolution, names: [&'static str; 2]) -> &'static str {
    names[if shape.image[0] * shape.image[1] == 1 { 0 } else { 1 }]
}
