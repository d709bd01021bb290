//! Mode `spectral`.

use super::design::{Design, Rings};

/// Falcon spectral: one request and one response, for networks of sums and products.
pub(super) static DESIGN: Design = Design {
    name: "spectral",
    inexact: None,
    rings: Rings::Products,
    rules: None,
    // No ciphertext has more slots.
    most_samples: 1 << 15,
};
