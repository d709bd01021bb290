//! Max-pooling, before the ReLU: a region takes one activation instead of one for each of its values.
//!
//! FALCON (Li et al., <https://arxiv.org/abs/1811.08257>) compares residues; here the values are compared in offset
//! form, so that the maximum of {3, -1} is 3.

use lanner_primitives::Ring;

use super::masked::{MaskedBuilder, MaskedCircuit};
use super::relu::{clip, relu};
use crate::GcError;
use crate::circuit::Wire;

/// `y = rescale(max(x_1, ..., x_k, 0), d)`: `b - 1 - d` output bits, unsigned.
///
/// AND gates: k times those of [`super::rescale`], `2 (k - 1) (b - d)` to compare and select, and `b - 1 - d`.
///
/// # Errors
/// [`GcError::Parameters`] as for [`signed_bound`](super::signed_bound), and if `k` is zero.
pub fn max_pool_relu_rescale(ring: Ring, k: usize, d: u32) -> Result<MaskedCircuit, GcError> {
    let mut builder = MaskedBuilder::new(ring, d)?;
    let maximum = maximum(&mut builder, k)?;
    let outputs = relu(&mut builder.gates, &maximum);
    builder.finish(&outputs)
}

/// `y = min(rescale(max(x_1, ..., x_k, 0), d), cap)` for a public cap: as many output bits as the cap has, unsigned.
///
/// AND gates: those of [`max_pool_rescale`] and of clipping, as for [`super::relu_clip`]. A cap that no value exceeds
/// gives [`max_pool_relu_rescale`].
///
/// # Errors
/// [`GcError::Parameters`] as for [`signed_bound`](super::signed_bound), and if `k` or the cap is zero.
pub fn max_pool_relu_clip(ring: Ring, k: usize, d: u32, cap: u64) -> Result<MaskedCircuit, GcError> {
    let mut builder = MaskedBuilder::new(ring, d)?;
    let maximum = maximum(&mut builder, k)?;
    let outputs = clip(&mut builder.gates, &maximum, cap)?;
    builder.finish(&outputs)
}

/// `y = rescale(max(x_1, ..., x_k), d)`: `b - d` output bits in two's complement.
///
/// AND gates: those of [`max_pool_relu_rescale`] without the last `b - 1 - d`.
///
/// # Errors
/// [`GcError::Parameters`] as for [`signed_bound`](super::signed_bound), and if `k` is zero.
pub fn max_pool_rescale(ring: Ring, k: usize, d: u32) -> Result<MaskedCircuit, GcError> {
    let mut builder = MaskedBuilder::new(ring, d)?;
    let maximum = maximum(&mut builder, k)?;
    builder.finish(&maximum)
}

/// The largest of the next `k` values, in two's complement. Rounding keeps the order, so it comes first.
pub(super) fn maximum(builder: &mut MaskedBuilder, k: usize) -> Result<Vec<Wire>, GcError> {
    if k == 0 {
        return Err(GcError::Parameters("a pooling region has no values"));
    }
    let mut maximum = builder.offset_value();
    for _ in 1..k {
        let value = builder.offset_value();
        maximum = builder.gates.max_word(&maximum, &value).0;
    }
    if let Some(sign) = maximum.last_mut() {
        *sign = !*sign;
    }
    Ok(maximum)
}
