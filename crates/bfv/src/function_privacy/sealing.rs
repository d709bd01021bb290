//! Sealing in two halves, the second ahead of the message.

use lanner_ring::{Coeff, Eval, Poly};
use lanner_wire::{Encode, Reader, Writer};
use zeroize::ZeroizeOnDrop;

use super::budget::wire_limbs;
use super::{Blinding, Budget, shrink};
use crate::halves::C0;
use crate::packing::{packed_poly_len, read_poly, write_poly};
use crate::{BfvError, Ciphertext, NoiseBound, Plaintext, PlaintextModulus};

/// What is left of sealing once the second half has gone. It serves one ciphertext and cannot be cloned.
#[derive(ZeroizeOnDrop)]
pub struct Sealing {
    #[zeroize(skip)]
    modulus: PlaintextModulus,
    #[zeroize(skip)]
    budget: Budget,
    /// The noise of what was evaluated so far, and the bound that the flooding hides.
    #[zeroize(skip)]
    noise: NoiseBound,
    #[zeroize(skip)]
    hidden: NoiseBound,
    /// The first half of what was evaluated so far, and of the encryption of zero.
    c0: Poly<Eval>,
    /// The flooding less the mask; none where `c0` has it already, as no limb is dropped before.
    offset: Option<Poly<Coeff>>,
}

/// The first half of an [`SealedCiphertext`](super::SealedCiphertext).
pub struct SealedC0 {
    pub(crate) modulus: PlaintextModulus,
    pub(crate) c0: Poly<Coeff>,
}

/// The second half of an [`SealedCiphertext`](super::SealedCiphertext).
pub struct SealedC1 {
    pub(crate) modulus: PlaintextModulus,
    pub(crate) c1: Poly<Coeff>,
}

impl Sealing {
    /// Seals the second half; the ciphertext's first half may lack what [`Self::seal`] adds.
    ///
    /// # Errors
    /// As [`super::seal`].
    #[allow(clippy::needless_pass_by_value)] // A blinding is used once.
    pub fn new(
        ciphertext: &Ciphertext,
        blinding: Blinding,
        mask: &Plaintext,
    ) -> Result<(SealedC1, Self), BfvError> {
        let (mut c1, sealing) = Self::blind(ciphertext, &blinding, mask)?;
        shrink(&mut c1, sealing.budget.wire_limbs());
        Ok((SealedC1 { modulus: sealing.modulus.clone(), c1 }, sealing))
    }

    /// Seals the first half, after adding `half` to it.
    ///
    /// # Errors
    /// [`BfvError::Underblinded`] if the noise may exceed what the blinding was made for; [`BfvError::Mismatch`] for a half of
    /// other parameters.
    pub fn seal(mut self, half: &C0) -> Result<SealedC0, BfvError> {
        if !self.c0.basis().same(half.c0.basis()) {
            return Err(BfvError::Mismatch { what: "ciphertext moduli" });
        }
        self.noise = self.noise.plus(half.noise);
        self.hidden.check_hides(self.noise)?;
        self.c0.add_assign(&half.c0);
        Ok(self.finish())
    }

    /// Appends it. The bytes serve one ciphertext, as it does, and are as secret as the mask and the weights.
    pub fn encode(&self, writer: &mut Writer) {
        self.noise.encode(writer);
        write_poly(&self.c0, writer);
        self.offset.iter().for_each(|offset| write_poly(offset, writer));
    }

    /// Reads what [`Self::encode`] wrote of a ciphertext with all limbs whose blinding was made for this modulus and this noise.
    ///
    /// # Errors
    /// As [`Blinding::prepare`]; [`BfvError::Decode`] if bytes are missing or a value is not below its modulus;
    /// [`BfvError::Underblinded`] if the noise exceeds the blinding's.
    pub fn decode(
        modulus: &PlaintextModulus,
        hidden: NoiseBound,
        reader: &mut Reader<'_>,
    ) -> Result<Self, BfvError> {
        let budget = Budget::new(modulus, hidden)?;
        let parameters = modulus.parameters();
        let noise = NoiseBound::decode(reader)?;
        hidden.check_hides(noise)?;
        let c0 = read_poly(&parameters.basis(parameters.limbs()), reader)?;
        let apart = budget.flood_limbs() < parameters.limbs();
        let offset = apart.then(|| read_poly(&parameters.basis(budget.flood_limbs()), reader)).transpose()?;
        Ok(Self { modulus: modulus.clone(), budget, noise, hidden, c0, offset })
    }

    /// Seals the first half as it is.
    pub(super) fn finish(self) -> SealedC0 {
        let mut c0 = self.flood();
        shrink(&mut c0, self.budget.wire_limbs());
        SealedC0 { modulus: self.modulus.clone(), c0 }
    }

    /// Steps 1 to 4 for the second half, and as much of them for the first as does not depend on it.
    pub(super) fn blind(
        ciphertext: &Ciphertext,
        blinding: &Blinding,
        mask: &Plaintext,
    ) -> Result<(Poly<Coeff>, Self), BfvError> {
        blinding.modulus.check_same(mask.modulus())?;
        blinding.zero.check_same(ciphertext)?;
        blinding.noise.check_hides(ciphertext.noise)?;
        let (modulus, budget) = (blinding.modulus.clone(), blinding.budget);
        let limbs = budget.flood_limbs();
        let (mut c0, mut c1) = (ciphertext.c0.clone(), ciphertext.c1.clone());
        c0.add_assign(&blinding.zero.c0);
        c1.add_assign(&blinding.zero.c1);
        let mut c1 = c1.into_coeff();
        shrink(&mut c1, limbs);
        let mut offset = blinding.flood.clone();
        offset.sub_assign(&modulus.scale(mask, limbs));
        let (noise, hidden) = (ciphertext.noise, blinding.noise);
        let offset = if limbs == c0.basis().len() {
            c0.add_assign(&offset.into_eval());
            None
        } else {
            Some(offset)
        };
        Ok((c1, Self { modulus, budget, noise, hidden, c0, offset }))
    }

    /// Steps 1 to 4 for the first half.
    pub(super) fn flood(&self) -> Poly<Coeff> {
        let mut c0 = self.c0.clone().into_coeff();
        shrink(&mut c0, self.budget.flood_limbs());
        self.offset.iter().for_each(|offset| c0.add_assign(offset));
        c0
    }
}

impl NoiseBound {
    /// # Errors
    /// [`BfvError::Underblinded`] if `noise` exceeds this bound.
    pub(super) fn check_hides(self, noise: Self) -> Result<(), BfvError> {
        // The same operations in another order may differ in the last bits of a double.
        if noise.deviation() <= self.deviation() * (1.0 + 1e-9) {
            return Ok(());
        }
        Err(BfvError::Underblinded { noise: noise.deviation().log2(), hidden: self.deviation().log2() })
    }
}

impl SealedC0 {
    /// Reads a half that takes all of `bytes`.
    ///
    /// # Errors
    /// As [`half_len`]; [`BfvError::Decode`] unless the bytes are exactly what [`Encode`] writes.
    pub fn from_bytes(modulus: &PlaintextModulus, bytes: &[u8]) -> Result<Self, BfvError> {
        Ok(Self { modulus: modulus.clone(), c0: read_half(modulus, bytes)? })
    }
}

impl SealedC1 {
    /// Reads a half that takes all of `bytes`.
    ///
    /// # Errors
    /// As [`half_len`]; [`BfvError::Decode`] unless the bytes are exactly what [`Encode`] writes.
    pub fn from_bytes(modulus: &PlaintextModulus, bytes: &[u8]) -> Result<Self, BfvError> {
        Ok(Self { modulus: modulus.clone(), c1: read_half(modulus, bytes)? })
    }
}

impl Encode for SealedC0 {
    fn encode(&self, writer: &mut Writer) {
        write_poly(&self.c0, writer);
    }
}

impl Encode for SealedC1 {
    fn encode(&self, writer: &mut Writer) {
        write_poly(&self.c1, writer);
    }
}

/// The exact length of either half's wire form.
///
/// # Errors
/// [`BfvError::Budget`] if the parameters cannot carry messages modulo `t` at all.
pub fn half_len(modulus: &PlaintextModulus) -> Result<usize, BfvError> {
    Ok(packed_poly_len(&modulus.parameters().basis(wire_limbs(modulus)?)))
}

fn read_half(modulus: &PlaintextModulus, bytes: &[u8]) -> Result<Poly<Coeff>, BfvError> {
    let mut reader = Reader::new(bytes);
    let poly = read_poly(&modulus.parameters().basis(wire_limbs(modulus)?), &mut reader)?;
    reader.finish()?;
    Ok(poly)
}
