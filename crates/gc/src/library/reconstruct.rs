//! The garbler's constant by which a circuit adds two shares.

use lanner_primitives::Ring;

use crate::GcError;
use crate::circuit::{CircuitBuilder, Wire};

/// The exclusive bound of |x| for inputs of a circuit that rescales by `d` bits.
///
/// For Z_p with b bits it is `min(p - 2^(b-1), 2^(b-1)) - 2^(d-1)`, for Z_{2^l} `2^(l-1) - 2^(d-1)`; the last term is
/// missing if `d = 0`.
///
/// # Errors
/// [`GcError::Parameters`] if the ring is neither Z_p for an odd p of 3 to 62 bits nor Z_{2^l} for l of 2 to 64, fewer than two bits would be left, or the range
/// would be empty.
pub fn signed_bound(ring: Ring, d: u32) -> Result<u64, GcError> {
    let valid = match ring {
        Ring::Prime(p) => p % 2 == 1 && (3..=62).contains(&ring.bits()),
        Ring::Pow2(bits) => (2..=64).contains(&bits),
    };
    if !valid {
        return Err(GcError::Parameters("the ring's modulus is not supported"));
    }
    if d + 2 > ring.bits() {
        return Err(GcError::Parameters("rescaling would leave fewer than two bits"));
    }
    let top = 1_u64 << (ring.bits() - 1);
    let bound = match ring {
        Ring::Prime(p) => top.min(p - top),
        Ring::Pow2(_) => top,
    };
    match bound.checked_sub(half(d)) {
        Some(bound) if bound > 0 => Ok(bound),
        _ => Err(GcError::Parameters("no value would be in range")),
    }
}

/// The garbler's constant for one shared value, as (word, bits); see [`reconstruct`].
pub(super) fn word(ring: Ring, share: u64, d: u32) -> (u64, u32) {
    let bits = ring.bits();
    match ring {
        Ring::Prime(p) => {
            // The representative up to 2^(b-1); `2^(b-1) - share` is negative where that is not the share itself.
            let upper = ((1_u64 << (bits - 1)).wrapping_sub(share) >> 63).wrapping_neg();
            let representative = share.wrapping_sub(p & upper);
            (representative.wrapping_add(half(d)).wrapping_sub(1), bits + 1)
        }
        Ring::Pow2(_) => (share.wrapping_add(half(d)), bits),
    }
}

/// Adds two shares: `rescale(x, d)` as a word of `bits - d` bits in two's complement.
///
/// For `d = 0` the constant may be that of any other d, and the word is `x + 2^(d-1)`.
///
/// AND gates: `2b - 1 - e` over Z_p with `e = min(d, v)`, `2^v` being the largest power of two that divides p - 1;
/// `l - 1` over Z_{2^l}.
pub(super) fn reconstruct(ring: Ring, builder: &mut CircuitBuilder, d: u32) -> Vec<Wire> {
    match ring {
        Ring::Prime(p) => reconstruct_prime(builder, p, ring.bits(), d),
        Ring::Pow2(bits) => {
            let (share, constant) = (builder.evaluator_word(bits), builder.garbler_word(bits));
            builder.add(&share, &constant).split_off(d as usize)
        }
    }
}

/// Adds two shares mod p and drops d bits.
///
/// With s the garbler's share in `(2^(b-1) - p, 2^(b-1)]`, `t = c + s + 2^(d-1)` is `x + 2^(d-1)` or, if it wrapped, p more. The
/// garbler's constant is `u = s + 2^(d-1) - 1`, so the sum wanted is `c + u + 1`, or `c + u - (p - 1)` if t wrapped. As
/// `2^e` divides p - 1, the lowest e bits of both differ by the carry in only.
///
/// 1. The upper bits of c and u are added without the carry from below. The range of x puts t into
///    `(-2^(b-1) + 2^d, 2^(b-1))`, or above `2^(b-1) + 2^d` if it wrapped, and the sum is off by less than `2^(e+1)`; as
///    it is a multiple of `2^e`, its upper two bits tell the two apart. Of the residues out of range all but `2^d` around
///    `2^(b-1)` are told apart, too, and read as in `(2^(b-1) - p, 2^(b-1)]`, whatever the shares; with `d = 0` all are.
/// 2. The lowest e bits are added for their carry, with a carry in of one unless t wrapped.
/// 3. That carry, and the upper bits of `-(p - 1)` if t wrapped, are added to the upper sum. A public constant times a
///    wire is free.
fn reconstruct_prime(builder: &mut CircuitBuilder, p: u64, bits: u32, d: u32) -> Vec<Wire> {
    let shared = d.min((p - 1).trailing_zeros());
    let mut share = builder.evaluator_word(bits);
    let constant = builder.garbler_word(bits + 1);
    share.push(Wire::ZERO);
    let (share_low, share_high) = share.split_at(shared as usize);
    let (constant_low, constant_high) = constant.split_at(shared as usize);

    let mut sum = builder.add(share_high, constant_high);
    let top = sum.pop().unwrap_or(Wire::ZERO);
    let wrapped = builder.xor(top, sum[sum.len() - 1]);
    let carry = builder.add_carry(share_low, constant_low, !wrapped).1;
    let less_p = CircuitBuilder::constant_word(((p - 1) >> shared).wrapping_neg(), bits - shared);
    let less_p = builder.mask_word(wrapped, &less_p);
    let mut value = builder.add_carry(&sum, &less_p, carry).0;
    value.split_off((d - shared) as usize)
}

/// What rescaling by `d` bits adds before it drops them.
const fn half(d: u32) -> u64 {
    if d == 0 { 0 } else { 1 << (d - 1) }
}
