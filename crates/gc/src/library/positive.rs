//! Which values are above zero.

use super::masked::{MaskedBuilder, MaskedCircuit, Sharing};
use crate::GcError;
use crate::circuit::CircuitBuilder;

/// Whether each of `k` values is above zero: an output bit for each, in their order. Zero is not.
///
/// AND gates: k times those of [`super::rescale`] with `d = 0`, and one less than the value has bits for each.
///
/// # Errors
/// [`GcError::Parameters`] as for [`super::signed_bound`], and if `k` is zero.
pub fn positive(values: impl Into<Sharing>, k: usize) -> Result<MaskedCircuit, GcError> {
    if k == 0 {
        return Err(GcError::Parameters("the signs of no value"));
    }
    let mut builder = MaskedBuilder::guarded(values.into())?;
    let mut above = Vec::with_capacity(k);
    for _ in 0..k {
        let value = builder.offset_value();
        let bits = value.len() as u32;
        let zero = CircuitBuilder::constant_word(1 << (bits - 1), bits);
        above.push(builder.gates.greater_than(&value, &zero));
    }
    builder.finish(&above)
}
