//! Products of first and second halves by polynomials whose coefficients have more bits than a word, of which one coefficient is told.
//!
//! The sum of products of all ciphertexts of a client by factors that are uniform and secret is a check of what the client has encrypted
//! (`docs/protocols/hardened.md`). It is coefficient `N - 1` alone that the client gets, so that coefficient `j` of a ciphertext meets coefficient
//! `N - 1 - j` of a factor, each once and with the same sign.

use std::ops::Deref;
use std::sync::LazyLock;

use lanner_primitives::Prg;
use lanner_ring::{Accumulator, Coeff, Modulus, Poly};
use zeroize::{ZeroizeOnDrop, Zeroizing};

use crate::halves::C0;
use crate::{BfvError, CoefficientFactor, Parameters};

/// A polynomial whose coefficients are uniform in `[-2^(b-1), 2^(b-1))`; erased when dropped.
#[derive(ZeroizeOnDrop)]
pub struct WideFactor {
    /// The low [`HALF_BITS`] of the coefficients, moved by `2^(b-1)`.
    low: Vec<u64>,
    /// Their other bits.
    high: Vec<u64>,
    bits: u32,
}

/// The coefficients of a first half, the last one first.
pub struct C0Coefficients {
    reversed: Poly<Coeff>,
    /// Their sum modulo each limb.
    sums: Vec<u64>,
}

/// Coefficient `N - 1` of a sum of products, modulo each limb.
#[derive(ZeroizeOnDrop)]
pub struct LastCoefficient {
    pub(crate) residues: Vec<u64>,
}

impl WideFactor {
    /// The most bits of a coefficient.
    pub const MOST_BITS: u32 = 2 * HALF_BITS;

    /// The next uniform factor of a generator; constant time.
    ///
    /// # Errors
    /// [`BfvError::Mismatch`] for coefficients of no bits or of more than [`Self::MOST_BITS`].
    pub fn draw(parameters: &Parameters, bits: u32, random: &mut Prg) -> Result<Self, BfvError> {
        if !(1..=Self::MOST_BITS).contains(&bits) {
            return Err(BfvError::Mismatch { what: "bits of a wide factor's coefficients" });
        }
        let mut half = |bits: u32| {
            let mut words = vec![0; parameters.degree()];
            random.fill_bytes(bytemuck::cast_slice_mut(&mut words));
            for word in &mut words {
                *word = u64::from_le(*word) & ((1 << bits) - 1);
            }
            words
        };
        let low = half(bits.min(HALF_BITS));
        Ok(Self { low, high: half(bits.saturating_sub(HALF_BITS)), bits })
    }

    /// Ready to multiply second halves.
    #[must_use]
    pub fn prepared(&self, parameters: &Parameters) -> CoefficientFactor {
        let basis = parameters.basis(parameters.limbs());
        let mut poly = Poly::<Coeff>::zero(&basis);
        for (limb, q) in poly.limbs_mut().zip(parameters.moduli()) {
            self.residues_to(q, limb);
        }
        CoefficientFactor::of_poly(poly)
    }

    /// What each coefficient of a ciphertext is multiplied by, modulo `p`: the factor's coefficients, the last one first.
    #[must_use]
    pub fn reversed(&self, p: &Modulus) -> Zeroizing<Vec<u64>> {
        let mut residues = Zeroizing::new(vec![0; self.low.len()]);
        self.residues_to(p, &mut residues);
        residues.reverse();
        residues
    }

    /// The coefficients modulo `q`, onto zeros.
    fn residues_to(&self, q: &Modulus, zeros: &mut [u64]) {
        let degree = self.low.len();
        let [low, high] = [&self.low, &self.high].map(|words| below(q, words));
        q.add_dot_repeated(zeros, &[&low, &high, &ONES[..degree]], &weights(q, self.bits), degree);
    }
}

/// What the two halves of a moved coefficient count, and what the move does.
fn weights(q: &Modulus, bits: u32) -> [u64; 3] {
    [1, q.pow(2, u64::from(HALF_BITS)), q.neg(q.pow(2, u64::from(bits - 1)))]
}

/// Words of at most [`HALF_BITS`] modulo `q`: themselves where `q` has more bits.
fn below<'w>(q: &Modulus, words: &'w [u64]) -> MaybeReduced<'w> {
    if q.bits() > HALF_BITS {
        return MaybeReduced::Same(words);
    }
    let mut reduced = Zeroizing::new(vec![0; words.len()]);
    q.reduce_slice(&mut reduced, words);
    MaybeReduced::Reduced(reduced)
}

/// Secret words, and whether they had to be reduced.
enum MaybeReduced<'w> {
    Same(&'w [u64]),
    Reduced(Zeroizing<Vec<u64>>),
}

impl Deref for MaybeReduced<'_> {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        match self {
            Self::Same(words) => words,
            Self::Reduced(words) => words,
        }
    }
}

/// What a constant is a multiple of.
static ONES: LazyLock<Vec<u64>> = LazyLock::new(|| vec![1; MOST_COEFFICIENTS]);

impl C0 {
    /// Its coefficients, for products of which one coefficient is wanted.
    #[must_use]
    pub fn coefficients(&self) -> C0Coefficients {
        let mut reversed = self.c0.clone().into_coeff();
        reversed.limbs_mut().for_each(<[u64]>::reverse);
        let limbs = reversed.basis().moduli().iter().zip(reversed.limbs());
        let sums = limbs.map(|(q, limb)| sum(q, limb)).collect();
        C0Coefficients { reversed, sums }
    }
}

impl LastCoefficient {
    /// Of a sum of nothing.
    #[must_use]
    pub fn zero(parameters: &Parameters) -> Self {
        Self { residues: vec![0; parameters.limbs()] }
    }

    /// Adds those of the products of first halves by factors.
    ///
    /// # Errors
    /// [`BfvError::Mismatch`] unless all are of the same parameters, and the factors of as many bits; then nothing is added.
    pub fn add_products(
        &mut self,
        halves: &[C0Coefficients],
        factors: &[WideFactor],
    ) -> Result<(), BfvError> {
        let (Some(half), Some(factor)) = (halves.first(), factors.first()) else {
            return Ok(());
        };
        let (basis, bits) = (half.reversed.basis(), factor.bits);
        let fits = |(half, factor): (&C0Coefficients, &WideFactor)| {
            half.reversed.basis().same(basis) && factor.low.len() == basis.degree() && factor.bits == bits
        };
        let same = halves.len() == factors.len() && basis.len() == self.residues.len();
        if !same || !halves.iter().zip(factors).all(fits) {
            return Err(BfvError::Mismatch { what: "parameters" });
        }
        for (index, (q, total)) in basis.moduli().iter().zip(&mut self.residues).enumerate() {
            let [mut low, mut high] = [(); 2].map(|()| Accumulator::new(q, basis.degree()));
            let mut moved = 0;
            for (half, factor) in halves.iter().zip(factors) {
                low.mul_add(half.reversed.limb(index), &below(q, &factor.low));
                high.mul_add(half.reversed.limb(index), &below(q, &factor.high));
                moved = q.add(moved, half.sums[index]);
            }
            let sums = [low, high].map(|mut products| {
                let mut residues = Zeroizing::new(vec![0; basis.degree()]);
                products.reduce_into(&mut residues);
                sum(q, &residues)
            });
            for (sum, weight) in sums.into_iter().chain([moved]).zip(weights(q, bits)) {
                *total = q.add(*total, q.mul(sum, weight));
            }
        }
        Ok(())
    }
}

fn sum(q: &Modulus, residues: &[u64]) -> u64 {
    // As many at a time as a word has room for.
    let chunks = residues.chunks(1 << (u64::BITS - q.bits()).min(16));
    chunks.fold(0, |sum, chunk| q.add(sum, q.reduce(chunk.iter().sum())))
}

/// Bits of the lower half of a coefficient.
const HALF_BITS: u32 = 35;
/// The largest degree of any parameters.
const MOST_COEFFICIENTS: usize = 1 << 16;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use rand_core::{Rng, SeedableRng};

    use super::*;
    use crate::{CoefficientEncoder, ParameterSet};

    fn factor(parameters: &Parameters, raised: impl Fn(usize) -> u128, bits: u32) -> WideFactor {
        let part = |shift: u32| {
            (0..parameters.degree()).map(|i| (raised(i) >> shift) as u64 & ((1 << HALF_BITS) - 1)).collect()
        };
        WideFactor { low: part(0), high: part(HALF_BITS), bits }
    }

    /// Material on disk has the seed of factors that the client was checked with: other factors of a seed convict it.
    #[test]
    fn a_seed_gives_the_same_factors_in_every_build() {
        let parameters = ParameterSet::B.parameters().unwrap();
        let p = Modulus::new(1_032_193).unwrap();
        let factors = [1, 20, HALF_BITS, HALF_BITS + 1, WideFactor::MOST_BITS].map(|bits| {
            let factor = WideFactor::draw(&parameters, bits, &mut Prg::from_seed([9; 16])).unwrap();
            let residues = factor.reversed(&p);
            [residues[0], residues[1], residues[parameters.degree() - 1]]
        });
        let expected = [
            [0, 0, 1_032_192],
            [473_811, 727_414, 702_853],
            [356_410, 103_101, 928_088],
            [405_302, 54_209, 879_196],
            [198_018, 507_223, 115_068],
        ];
        assert_eq!(factors, expected);
    }

    #[test]
    fn the_last_coefficient_is_that_of_the_product() {
        let parameters = ParameterSet::B.parameters().unwrap();
        let mut rng = Prg::from_seed([3; 16]);
        let encoder = CoefficientEncoder::new(&parameters, 1_032_193).unwrap();
        for bits in [1, 20, HALF_BITS, HALF_BITS + 1, WideFactor::MOST_BITS] {
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
            let halves: Vec<_> = halves.iter().map(C0::coefficients).collect();
            last.add_products(&halves[..1], &factors[..1]).unwrap();
            last.add_products(&halves[1..], &factors[1..]).unwrap();
            assert!(last.add_products(&halves, &factors[1..]).is_err());
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
        wide.high.iter().for_each(|high| counts[(high >> (66 - HALF_BITS)) as usize] += 1);
        let statistic = lanner_testkit::uniform_chi_square(&counts);
        assert!(statistic < lanner_testkit::chi_square_limit(15), "{statistic}");
    }
}
