//! Products of two ciphertexts: `round(t/q c (x) c')`, by residues ([HPS19](https://eprint.iacr.org/2018/117)).
//!
//! The coefficients `d` of `c (x) c' = (c0 c0', c0 c1' + c1 c0', c1 c1')` are integers of magnitude `N q^2 / 2` at most, computed modulo `q`
//! and modulo the product `p` of auxiliary primes. With `r` the centred remainder of `t d` modulo `q`, the quotient
//! `round(t d / q) = (t d - r) / q` is computed modulo `p`. Its magnitude is `t N q / 2` at most, less than a quarter of `p`, so that it is
//! known as an integer, and is taken back modulo `q`.
//!
//! Each conversion is a sum of products of residues by constants, into which all factors go. It is exact but for centred integers within
//! some units of `2^-49 q` of `q/2` ([`Conversion::wraps`]), for which `c` may have another representative, by `q`, or the quotient be one
//! more: neither changes more than the last bit of noise. Back from `p` it is always exact.

use lanner_primitives::parallel;
use lanner_ring::{Buffer, Coeff, Conversion, Eval, Modulus, Poly, RnsBasis, Shoup};

use crate::combination::{BLOCK, blocks};
use crate::key_switching::{Digits, Switched};
use crate::keys::SwitchingKey;
use crate::{BfvError, Ciphertext, Parameters};

/// The constants of products modulo `t` of ciphertexts of some number of limbs.
#[derive(Debug)]
pub(crate) struct Scaling {
    /// The primes of `q`.
    limbs: RnsBasis,
    /// Those of `p`.
    auxiliary: RnsBasis,
    /// From `q` to `p`, with its weights for each prime of `p`.
    extension: Conversion,
    extended: Vec<Vec<u64>>,
    /// For each limb `t (q / q_i)^-1 mod q_i`: digits of `t d`.
    scaled: Vec<Shoup>,
    /// For each prime of `p`, what to combine those digits, how often `q` is subtracted from their sum, and `d` with, for the quotient's digit.
    quotients: Vec<Vec<u64>>,
    /// From `p` to `q`, with its weights for each limb.
    reduction: Conversion,
    reduced: Vec<Vec<u64>>,
}

/// A ciphertext's halves modulo `q` and modulo `p`.
pub(crate) struct Operand<'a> {
    limbs: [&'a Poly<Eval>; 2],
    auxiliary: [Poly<Eval>; 2],
}

impl Scaling {
    pub(crate) fn new(parameters: &Parameters, t: u64, limbs: usize) -> Result<Self, BfvError> {
        // Some room beside p > 2 t N q, for integers that exceed q/2 by a little.
        let bits = (t as f64).log2() + (parameters.degree() as f64).log2() + 1.01;
        let auxiliary = parameters.auxiliary(limbs, bits)?;
        let limbs = parameters.basis(limbs);
        let (extension, reduction) = (Conversion::new(limbs.moduli()), Conversion::new(auxiliary.moduli()));
        let by_t = |(q, inverse): (&Modulus, &Shoup)| q.shoup(q.mul(inverse.w, t));
        let quotient = |(p, digit): (&Modulus, &Shoup)| {
            // (t d - r) / q with r = sum_i y_i q / q_i - v q.
            let inverses: Vec<u64> = limbs.moduli().iter().map(|q| p.inverse(p.reduce(q.value()))).collect();
            let whole = inverses.iter().fold(1, |product, inverse| p.mul(product, *inverse));
            let terms = inverses.iter().map(|inverse| p.neg(*inverse));
            terms.chain([1, p.mul(whole, t)]).map(|weight| p.mul_shoup(weight, *digit)).collect()
        };
        Ok(Self {
            extended: auxiliary.moduli().iter().map(|p| extension.weights(p)).collect(),
            scaled: limbs.moduli().iter().zip(extension.inverses()).map(by_t).collect(),
            quotients: auxiliary.moduli().iter().zip(reduction.inverses()).map(quotient).collect(),
            reduced: limbs.moduli().iter().map(|q| reduction.weights(q)).collect(),
            limbs,
            auxiliary,
            extension,
            reduction,
        })
    }

    /// A ciphertext's halves, ready to multiply.
    pub(crate) fn operand<'a>(&self, ciphertext: &'a Ciphertext) -> Operand<'a> {
        let limbs = [&ciphertext.c0, &ciphertext.c1];
        let mut auxiliary = [Poly::zero(&self.auxiliary), Poly::zero(&self.auxiliary)];
        parallel::for_each(auxiliary.iter_mut().zip(limbs), |(extended, half)| *extended = self.extend(half));
        Operand { limbs, auxiliary }
    }

    /// The coefficients, centred, modulo `p`.
    fn extend(&self, half: &Poly<Eval>) -> Poly<Eval> {
        let digits = interpolate(&self.limbs, Some(self.extension.inverses()), |j, out| {
            out.copy_from_slice(half.limb(j));
        });
        let mut extended = Poly::<Coeff>::zero(&self.auxiliary);
        let mut wraps = Buffer::zeroed(BLOCK);
        for block in blocks(self.limbs.degree()) {
            let mut terms: Vec<&[u64]> = digits.limbs().map(|limb| &limb[block.clone()]).collect();
            let wraps = &mut wraps[..block.len()];
            self.extension.wraps(wraps, &terms);
            terms.push(wraps);
            for ((p, weights), out) in
                self.auxiliary.moduli().iter().zip(&self.extended).zip(extended.limbs_mut())
            {
                p.combine(&mut out[block.clone()], &terms, weights);
            }
        }
        extended.into_eval()
    }

    /// `round(t/q a (x) b)`.
    pub(crate) fn product(&self, a: &Operand<'_>, b: &Operand<'_>) -> [Poly<Coeff>; 3] {
        let mut parts = [0, 1, 2].map(|_| Poly::zero(&self.limbs));
        parallel::for_each(parts.iter_mut().enumerate(), |(part, out)| {
            let limbs = tensor(part, &self.limbs, Some(&self.scaled), [a.limbs, b.limbs]);
            let halves = [a, b].map(|operand| operand.auxiliary.each_ref());
            *out = self.scale(&limbs, &tensor(part, &self.auxiliary, None, halves));
        });
        parts
    }

    /// `round(t d / q)` modulo `q`, of the digits of `t d` modulo `q`, and `d` modulo `p`.
    fn scale(&self, limbs: &Poly<Coeff>, auxiliary: &Poly<Coeff>) -> Poly<Coeff> {
        let mut out = Poly::zero(&self.limbs);
        let mut wraps = Buffer::zeroed(BLOCK);
        let mut digits: Vec<Buffer> = self.auxiliary.moduli().iter().map(|_| Buffer::zeroed(BLOCK)).collect();
        for block in blocks(self.limbs.degree()) {
            let length = block.len();
            let mut terms: Vec<&[u64]> = limbs.limbs().map(|limb| &limb[block.clone()]).collect();
            self.extension.wraps(&mut wraps[..length], &terms);
            terms.push(&wraps[..length]);
            let primes = self.auxiliary.moduli().iter().zip(&self.quotients);
            for (((p, weights), limb), digit) in primes.zip(auxiliary.limbs()).zip(&mut digits) {
                terms.push(&limb[block.clone()]);
                p.combine(&mut digit[..length], &terms, weights);
                terms.pop();
            }
            let mut terms: Vec<&[u64]> = digits.iter().map(|digit| &digit[..length]).collect();
            self.reduction.wraps(&mut wraps[..length], &terms);
            terms.push(&wraps[..length]);
            for ((q, weights), out) in self.limbs.moduli().iter().zip(&self.reduced).zip(out.limbs_mut()) {
                q.combine(&mut out[block.clone()], &terms, weights);
            }
        }
        out
    }
}

/// The coefficients of a polynomial, each limb multiplied by its factor, if there are any. Limb after limb, which stays in the cache.
fn interpolate(
    basis: &RnsBasis,
    factors: Option<&[Shoup]>,
    evaluate: impl Fn(usize, &mut [u64]),
) -> Poly<Coeff> {
    let mut poly = Poly::zero(basis);
    for (j, (ntt, out)) in basis.ntts().iter().zip(poly.limbs_mut()).enumerate() {
        evaluate(j, out);
        ntt.inverse(out);
        if let Some(factors) = factors {
            ntt.modulus().mul_scalar_slice(out, factors[j]);
        }
    }
    poly
}

/// Part 0, 1 or 2 of `a (x) b`, what goes with that power of the secret, each limb multiplied by its factor.
fn tensor(
    part: usize,
    basis: &RnsBasis,
    factors: Option<&[Shoup]>,
    [a, b]: [[&Poly<Eval>; 2]; 2],
) -> Poly<Coeff> {
    let terms: &[(usize, usize)] = [&[(0, 0)][..], &[(0, 1), (1, 0)], &[(1, 1)]][part];
    interpolate(basis, factors, |j, out| {
        let left: Vec<&[u64]> = terms.iter().map(|(i, _)| a[*i].limb(j)).collect();
        let right: Vec<&[u64]> = terms.iter().map(|(_, i)| b[*i].limb(j)).collect();
        basis.moduli()[j].dot(out, &left, &right);
    })
}

/// `(d0, d1)` and what the key makes of `d2`, which goes with the square of the secret.
pub(crate) fn relinearize(
    basis: &RnsBasis,
    [d0, d1, d2]: [Poly<Coeff>; 3],
    key: &SwitchingKey,
) -> [Poly<Eval>; 2] {
    let values = d2.clone().into_eval();
    let digits = Digits::of(basis, &values, &d2);
    let [d0, d1] = [d0, d1].map(Poly::into_eval);
    Switched::new(&digits, key).divided([Some(&d0), Some(&d1)])
}

#[cfg(test)]
mod tests;
