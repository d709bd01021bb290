//! Whether any of some values is zero.

use lanner_primitives::Ring;

use super::masked::{MaskedBuilder, MaskedCircuit};
use crate::GcError;
use crate::circuit::{CircuitBuilder, Wire};

/// Whether any of `k` values modulo a power of two is zero: one output bit.
///
/// A value is zero where the evaluator's share is the garbler's negated, and who knows a word negates it for free: `kl - 1` AND gates for `l`
/// bits, where adding the shares would take as many alone.
///
/// # Errors
/// [`GcError::Parameters`] as for [`super::signed_bound`], if the ring is one modulo a prime, or if `k` is zero.
pub fn any_zero(ring: Ring, k: usize) -> Result<MaskedCircuit, GcError> {
    let Ring::Pow2(bits) = ring else {
        return Err(GcError::Parameters("zeros modulo a prime"));
    };
    if k == 0 {
        return Err(GcError::Parameters("the zeros of no value"));
    }
    let mut builder = MaskedBuilder::new(ring, 0)?;
    let mut any = Wire::ZERO;
    for _ in 0..k {
        let [share, other] = builder.shares(bits);
        let gates = &mut builder.gates;
        let negated = gates.subtract(&CircuitBuilder::constant_word(0, bits), &other).0;
        let mut is_zero = Wire::ONE;
        for (share, negated) in share.into_iter().zip(negated) {
            let differs = gates.xor(share, negated);
            is_zero = gates.and(is_zero, !differs);
        }
        any = gates.or(any, is_zero);
    }
    builder.finish(&[any])
}
