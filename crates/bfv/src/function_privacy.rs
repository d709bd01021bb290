//! The one way out: ciphertexts that leave the server and hide what was computed.
//!
//! [`seal`], or [`Sealing`] half by half, is the only way to an [`SealedCiphertext`], and that type alone has an encoder;
//! [`PhaseSealing`] is the way of coefficient encodings, whose noise a uniform mask hides. What the client
//! sees is `y - r`, and beyond it a ciphertext whose distribution does not depend on how `y` was computed:
//!
//! 1. a fresh encryption of zero under the client's public key is added, since otherwise `c1 = sum a_i w_i` is a linear
//!    system in the weights whose `a_i` the client knows;
//! 2. the sum is switched to the fewest limbs that have room for the next step, which divides all noise that depends on
//!    the weights but the rounding;
//! 3. the mask `r` is subtracted from every slot, scaled exactly;
//! 4. noise is added whose every coefficient is a sum of three uniform integers below `2^b`, centred, with
//!    `2^b >= 1.07 * 2^56 sqrt(N) sigma`, where `sigma^2 >= E e_k^2` bounds every coefficient of what noise there is. Given everything the
//!    client knows, the sum is within statistical distance `1.07 ||e||_2 / 2^b` of the flooding alone, and on average over the client's
//!    own randomness the whole ciphertext is within `2^-56`, or less where there is room for more flooding. Over many ciphertexts the
//!    squares add ([`Distance`]; docs/protocols/flooding.md has the proofs);
//! 5. limbs that the message does not need are dropped. This only processes what is already safe to send.
//!
//! Steps 1 and 4 do not depend on the ciphertext: a [`Blinding`] is made ahead of time and used once. [`Sealing`] is the same in two
//! halves, for [`crate::halves`].
//!
//! Threat model: a semi-honest client, who knows the secret key, the error of the public key and everything it sent. The
//! second half of the sealed ciphertext is pseudorandom to it by ring-LWE with the fresh secret of step 1.

mod blinding;
mod budget;
mod ciphertext;
mod distance;
mod phase;
mod sealing;

pub use blinding::Blinding;
#[cfg(any(test, debug_assertions))]
#[doc(hidden)]
pub use blinding::Defect;
pub use budget::Budget;
pub(crate) use budget::wire_limbs;
pub use ciphertext::SealedCiphertext;
pub use distance::{CIPHERTEXT_BITS, Distance};
pub use phase::{CoefficientSealing, PhaseModulus, PhaseSealing, PreparedPhase};
pub use sealing::{SealedC0, SealedC1, Sealing, half_len};

use lanner_ring::{Coeff, Poly};

use crate::{BfvError, Ciphertext, Plaintext};

/// Masks, blinds and shrinks an evaluated ciphertext for the wire: it will decrypt to `y - mask`.
///
/// The server's share of `y` is `mask`, which must be uniform in every slot and used nowhere else. The blinding is
/// consumed.
///
/// # Errors
/// [`BfvError::Underblinded`] if the ciphertext's noise may exceed what the blinding was made for;
/// [`BfvError::Mismatch`] if parameters or plaintext moduli differ or the ciphertext has another number of limbs.
pub fn seal(
    ciphertext: &Ciphertext,
    blinding: Blinding,
    mask: &Plaintext,
) -> Result<SealedCiphertext, BfvError> {
    let (second, sealing) = Sealing::new(ciphertext, blinding, mask)?;
    let (SealedC0 { c0, .. }, SealedC1 { modulus, c1 }) = (sealing.finish(), second);
    Ok(SealedCiphertext { modulus, c0, c1 })
}

/// Steps 1 to 4.
#[cfg(test)]
fn blind(
    ciphertext: &Ciphertext,
    blinding: &Blinding,
    mask: &Plaintext,
) -> Result<[Poly<Coeff>; 2], BfvError> {
    let (c1, sealing) = Sealing::blind(ciphertext, blinding, mask)?;
    Ok([sealing.flood(), c1])
}

/// Divides by the last moduli until `limbs` are left.
fn shrink(poly: &mut Poly<Coeff>, limbs: usize) {
    while poly.basis().len() > limbs {
        poly.divide_round_by_last();
    }
}

#[cfg(test)]
mod tests;
