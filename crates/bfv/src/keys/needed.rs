//! Which keys a server needs: public, and agreed upon before they are made.

use std::collections::BTreeMap;

use lanner_ring::GaloisElement;

use crate::{BfvError, Parameters};

/// A key that a server needs: for an automorphism, or for products of ciphertexts, of at most some number of limbs.
///
/// A key for `l` limbs has `l` digits of `l + 1` limbs each. Whatever computes at few limbs only, needs a small one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeededKey {
    purpose: Purpose,
    /// All if there is none.
    limbs: Option<usize>,
}

/// What a key is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Purpose {
    Automorphism(GaloisElement),
    Product,
}

impl NeededKey {
    /// The key of an automorphism, for ciphertexts of all limbs.
    #[must_use]
    pub const fn automorphism(element: GaloisElement) -> Self {
        Self { purpose: Purpose::Automorphism(element), limbs: None }
    }

    /// The key of products of two ciphertexts (relinearization), with all limbs when they are relinearized.
    #[must_use]
    pub const fn product() -> Self {
        Self { purpose: Purpose::Product, limbs: None }
    }

    /// The same for ciphertexts of at most so many limbs.
    #[must_use]
    pub const fn at(self, limbs: usize) -> Self {
        Self { limbs: Some(limbs), ..self }
    }

    /// All keys that are needed, and their limbs.
    ///
    /// # Errors
    /// [`BfvError::NoSpecialModulus`] if there is a key and no such modulus; [`BfvError::Mismatch`] for an element of another degree;
    /// [`BfvError::Limbs`] for more limbs than the parameters have, or none.
    pub(crate) fn all<K: Copy + Into<Self>>(
        parameters: &Parameters,
        needed: &[K],
    ) -> Result<BTreeMap<Purpose, usize>, BfvError> {
        let mut all = BTreeMap::new();
        for Self { purpose, limbs } in needed.iter().map(|key| (*key).into()) {
            let element = purpose.automorphism(parameters)?;
            if purpose != Purpose::Product && element.exponent() == 1 {
                continue;
            }
            let limbs = limbs.unwrap_or(parameters.limbs());
            parameters.key_switching(limbs)?;
            let most = all.entry(purpose).or_insert(limbs);
            *most = limbs.max(*most);
        }
        Ok(all)
    }
}

impl From<GaloisElement> for NeededKey {
    fn from(element: GaloisElement) -> Self {
        Self::automorphism(element)
    }
}

impl Purpose {
    /// The automorphism that goes with the key: the identity for products.
    ///
    /// # Errors
    /// [`BfvError::Mismatch`] if it is of another degree.
    pub(crate) fn automorphism(self, parameters: &Parameters) -> Result<GaloisElement, BfvError> {
        match self {
            Self::Automorphism(element) if element.degree() == parameters.degree() => Ok(element),
            Self::Automorphism(_) => Err(BfvError::Mismatch { what: "ring degrees" }),
            Self::Product => Ok(GaloisElement::new(1, parameters.degree())?),
        }
    }
}
