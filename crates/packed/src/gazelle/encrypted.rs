//! Packed slots under BFV, with the division by the special modulus once for each sum ("double hoisting", [BMTPH20],
//! <https://eprint.iacr.org/2020/1203>).

use lanner_bfv::{
    Ciphertext, EvaluationKeys, Evaluator, ExtendedCiphertext, ExtendedCombinations, Multiplier, Parameters,
    Product,
};
use lanner_primitives::parallel;
use lanner_ring::GaloisElement;
use lanner_step::{ProtocolError, Result, Rotation, galois_element};

use super::packing::Packing;
use super::program::Term;
use super::scheme::PackedScheme;

/// BFV with a client's evaluation keys.
pub struct EncryptedSlots<'k> {
    parameters: &'k Parameters,
    evaluator: Evaluator,
    keys: &'k EvaluationKeys,
}

impl<'k> EncryptedSlots<'k> {
    /// The scheme over a client's keys.
    #[must_use]
    pub fn new(parameters: &'k Parameters, keys: &'k EvaluationKeys) -> Self {
        Self { parameters, evaluator: Evaluator::new(parameters), keys }
    }

    fn element(&self, rotation: Rotation) -> Result<GaloisElement> {
        galois_element(rotation, self.parameters.degree())
    }
}

/// The products of rotated ciphertexts, given those of each.
pub(super) fn products<'m>(terms: &[&[Term]], multipliers: &'m [Multiplier]) -> Vec<Product<'m>> {
    let terms = terms.iter().enumerate().flat_map(|(k, terms)| terms.iter().map(move |term| (k, term)));
    let product = |(k, term): (usize, &Term)| Product {
        operand: k,
        row: term.sum,
        factor: (&multipliers[term.multiplier]).into(),
    };
    terms.map(product).collect()
}

/// Bytes of the rotated inputs and the partial sums that a server has in memory while it evaluates a layer.
///
/// # Errors
/// [`ProtocolError::Bfv`] if the parameters have no special modulus.
pub fn working_bytes(packing: &Packing, parameters: &Parameters) -> Result<u64> {
    let program = packing.program();
    let rotated = program.inputs.iter().map(Vec::len).max().unwrap_or(0).min(AT_A_TIME);
    Ok(((program.sums + rotated) * ExtendedCiphertext::kept_bytes(parameters)?) as u64)
}

impl PackedScheme for EncryptedSlots<'_> {
    type Ciphertext = Ciphertext;
    type Unreduced = ExtendedCiphertext;
    type Multiplier = Multiplier;
    type Sums = ExtendedCombinations;
    type Error = ProtocolError;

    fn rotate_hoisted(
        &self,
        ciphertext: &Ciphertext,
        rotations: &[Rotation],
        mut visit: impl FnMut(&[ExtendedCiphertext]) -> Result<()>,
    ) -> Result<()> {
        let hoisted = self.evaluator.hoist(ciphertext)?;
        for rotations in rotations.chunks(AT_A_TIME) {
            let rotate = |rotation: &Rotation| -> Result<_> {
                Ok(hoisted.apply_extended(self.element(*rotation)?, self.keys)?)
            };
            let rotated = parallel::map(rotations, rotate);
            visit(&rotated.into_iter().collect::<Result<Vec<_>, _>>()?)?;
        }
        Ok(())
    }

    fn empty_sums(&self, count: usize) -> Result<ExtendedCombinations> {
        Ok(ExtendedCombinations::new(self.parameters, count)?)
    }

    fn multiply_add(
        &self,
        sums: &mut ExtendedCombinations,
        rotated: &[ExtendedCiphertext],
        terms: &[&[Term]],
        multipliers: &[Multiplier],
    ) -> Result<()> {
        Ok(sums.add_products(rotated, &products(terms, multipliers))?)
    }

    fn open(&self, sums: ExtendedCombinations) -> Vec<ExtendedCiphertext> {
        sums.into_sums()
    }

    fn rotate_add(
        &self,
        sum: &mut ExtendedCiphertext,
        ciphertext: &Ciphertext,
        rotation: Rotation,
    ) -> Result<()> {
        let hoisted = self.evaluator.hoist(ciphertext)?;
        Ok(sum.add_assign(&hoisted.apply_extended(self.element(rotation)?, self.keys)?)?)
    }

    fn reduce(&self, sum: ExtendedCiphertext) -> Ciphertext {
        sum.reduce(self.parameters)
    }

    fn rotate(&self, ciphertext: &Ciphertext, rotation: Rotation) -> Result<Ciphertext> {
        Ok(self.evaluator.apply(ciphertext, self.element(rotation)?, self.keys)?)
    }

    fn add(&self, sum: &mut Ciphertext, other: &Ciphertext) -> Result<()> {
        Ok(self.evaluator.add_assign(sum, other)?)
    }
}

/// Rotated ciphertexts that are in memory at the same time: enough that sums pass through it seldom.
const AT_A_TIME: usize = 32;
