//! Hardened: a client may deviate as it likes, and is told nothing then.

use super::design::{Between, Design, Layer, Rings, Rules};

pub(super) static DESIGN: Design = Design {
    name: "hardened",
    inexact: None,
    rings: Rings::OnePrime,
    rules: Some(Rules { layer: Layer::Checked, between: Between::Circuits }),
    most_samples: 1,
};
