//! Coefficients modulo `q` as residues modulo a power of two, and back.

use lanner_ring::{Coeff, Modulus, Poly, Shoup, product};
use zeroize::Zeroizing;

use crate::{BfvError, Parameters};

/// Switches coefficients from `q`, of at most three limbs, to powers of two.
#[derive(Clone, Debug)]
pub(crate) struct PowerSwitch {
    /// For each limb `i`, `2^126 / (q_i q_(i+1) ...)` in whole and in units of `2^-50`.
    reciprocals: Vec<[u128; 2]>,
    /// For each limb `i`, `q_j^-1 mod q_i` of the limbs `j` before it.
    inverses: Vec<Vec<Shoup>>,
}

impl PowerSwitch {
    /// # Errors
    /// [`BfvError::Mismatch`] for more than three limbs.
    pub(crate) fn new(parameters: &Parameters) -> Result<Self, BfvError> {
        let moduli = parameters.moduli();
        if moduli.len() > LIMBS {
            return Err(BfvError::Mismatch { what: "parameters and powers of two" });
        }
        // Each from the one behind; precise to a few units of 2^-50.
        let mut reciprocals = Vec::with_capacity(moduli.len());
        let mut behind = [1 << 126, 0];
        for q in moduli.iter().rev() {
            let q = u128::from(q.value());
            let [whole, fraction] = behind;
            behind = [whole / q, (((whole % q) << 50) + fraction) / q];
            reciprocals.insert(0, behind);
        }
        let inverses = |(i, q): (usize, &Modulus)| {
            let inverse = |before: &Modulus| q.shoup(q.inverse(q.reduce(before.value())));
            moduli[..i].iter().map(inverse).collect()
        };
        let inverses = moduli.iter().enumerate().map(inverses).collect();
        Ok(Self { reciprocals, inverses })
    }

    /// `round(2^bits x / q) mod 2^bits` for coefficient `i` of `poly`, to within one: half a unit off, and less than a thousandth more.
    pub(crate) fn residue(&self, poly: &Poly<Coeff>, i: usize, bits: u32) -> u128 {
        let digits = self.digits(poly, i);
        let scaled = digits.iter().zip(&self.reciprocals).fold(0, |sum, (digit, [whole, fraction])| {
            let digit = u128::from(*digit);
            sum + digit * whole + ((digit * fraction) >> 50)
        });
        let shift = 126 - bits;
        ((scaled + (1 << (shift - 1))) >> shift) & mask(bits)
    }

    /// [`Self::residue`] of all coefficients, for at most [`NARROW`] bits.
    pub(crate) fn residues(&self, poly: &Poly<Coeff>, bits: u32) -> Zeroizing<Vec<u64>> {
        debug_assert!(bits <= NARROW);
        let moduli = poly.basis().moduli();
        let last = moduli.last().map_or(0, Modulus::bits);
        // With 2^shift / q_i ... below a word, each digit takes one product, and is cut by less than 2^(bits - 62) of a unit.
        let shift = 62 + last;
        let narrow = |[whole, _]: &[u128; 2]| (whole >> (126 - shift)) as u64;
        let factors: Vec<u64> = self.reciprocals.iter().map(narrow).collect();
        let (half, mask) = (1 << (shift - bits - 1), mask(bits) as u64);
        let round = |scaled: u128| ((scaled + half) >> (shift - bits)) as u64 & mask;
        Zeroizing::new(match (moduli, &factors[..]) {
            ([_], [factor]) => poly.limb(0).iter().map(|x| round(product(*x, *factor))).collect(),
            ([_, q], [low, high]) => {
                let mut lifted = Zeroizing::new(vec![0; poly.limb(0).len()]);
                q.reduce_slice(&mut lifted, poly.limb(0));
                let mut digits = Zeroizing::new(poly.limb(1).to_vec());
                q.sub_mul_slice(&mut digits, &lifted, self.inverses[1][0]);
                let pairs = poly.limb(0).iter().zip(digits.iter());
                pairs.map(|(d0, d1)| round(product(*d0, *low) + product(*d1, *high))).collect()
            }
            _ => (0..poly.limb(0).len()).map(|i| self.residue(poly, i, bits) as u64).collect(),
        })
    }

    /// The digits of coefficient `i`, which is `d_0 + q_0 (d_1 + q_1 d_2)`.
    pub(crate) fn digits(&self, poly: &Poly<Coeff>, i: usize) -> [u64; LIMBS] {
        let mut digits = [0; LIMBS];
        for (limb, (q, inverses)) in poly.basis().moduli().iter().zip(&self.inverses).enumerate() {
            let less =
                |rest, (digit, inverse): (&u64, &Shoup)| q.mul_shoup(q.sub(rest, q.reduce(*digit)), *inverse);
            digits[limb] = digits.iter().zip(inverses).fold(poly.limb(limb)[i], less);
        }
        digits
    }

    /// Coefficient `i` as the integer of least magnitude, modulo `2^128`.
    pub(crate) fn centred(&self, poly: &Poly<Coeff>, i: usize) -> u128 {
        let (mut value, mut product, mut beyond_half) = (0_u128, 1_u128, 0);
        for (q, digit) in poly.basis().moduli().iter().zip(self.digits(poly, i)) {
            value = value.wrapping_add(product.wrapping_mul(u128::from(digit)));
            product = product.wrapping_mul(u128::from(q.value()));
            // The digits of half the product, rounded down, are the halves of the limbs: the borrow of subtracting tells which is larger.
            beyond_half = (q.value() / 2).wrapping_sub(digit + beyond_half) >> 63;
        }
        value.wrapping_sub(product & u128::from(beyond_half).wrapping_neg())
    }
}

/// `2^bits - 1`.
pub(crate) const fn mask(bits: u32) -> u128 {
    (1 << bits) - 1
}

/// The most limbs.
pub(crate) const LIMBS: usize = 3;
/// The most bits of residues that are words with room.
pub(crate) const NARROW: u32 = 50;
