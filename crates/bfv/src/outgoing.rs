//! The one way out: ciphertexts that leave the server and hide what was computed.
//!
//! [`seal`] is the only function that makes an [`OutgoingCiphertext`], and that type alone has an encoder. What the client
//! sees is `y - r`, and beyond it a ciphertext whose distribution does not depend on how `y` was computed:
//!
//! 1. a fresh encryption of zero under the client's public key is added, since otherwise `c1 = sum a_i w_i` is a linear
//!    system in the weights whose `a_i` the client knows;
//! 2. the sum is switched to the fewest limbs that have room for the next step, which divides all noise that depends on
//!    the weights but the rounding;
//! 3. the mask `r` is subtracted from every slot, scaled exactly;
//! 4. uniform noise in `[-2^b, 2^b)` is added with `2^b >= 2^39 N sigma`, where `sigma >= E|e_k|` bounds every coefficient of
//!    what noise there is. Given everything the client knows, the sum is within statistical distance `sum |e_k| / 2^(b+1)`
//!    of the flooding alone, and on average over the client's own randomness within `2^-40`;
//! 5. limbs that the message does not need are dropped. This only processes what is already safe to send.
//!
//! Steps 1 and 4 do not depend on the ciphertext: a [`Blinding`] is made ahead of time and used once.
//!
//! Threat model: a semi-honest client, who knows the secret key, the error of the public key and everything it sent. The
//! second half of the sealed ciphertext is pseudorandom to it by ring-LWE with the fresh secret of step 1.

mod blinding;
mod budget;
mod ciphertext;

pub use blinding::Blinding;
#[cfg(any(test, feature = "broken-seal"))]
#[doc(hidden)]
pub use blinding::Defect;
pub use budget::Budget;
pub use ciphertext::OutgoingCiphertext;

use lanner_ring::{Coeff, Poly};
use zeroize::Zeroize;

use crate::{BfvError, Ciphertext, Plaintext};

/// Masks, blinds and shrinks an evaluated ciphertext for the wire: it will decrypt to `y - mask`.
///
/// The server's share of `y` is `mask`, which must be uniform in every slot and used nowhere else. The blinding is
/// consumed.
///
/// # Errors
/// [`BfvError::Underblinded`] if the ciphertext's noise may exceed what the blinding was made for;
/// [`BfvError::Mismatch`] if parameters or plaintext moduli differ or the ciphertext has lost limbs.
#[allow(clippy::needless_pass_by_value)] // A blinding is used once.
pub fn seal(
    ciphertext: &Ciphertext,
    blinding: Blinding,
    mask: &Plaintext,
) -> Result<OutgoingCiphertext, BfvError> {
    let (modulus, limbs) = (blinding.modulus.clone(), blinding.budget.wire_limbs());
    let [mut c0, mut c1] = blind(ciphertext, &blinding, mask)?;
    shrink(&mut c0, limbs);
    shrink(&mut c1, limbs);
    Ok(OutgoingCiphertext { modulus, c0, c1 })
}

/// Steps 1 to 4.
fn blind(
    ciphertext: &Ciphertext,
    blinding: &Blinding,
    mask: &Plaintext,
) -> Result<[Poly<Coeff>; 2], BfvError> {
    blinding.modulus.check_same(mask.modulus())?;
    blinding.zero.check_same(ciphertext)?;
    blinding.check_hides(ciphertext.noise)?;
    let limbs = blinding.budget.flood_limbs();
    let mut c0 = ciphertext.c0.clone();
    let mut c1 = ciphertext.c1.clone();
    c0.add_assign(&blinding.zero.c0);
    c1.add_assign(&blinding.zero.c1);
    let (mut c0, mut c1) = (c0.into_coeff(), c1.into_coeff());
    shrink(&mut c0, limbs);
    shrink(&mut c1, limbs);
    let mut mask = mask.modulus().scale(mask, limbs);
    c0.sub_assign(&mask);
    c0.add_assign(&blinding.flood);
    mask.zeroize();
    Ok([c0, c1])
}

/// Divides by the last moduli until `limbs` are left.
fn shrink(poly: &mut Poly<Coeff>, limbs: usize) {
    while poly.basis().len() > limbs {
        poly.divide_round_by_last();
    }
}

#[cfg(test)]
mod tests;
