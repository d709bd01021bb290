//! FALCON: layers in the frequency domain, and garbled circuits.

use super::design::{Between, Design, Layer, Rings, Rules};

pub(super) static DESIGN: Design = Design {
    name: "falcon",
    inexact: None,
    rings: Rings::Primes,
    rules: Some(Rules { layer: Layer::Frequencies, between: Between::Circuits }),
    most_samples: 1,
};
