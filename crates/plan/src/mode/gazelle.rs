//! GAZELLE: packed BFV layers and garbled circuits.

use super::design::{Between, Design, Layer, Rings, Rules};

pub(super) static DESIGN: Design = Design {
    name: "gazelle",
    inexact: None,
    rings: Rings::Primes,
    rules: Some(Rules { layer: Layer::Rotations, between: Between::Circuits }),
    most_samples: 64,
};
