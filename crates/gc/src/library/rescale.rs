//! Rescaling without an activation.

use lanner_primitives::Ring;

use super::masked::{MaskedBuilder, MaskedCircuit};
use crate::GcError;

/// `y = rescale(x, d)`: `b - d` output bits in two's complement.
///
/// AND gates: `2b - 1 - e` over Z_p with b bits and `e = min(d, v)`, `2^v` being the largest power of two that divides
/// p - 1; `l - 1` over Z_{2^l}. These are the *sum* of the other circuits.
///
/// # Errors
/// [`GcError::Parameters`] as for [`signed_bound`](super::signed_bound).
pub fn rescale(ring: Ring, d: u32) -> Result<MaskedCircuit, GcError> {
    let mut builder = MaskedBuilder::new(ring, d)?;
    let value = builder.value();
    builder.finish(&value)
}
