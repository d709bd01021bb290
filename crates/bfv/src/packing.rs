//! Wire forms of polynomials: every value in the bits of its modulus, every limb padded to a byte.

use lanner_primitives::Seed;
use lanner_ring::{Domain, Modulus, Poly, RnsBasis};
use lanner_wire::{DecodeError, Reader, Writer, packed_len};

use crate::BfvError;

/// The exact length of a polynomial over `basis`.
pub(crate) fn packed_poly_len(basis: &RnsBasis) -> usize {
    basis.moduli().iter().map(|q| packed_len(basis.degree(), q.bits())).sum()
}

/// Appends the limbs of `poly`.
pub(crate) fn write_poly<D: Domain>(poly: &Poly<D>, writer: &mut Writer) {
    for (limb, modulus) in poly.limbs().zip(poly.basis().moduli()) {
        writer.packed(limb, modulus.bits());
    }
}

/// Reads the limbs of a polynomial over `basis`.
///
/// # Errors
/// [`BfvError::Decode`] if bytes are missing, padding is set, or a value is not below its modulus.
pub(crate) fn read_poly<D: Domain>(basis: &RnsBasis, reader: &mut Reader<'_>) -> Result<Poly<D>, BfvError> {
    // Nothing is allocated before the bytes are known to be there.
    let (needed, left) = (packed_poly_len(basis), reader.remaining());
    if left < needed {
        return Err(DecodeError::Truncated { needed, left }.into());
    }
    let mut poly = Poly::zero(basis);
    for (limb, modulus) in poly.limbs_mut().zip(basis.moduli()) {
        let values = reader.packed(limb.len(), modulus.bits())?;
        check_reduced(&values, modulus)?;
        limb.copy_from_slice(&values);
    }
    Ok(poly)
}

fn check_reduced(values: &[u64], modulus: &Modulus) -> Result<(), DecodeError> {
    if values.iter().all(|value| *value < modulus.value()) {
        return Ok(());
    }
    Err(DecodeError::Invalid { what: "polynomial: a value is not below its modulus" })
}

/// Reads a seed.
///
/// # Errors
/// [`BfvError::Decode`] if bytes are missing.
pub(crate) fn decode_seed(reader: &mut Reader<'_>) -> Result<Seed, BfvError> {
    Ok(Seed::from_bytes(reader.array()?))
}
