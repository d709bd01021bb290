//! Sums of products of rotations, for several plaintext moduli at a time.

use lanner_primitives::parallel;
use lanner_ring::{Buffer, GaloisElement, Poly, RnsBasis};

use crate::combination::{Terms, add_limb};
use crate::hoisting::{ExtendedCiphertext, Hoisted, Rotated};
use crate::{BfvError, Ciphertext, EvaluationKeys, Evaluator, Product};

/// What is summed modulo one plaintext modulus.
pub struct HoistedTerms<'a> {
    /// The ciphertexts.
    pub ciphertexts: &'a [Ciphertext],
    /// Products of their rotations: operand `k` is rotation `k`.
    pub products: &'a [Product<'a>],
}

/// A ciphertext's number, and the automorphism that is applied to it.
pub type HoistedRotation = (usize, GaloisElement);

impl Evaluator {
    /// Sums of products of rotated ciphertexts, divided by the special modulus once for each: `rows` of them for each of `terms`.
    ///
    /// It works modulus by modulus of the ciphertexts. Of a rotation no more than that is in memory; and a key, which is the same for every plaintext
    /// modulus and every ciphertext, is read once for all of them.
    ///
    /// # Errors
    /// As [`Self::hoist`], [`Hoisted::apply_extended`] and [`ExtendedCombinations::add_products`](crate::ExtendedCombinations::add_products);
    /// [`BfvError::Mismatch`] unless all ciphertexts have as many limbs; [`BfvError::Length`] if there is none, or fewer than rotations are of.
    pub fn sum_hoisted(
        &self,
        terms: &[HoistedTerms<'_>],
        rotations: &[HoistedRotation],
        rows: usize,
        keys: &EvaluationKeys,
    ) -> Result<Vec<Vec<Ciphertext>>, BfvError> {
        let is_rotated =
            |number| rotations.iter().any(|(of, element)| *of == number && element.exponent() != 1);
        let hoist = |(number, ciphertext)| {
            let hoisted = Hoisted::new(&self.parameters, ciphertext)?;
            if is_rotated(number) {
                hoisted.decompose();
            }
            Ok(hoisted)
        };
        let all = terms.iter().flat_map(|terms| terms.ciphertexts.iter().enumerate());
        let hoisted = parallel::map(all, hoist).into_iter().collect::<Result<Vec<_>, BfvError>>()?;
        let basis = hoisted.first().ok_or(BfvError::Length { expected: 1, got: 0 })?.basis();
        if hoisted.iter().any(|hoisted| !hoisted.basis().same(basis)) {
            return Err(BfvError::Mismatch { what: "the limbs of ciphertexts that are summed" });
        }
        let (mut sums, mut others) = (Vec::with_capacity(terms.len()), hoisted.as_slice());
        for HoistedTerms { ciphertexts, products } in terms {
            let (own, behind) = others.split_at(ciphertexts.len());
            others = behind;
            let rotated = rotations.iter().map(|(ciphertext, element)| {
                let (expected, got) = (ciphertext + 1, own.len());
                own.get(*ciphertext).ok_or(BfvError::Length { expected, got })?.rotated(*element, keys)
            });
            sums.push(HoistedSums::new(rotated.collect::<Result<_, _>>()?, products, rows, basis)?);
        }
        for limb in 0..basis.len() {
            // The rotations by one key follow each other.
            let mut queues: Vec<_> =
                sums.iter_mut().map(|sums| sums.rotated.iter().zip(&mut sums.values)).collect();
            let in_turn = (0..rotations.len() * queues.len()).map_while(|i| {
                let count = queues.len();
                queues[i % count].next()
            });
            parallel::for_each(in_turn.collect::<Vec<_>>(), |(rotated, [c0, c1])| {
                rotated.limb(limb, &mut Vec::new(), [c0, c1]);
            });
            for sums in &mut sums {
                sums.add(limb, basis);
            }
        }
        let all: Vec<_> = sums.into_iter().flat_map(|sums| sums.rows).collect();
        let mut reduced = parallel::map(all, |row| row.reduce(&self.parameters)).into_iter();
        Ok(terms.iter().map(|_| reduced.by_ref().take(rows).collect()).collect())
    }
}

/// Sums in work.
struct HoistedSums<'a> {
    rotated: Vec<Rotated<'a>>,
    /// The halves of each rotation modulo one modulus.
    values: Vec<[Buffer; 2]>,
    terms: Vec<Terms<'a>>,
    rows: Vec<ExtendedCiphertext>,
}

impl<'a> HoistedSums<'a> {
    fn new(
        rotated: Vec<Rotated<'a>>,
        products: &'a [Product<'a>],
        rows: usize,
        basis: &RnsBasis,
    ) -> Result<Self, BfvError> {
        let terms = Terms::by_row(rotated.len(), products, rows, basis)?;
        let row = |terms: &Terms<'_>| ExtendedCiphertext {
            c0: Poly::zero(basis),
            c1: Poly::zero(basis),
            noise: terms.noise(|k| rotated[k].noise()),
        };
        let rows = terms.iter().map(row).collect();
        let values = rotated.iter().map(|_| [0, 1].map(|_| Buffer::zeroed(basis.degree()))).collect();
        Ok(Self { rotated, values, terms, rows })
    }

    /// Adds the products modulo one modulus.
    fn add(&mut self, limb: usize, basis: &RnsBasis) {
        let rows = self.rows.iter_mut().map(|row| row.limb_mut(limb)).collect();
        let operands: Vec<_> =
            self.values.iter().map(|values| values.each_ref().map(|half| &half[..])).collect();
        add_limb(basis, limb, rows, &operands, &self.terms);
    }
}
