//! Key switching ([HK19](https://eprint.iacr.org/2019/688)): a polynomial cut into digits, one for each limb, and their inner products
//! with a key.

use std::borrow::Cow;

use lanner_ring::{Buffer, Coeff, Ending, Eval, Modulus, Poly, RnsBasis, Shoup};

use crate::keys::SwitchingKey;

/// The digits of a polynomial: digit `i` is the centred residue modulo limb `i`, lifted to the limbs and the special modulus.
pub(crate) struct Digits<'a> {
    basis: &'a RnsBasis,
    /// Modulo limb `i` itself, digit `i` is the polynomial.
    values: &'a Poly<Eval>,
    source: Source<'a>,
}

enum Source<'a> {
    /// Digit `i` modulo modulus `j`, and nothing for `j = i`.
    Lifted(Vec<Vec<Buffer>>),
    /// The coefficients, to lift where and when they are needed.
    Residues(Cow<'a, Poly<Coeff>>),
}

impl<'a> Digits<'a> {
    /// Digits that are used many times: all of them are lifted now.
    pub(crate) fn lifted(basis: &'a RnsBasis, values: &'a Poly<Eval>) -> Self {
        let others = |(i, limb): (usize, &[u64])| {
            let mut residues = Buffer::from(limb);
            basis.ntts()[i].inverse(&mut residues);
            let lifted = |j| {
                if i == j {
                    return Buffer::default();
                }
                let mut lifted = Buffer::zeroed(basis.degree());
                lift(basis, &residues, i, j, &mut lifted);
                lifted
            };
            (0..basis.len()).map(lifted).collect()
        };
        Self { basis, values, source: Source::Lifted(values.limbs().enumerate().map(others).collect()) }
    }

    /// Digits that are used once: those modulo one modulus after another are in work, and stay in the cache.
    pub(crate) fn once(basis: &'a RnsBasis, values: &'a Poly<Eval>) -> Self {
        Self { basis, values, source: Source::Residues(Cow::Owned(values.clone().into_coeff())) }
    }

    /// The same, given the polynomial in both domains.
    pub(crate) fn of(basis: &'a RnsBasis, values: &'a Poly<Eval>, coefficients: &'a Poly<Coeff>) -> Self {
        Self { basis, values, source: Source::Residues(Cow::Borrowed(coefficients)) }
    }

    /// Modulus `j` of every digit, with room to lift them to.
    fn limbs<'d>(&'d self, j: usize, room: &'d mut Vec<Buffer>) -> Vec<&'d [u64]> {
        match &self.source {
            Source::Lifted(digits) => {
                let digit = |(i, digit): (usize, &'d Vec<Buffer>)| {
                    if i == j { self.values.limb(j) } else { &*digit[j] }
                };
                digits.iter().enumerate().map(digit).collect()
            }
            Source::Residues(coefficients) => {
                room.resize_with(coefficients.basis().len(), || Buffer::zeroed(self.basis.degree()));
                let digits = coefficients.limbs().zip(room).enumerate();
                let digit = |(i, (residues, lifted)): (usize, (&[u64], &'d mut Buffer))| {
                    if i == j {
                        return self.values.limb(j);
                    }
                    lift(self.basis, residues, i, j, lifted);
                    &**lifted
                };
                digits.map(digit).collect()
            }
        }
    }
}

/// The values of a digit modulo modulus `to`, given its residues modulo limb `from`.
fn lift(basis: &RnsBasis, residues: &[u64], from: usize, to: usize, values: &mut [u64]) {
    basis.moduli()[to].lift_centered_slice(values, residues, &basis.moduli()[from]);
    basis.ntts()[to].forward(values);
}

/// Which half of the pairs of a switching key.
#[derive(Clone, Copy)]
enum Half {
    B,
    A,
}

impl Half {
    const BOTH: [Self; 2] = [Self::B, Self::A];
}

/// The inner products of a ciphertext's digits with a key's: `P c1 u` encrypted under the key's target secret, if `c1` is what the digits
/// are of.
///
/// A key serves ciphertexts of as many limbs as it has digits and of fewer: its first digits, restricted to the limbs that are left and the
/// special modulus, are the key of those.
pub(crate) struct Switched<'a> {
    basis: &'a RnsBasis,
    digits: &'a Digits<'a>,
    key: &'a SwitchingKey,
}

impl<'a> Switched<'a> {
    pub(crate) fn new(digits: &'a Digits<'a>, key: &'a SwitchingKey) -> Self {
        Self { basis: digits.basis, digits, key }
    }

    /// Both inner products modulo modulus `j`, each plus `P` times what is `added` to it, under the key's automorphism.
    pub(crate) fn scaled(
        &self,
        j: usize,
        added: [Option<&Poly<Eval>>; 2],
        room: &mut Vec<Buffer>,
        out: [&mut [u64]; 2],
    ) {
        let digits = self.digits.limbs(j, room);
        for ((out, half), added) in out.into_iter().zip(Half::BOTH).zip(added) {
            self.finish(&digits, j, half, added, None, out);
        }
    }

    /// Both inner products, each plus `P` times what is `added` to it, divided by `P` and rounded, under the key's automorphism.
    pub(crate) fn divided(&self, added: [Option<&Poly<Eval>>; 2]) -> [Poly<Eval>; 2] {
        let limbs = self.basis.prefix(self.basis.len() - 1);
        let (special, _) = self.special();
        let mut parts = [Poly::zero(&limbs), Poly::zero(&limbs)];
        let mut room = Vec::new();
        let remainders = self.remainders(&mut room);
        let mut remainder = Buffer::zeroed(limbs.degree());
        // Limb after limb, so that what is in work stays in the cache.
        for (j, (ntt, inverse)) in limbs.ntts().iter().zip(self.basis.last_inverses()).enumerate() {
            let digits = self.digits.limbs(j, &mut room);
            let halves = Half::BOTH.into_iter().zip(&remainders).zip(added);
            for (part, ((half, coefficients), added)) in parts.iter_mut().zip(halves) {
                ntt.modulus().lift_centered_slice(&mut remainder, coefficients, special);
                ntt.forward(&mut remainder);
                let subtracted = Some((&remainder[..], *inverse));
                self.finish(&digits, j, half, added, subtracted, part.limb_mut(j));
            }
        }
        parts
    }

    /// The special modulus and its place.
    fn special(&self) -> (&'a Modulus, usize) {
        let last = self.basis.len() - 1;
        (&self.basis.moduli()[last], last)
    }

    /// The coefficients of both inner products modulo `P`.
    fn remainders(&self, room: &mut Vec<Buffer>) -> [Buffer; 2] {
        let (special, last) = self.special();
        let digits = self.digits.limbs(last, room);
        Half::BOTH.map(|half| {
            let mut remainder = Buffer::zeroed(self.basis.degree());
            special.dot(&mut remainder, &digits, &self.key_limbs(last, half));
            self.basis.ntts()[last].inverse(&mut remainder);
            remainder
        })
    }

    /// The inner product modulo modulus `j`, plus `P added`, less `subtracted` and times its factor, under the automorphism.
    fn finish(
        &self,
        digits: &[&[u64]],
        j: usize,
        half: Half,
        added: Option<&Poly<Eval>>,
        subtracted: Option<(&[u64], Shoup)>,
        out: &mut [u64],
    ) {
        let (modulus, (special, last)) = (&self.basis.moduli()[j], self.special());
        // A multiple of P is zero modulo P.
        let added = added.filter(|_| j < last).map(|part| (part.limb(j), special.value()));
        let ending = Ending { added, subtracted, permutation: &self.key.permutation };
        modulus.dot_permuted(out, digits, &self.key_limbs(j, half), &ending);
    }

    /// Limb `j` of one half of the key's digits, as many as there are of the ciphertext.
    fn key_limbs(&self, j: usize, half: Half) -> Vec<&'a [u64]> {
        let last = self.basis.len() - 1;
        // The key may have more limbs, and then the special modulus stands behind those.
        let j = if j < last { j } else { self.key.digits.len() };
        let limb = |(b, a): &'a (Poly<Eval>, Poly<Eval>)| match half {
            Half::B => b.limb(j),
            Half::A => a.limb(j),
        };
        self.key.digits[..last].iter().map(limb).collect()
    }
}
