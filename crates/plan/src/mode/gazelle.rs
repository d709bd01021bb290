//! Mode `gazelle`.

use super::design::{Between, Design, Layer, Rings, Rules};

/// GAZELLE: packed BFV layers and garbled circuits.
pub(super) static DESIGN: Design = Design {
    name: "gazelle",
    inexact: None,
    rings: Rings::Primes,
    rules: Some(Rules { layer: Layer::Rotations, between: Between::Circuits }),
    // There is nothing to gain beyond.
    most_samples: 64,
};
