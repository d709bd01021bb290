//! The only ciphertext that a server can put on the wire.

use lanner_ring::{Coeff, Poly};
use lanner_wire::{Encode, Reader, Writer};

use super::budget::wire_limbs;
use crate::packing::{packed_poly_len, read_poly, write_poly};
use crate::{BfvError, PlaintextModulus};

/// A sealed ciphertext of `y - r`.
///
/// Wire form: the limbs of `c0`, then those of `c1`, coefficients in order, each in the bits of its modulus, each limb
/// padded to a byte.
#[derive(Clone)]
pub struct SealedCiphertext {
    pub(crate) modulus: PlaintextModulus,
    pub(crate) c0: Poly<Coeff>,
    pub(crate) c1: Poly<Coeff>,
}

impl SealedCiphertext {
    /// The plaintext modulus.
    #[must_use]
    pub fn modulus(&self) -> &PlaintextModulus {
        &self.modulus
    }

    /// The exact length of the wire form.
    ///
    /// # Errors
    /// [`BfvError::Budget`] if the parameters cannot carry messages modulo `t` at all.
    pub fn encoded_len(modulus: &PlaintextModulus) -> Result<usize, BfvError> {
        Ok(2 * packed_poly_len(&modulus.parameters().basis(wire_limbs(modulus)?)))
    }

    /// Reads a ciphertext.
    ///
    /// # Errors
    /// As [`Self::encoded_len`]; [`BfvError::Decode`] unless the bytes are exactly what [`Encode`] writes.
    pub fn decode(modulus: &PlaintextModulus, reader: &mut Reader<'_>) -> Result<Self, BfvError> {
        let basis = modulus.parameters().basis(wire_limbs(modulus)?);
        let (c0, c1) = (read_poly(&basis, reader)?, read_poly(&basis, reader)?);
        Ok(Self { modulus: modulus.clone(), c0, c1 })
    }

    /// Reads a ciphertext that takes all of `bytes`.
    ///
    /// # Errors
    /// As [`Self::decode`], and for bytes left over.
    pub fn from_bytes(modulus: &PlaintextModulus, bytes: &[u8]) -> Result<Self, BfvError> {
        let mut reader = Reader::new(bytes);
        let ciphertext = Self::decode(modulus, &mut reader)?;
        reader.finish()?;
        Ok(ciphertext)
    }
}

impl Encode for SealedCiphertext {
    fn encode(&self, writer: &mut Writer) {
        write_poly(&self.c0, writer);
        write_poly(&self.c1, writer);
    }
}
