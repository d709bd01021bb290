//! Falcon spectral: one request and one response, for networks of sums and products.

use super::design::{Design, Rings};

pub(super) static DESIGN: Design =
    Design { name: "spectral", inexact: None, rings: Rings::Products, rules: None, most_samples: 1 << 15 };
