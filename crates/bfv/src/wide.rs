//! Products of first and second halves by polynomials whose coefficients have more bits than a word, of which one coefficient is told.
//!
//! The sum of products of all ciphertexts of a client by factors that are uniform and secret is a check of what the client has encrypted
//! (`docs/protocols/hardened.md`). It is coefficient `N - 1` alone that the client gets, so that coefficient `j` of a ciphertext meets coefficient
//! `N - 1 - j` of a factor, each once and with the same sign.

use lanner_primitives::Prg;
use lanner_ring::{Coeff, Modulus, Poly};
use zeroize::{ZeroizeOnDrop, Zeroizing};

use crate::halves::C0;
use crate::{BfvError, CoefficientFactor, Parameters};

/// A polynomial whose coefficients are uniform in `[-2^(b-1), 2^(b-1))`; erased when dropped.
#[derive(ZeroizeOnDrop)]
pub struct WideFactor {
    /// The coefficients, moved by `2^(b-1)`.
    raised: Vec<u128>,
    bits: u32,
}

/// The coefficients of a first half.
pub struct C0Coefficients(Poly<Coeff>);

/// Coefficient `N - 1` of a sum of products, modulo each limb.
#[derive(ZeroizeOnDrop)]
pub struct LastCoefficient {
    pub(crate) residues: Vec<u64>,
}

impl WideFactor {
    /// The most bits of a coefficient.
    pub const MOST_BITS: u32 = 95;

    /// The next uniform factor of a generator; constant time.
    ///
    /// # Errors
    /// [`BfvError::Mismatch`] for coefficients of no bits or of more than [`Self::MOST_BITS`].
    pub fn draw(parameters: &Parameters, bits: u32, random: &mut Prg) -> Result<Self, BfvError> {
        if !(1..=Self::MOST_BITS).contains(&bits) {
            return Err(BfvError::Mismatch { what: "bits of a wide factor's coefficients" });
        }
        let mut bytes = Zeroizing::new(vec![0; parameters.degree() * WORD]);
        random.fill_bytes(&mut bytes);
        let (words, _) = bytes.as_chunks::<WORD>();
        let mask = (1 << bits) - 1;
        Ok(Self { raised: words.iter().map(|word| u128::from_le_bytes(*word) & mask).collect(), bits })
    }

    /// Ready to multiply second halves.
    #[must_use]
    pub fn prepared(&self, parameters: &Parameters) -> CoefficientFactor {
        let basis = parameters.basis(parameters.limbs());
        let mut poly = Poly::<Coeff>::zero(&basis);
        for (limb, q) in poly.limbs_mut().zip(parameters.moduli()) {
            self.residues_to(q, limb, self.raised.iter());
        }
        CoefficientFactor::of_poly(poly)
    }

    /// What each coefficient of a ciphertext is multiplied by, modulo `p`: the factor's coefficients, the last one first.
    #[must_use]
    pub fn reversed(&self, p: &Modulus) -> Zeroizing<Vec<u64>> {
        let mut residues = Zeroizing::new(vec![0; self.raised.len()]);
        self.residues_to(p, &mut residues, self.raised.iter().rev());
        residues
    }

    fn residues_to<'a>(&self, q: &Modulus, out: &mut [u64], raised: impl Iterator<Item = &'a u128>) {
        let offset = q.reduce_u128(1 << (self.bits - 1));
        for (out, raised) in out.iter_mut().zip(raised) {
            *out = q.sub(q.reduce_u128(*raised), offset);
        }
    }
}

impl C0 {
    /// Its coefficients, for products of which one coefficient is wanted.
    #[must_use]
    pub fn coefficients(&self) -> C0Coefficients {
        C0Coefficients(self.c0.clone().into_coeff())
    }
}

impl LastCoefficient {
    /// Of a sum of nothing.
    #[must_use]
    pub fn zero(parameters: &Parameters) -> Self {
        Self { residues: vec![0; parameters.limbs()] }
    }

    /// Adds that of the product of a first half by a factor.
    ///
    /// # Errors
    /// [`BfvError::Mismatch`] unless all are of the same parameters.
    pub fn add_product(&mut self, half: &C0Coefficients, factor: &WideFactor) -> Result<(), BfvError> {
        let (C0Coefficients(half), basis) = (half, half.0.basis());
        if basis.len() != self.residues.len() || basis.degree() != factor.raised.len() {
            return Err(BfvError::Mismatch { what: "parameters" });
        }
        for ((q, limb), sum) in basis.moduli().iter().zip(half.limbs()).zip(&mut self.residues) {
            // Halves of 48 bits by coefficients below 2^50, at most 2^16 times: below 2^114.
            let (mut low, mut high, mut all) = (0_u128, 0_u128, 0_u128);
            for (raised, c) in factor.raised.iter().rev().zip(limb) {
                let c = u128::from(*c);
                low += (raised & HALF) * c;
                high += (raised >> HALF_BITS) * c;
                all += c;
            }
            let shifted = q.mul(q.reduce_u128(high), q.reduce_u128(1 << HALF_BITS));
            let moved = q.mul(q.reduce_u128(all), q.reduce_u128(1 << (factor.bits - 1)));
            *sum = q.add(*sum, q.sub(q.add(q.reduce_u128(low), shifted), moved));
        }
        Ok(())
    }
}

/// Bytes of a draw.
const WORD: usize = size_of::<u128>();
/// Bits of the lower half of a coefficient.
const HALF_BITS: u32 = 48;
const HALF: u128 = (1 << HALF_BITS) - 1;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use rand_core::{Rng, SeedableRng};

    use super::*;
    use crate::{CoefficientEncoder, ParameterSet};

    fn factor(parameters: &Parameters, raised: impl Fn(usize) -> u128, bits: u32) -> WideFactor {
        WideFactor { raised: (0..parameters.degree()).map(raised).collect(), bits }
    }

    #[test]
    fn the_last_coefficient_is_that_of_the_product() {
        let parameters = ParameterSet::B.parameters().unwrap();
        let mut rng = Prg::from_seed([3; 16]);
        let encoder = CoefficientEncoder::new(&parameters, 1_032_193).unwrap();
        for bits in [1, 20, 48, 49, 70, WideFactor::MOST_BITS] {
            let edges = [0, 1, (1 << bits) - 1, 1 << (bits - 1)];
            let factors = [
                WideFactor::draw(&parameters, bits, &mut rng).unwrap(),
                factor(&parameters, |i| edges[i % 4], bits),
                factor(&parameters, |_| (1 << bits) - 1, bits),
            ];
            let halves: Vec<C0> = factors
                .iter()
                .map(|_| {
                    let message: Vec<u64> =
                        (0..parameters.degree()).map(|_| rng.next_u64() % 1_032_193).collect();
                    C0::of(&encoder.encode(&message).unwrap())
                })
                .collect();
            let prepared: Vec<_> = factors.iter().map(|factor| factor.prepared(&parameters)).collect();
            let product = C0::inner_product(&halves, &prepared, 1.0).unwrap().c0.into_coeff();
            let mut last = LastCoefficient::zero(&parameters);
            for (half, factor) in halves.iter().zip(&factors) {
                last.add_product(&half.coefficients(), factor).unwrap();
            }
            for (limb, residue) in product.limbs().zip(&last.residues) {
                assert_eq!(limb[parameters.degree() - 1], *residue, "{bits} bits");
            }
        }
        for bits in [0, WideFactor::MOST_BITS + 1] {
            assert!(WideFactor::draw(&parameters, bits, &mut rng).is_err());
        }
    }

    #[test]
    fn what_a_coefficient_is_multiplied_by_is_centred_and_in_reverse() {
        let parameters = ParameterSet::B.parameters().unwrap();
        let n = parameters.degree();
        let p = Modulus::new(1_032_193).unwrap();
        let wide = factor(&parameters, |i| if i == n - 1 { 0 } else { (1 << 69) + i as u128 }, 70);
        let reversed = wide.reversed(&p);
        // -2^69 modulo p, and then n - 2, n - 3, ...
        assert_eq!(reversed[0], p.neg(p.pow(2, 69)));
        assert!((1..n).all(|j| reversed[j] == (n - 1 - j) as u64));
    }

    /// All draws are in the range, and each of its sixteen parts has a sixteenth of them.
    #[test]
    fn draws_are_uniform_in_the_range() {
        let parameters = ParameterSet::B.parameters().unwrap();
        let mut rng = Prg::from_seed([4; 16]);
        let wide = WideFactor::draw(&parameters, 70, &mut rng).unwrap();
        let mut counts = [0_u64; 16];
        wide.raised.iter().for_each(|raised| counts[(raised >> 66) as usize] += 1);
        let statistic = lanner_testkit::uniform_chi_square(&counts);
        assert!(statistic < lanner_testkit::chi_square_limit(15), "{statistic}");
    }
}
