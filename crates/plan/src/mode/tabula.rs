//! Tabula: layers computed ahead, so that the online phase is plaintext arithmetic, and lookups of values that are opened under masks.

use lanner_network::Network;

use super::design::{Between, Design, Inexact, Layer, Rings, Rules};

pub(super) const RULES: Rules = Rules { layer: Layer::Ahead, between: Between::Lookups };

pub(super) static DESIGN: Design = Design {
    name: "tabula",
    inexact: Some(Inexact {
        name: "stochastic",
        said: "stochastic, as its owner asked, but for the last rescale: labels may differ from run to run",
        leak: "Rounding is random, with odds that depend on hidden values. A client that repeats a query and counts labels learns more about the \
               weights; a server that sees the labels learns more about the input.",
        errors: Network::stochastic_errors,
    }),
    rings: Rings::PowersOfTwo,
    rules: Some(RULES),
    most_samples: 1,
};
