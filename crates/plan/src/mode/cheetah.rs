//! Cheetah: coefficient-encoded layers, and oblivious transfer between them.

use lanner_network::Network;

use super::design::{Between, Design, Inexact, Layer, Rings, Rules};

pub(super) const RULES: Rules = Rules { layer: Layer::Coefficients, between: Between::Transfers };

pub(super) static DESIGN: Design = Design {
    name: "cheetah",
    inexact: Some(Inexact {
        name: "faithful",
        said: "faithful, as its owner asked: labels may differ from run to run",
        leak: "Rounding depends on hidden values. A client that repeats a query and compares labels learns more about the weights.",
        errors: Network::faithful_errors,
    }),
    rings: Rings::PowersOfTwo,
    rules: Some(RULES),
    most_samples: 64,
};
