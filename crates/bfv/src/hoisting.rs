//! Rotations of one ciphertext that share its decomposition into digits ([HS18](https://eprint.iacr.org/2018/244)).

use std::sync::OnceLock;

use lanner_ring::{Buffer, Ending, Eval, GaloisElement, Modulus, Poly, RnsBasis, Shoup};

use crate::keys::SwitchingKey;
use crate::{BfvError, Ciphertext, EvaluationKeys, NoiseBound, Parameters};

/// A ciphertext with the digits of its second half: what every rotation of it starts from.
pub struct Hoisted<'a> {
    parameters: &'a Parameters,
    ciphertext: &'a Ciphertext,
    /// Made for the first rotation that is none.
    digits: OnceLock<Digits<'a>>,
}

/// Digit `i` is the centred residue of `c1` modulo limb `i`, lifted to the limbs and the special modulus.
struct Digits<'a> {
    /// Modulo limb `i` itself, digit `i` is `c1`.
    c1: &'a Poly<Eval>,
    /// `lifted[i][j]` is digit `i` modulo modulus `j`, and empty for `j = i`.
    lifted: Vec<Vec<Buffer>>,
}

/// A ciphertext over the limbs and the special modulus `P`, multiplied by `P`: a rotated one, or a sum of products of such.
#[derive(Clone)]
pub struct ExtendedCiphertext {
    pub(crate) c0: Poly<Eval>,
    pub(crate) c1: Poly<Eval>,
    /// In units of `P`.
    pub(crate) noise: NoiseBound,
}

impl<'a> Hoisted<'a> {
    pub(crate) fn new(parameters: &'a Parameters, ciphertext: &'a Ciphertext) -> Result<Self, BfvError> {
        parameters.key_switching()?;
        if !parameters.basis(parameters.limbs()).same(ciphertext.c1.basis()) {
            return Err(BfvError::Mismatch { what: "the ciphertext's modulus and that of the keys" });
        }
        Ok(Self { parameters, ciphertext, digits: OnceLock::new() })
    }

    fn digits(&self) -> &Digits<'a> {
        self.digits.get_or_init(|| Digits::new(self.parameters.extended(), &self.ciphertext.c1))
    }

    /// The encryption under an automorphism.
    ///
    /// # Errors
    /// [`BfvError::MissingKey`]; [`BfvError::Mismatch`] for keys of other parameters.
    pub fn apply(&self, element: GaloisElement, keys: &EvaluationKeys) -> Result<Ciphertext, BfvError> {
        if element.exponent() == 1 {
            return Ok(self.ciphertext.clone());
        }
        let key = self.key(element, keys)?;
        let basis = self.parameters.basis(self.parameters.limbs());
        let (mut c0, mut c1) = (Poly::zero(&basis), Poly::zero(&basis));
        let mut switched = Switched::new(self, key);
        let remainders = switched.remainders();
        // Limb after limb, so that what is in work stays in the cache.
        for j in 0..basis.len() {
            switched.divided(j, Half::B, Some(&self.ciphertext.c0), &remainders[0], c0.limb_mut(j));
            switched.divided(j, Half::A, None, &remainders[1], c1.limb_mut(j));
        }
        Ok(Ciphertext { c0, c1, noise: self.ciphertext.noise.switched_key(self.parameters) })
    }

    /// The encryption rotated: slot `i` of each row is slot `i + steps`.
    ///
    /// # Errors
    /// As [`Self::apply`].
    pub fn rotate(&self, steps: isize, keys: &EvaluationKeys) -> Result<Ciphertext, BfvError> {
        self.apply(GaloisElement::rotation(steps, self.parameters.degree())?, keys)
    }

    /// The encryption under an automorphism, before the division by the special modulus.
    ///
    /// # Errors
    /// As [`Self::apply`].
    pub fn apply_extended(
        &self,
        element: GaloisElement,
        keys: &EvaluationKeys,
    ) -> Result<ExtendedCiphertext, BfvError> {
        if element.exponent() == 1 {
            return Ok(self.extended());
        }
        let key = self.key(element, keys)?;
        let basis = self.parameters.extended();
        let (mut c0, mut c1) = (Poly::zero(basis), Poly::zero(basis));
        let switched = Switched::new(self, key);
        for j in 0..basis.len() {
            switched.scaled(j, Half::B, Some(&self.ciphertext.c0), c0.limb_mut(j));
            switched.scaled(j, Half::A, None, c1.limb_mut(j));
        }
        Ok(ExtendedCiphertext { c0, c1, noise: self.ciphertext.noise.switched_key_extended(self.parameters) })
    }

    /// `P (c0, c1)`.
    fn extended(&self) -> ExtendedCiphertext {
        let Ciphertext { c0, c1, noise } = self.ciphertext;
        let special = self.parameters.special().map_or(1, Modulus::value);
        let scale = |part: &Poly<Eval>| {
            let mut scaled = Poly::zero(self.parameters.extended());
            // Modulo P itself it is zero.
            for (j, modulus) in self.parameters.moduli().iter().enumerate() {
                let limb = scaled.limb_mut(j);
                limb.copy_from_slice(part.limb(j));
                modulus.mul_scalar_slice(limb, modulus.shoup(special));
            }
            scaled
        };
        ExtendedCiphertext { c0: scale(c0), c1: scale(c1), noise: *noise }
    }

    fn key<'k>(
        &self,
        element: GaloisElement,
        keys: &'k EvaluationKeys,
    ) -> Result<&'k SwitchingKey, BfvError> {
        self.parameters.check_same(keys.parameters())?;
        keys.key(element)
    }
}

impl ExtendedCiphertext {
    /// Bytes that one takes in memory.
    ///
    /// # Errors
    /// [`BfvError::NoSpecialModulus`].
    pub fn kept_bytes(parameters: &Parameters) -> Result<usize, BfvError> {
        Ok(2 * parameters.key_switching()?.len() * parameters.degree() * size_of::<u64>())
    }

    /// Makes this the encryption of the sum.
    ///
    /// # Errors
    /// [`BfvError::Mismatch`] unless both are of the same parameters.
    pub fn add_assign(&mut self, other: &Self) -> Result<(), BfvError> {
        if !self.c0.basis().same(other.c0.basis()) {
            return Err(BfvError::Mismatch { what: "parameters" });
        }
        self.c0.add_assign(&other.c0);
        self.c1.add_assign(&other.c1);
        self.noise = self.noise.plus(other.noise);
        Ok(())
    }

    /// The ciphertext: divided by `P` and rounded.
    #[must_use]
    pub fn reduce(self, parameters: &Parameters) -> Ciphertext {
        let Self { mut c0, mut c1, noise } = self;
        c0.divide_round_by_last();
        c1.divide_round_by_last();
        Ciphertext { c0, c1, noise: noise.rescaled(parameters) }
    }
}

impl<'a> Digits<'a> {
    fn new(basis: &RnsBasis, c1: &'a Poly<Eval>) -> Self {
        let digit = |(i, values): (usize, &[u64])| {
            let mut residues = Buffer::from(values);
            basis.ntts()[i].inverse(&mut residues);
            (0..basis.len())
                .map(|j| if i == j { Buffer::default() } else { lift(basis, &residues, i, j) })
                .collect()
        };
        Self { c1, lifted: c1.limbs().enumerate().map(digit).collect() }
    }

    /// Modulus `j` of every digit.
    fn limbs(&self, j: usize) -> Vec<&[u64]> {
        let digits = self.lifted.iter().enumerate();
        digits.map(|(i, digit)| if i == j { self.c1.limb(j) } else { &*digit[j] }).collect()
    }
}

/// The values of a digit modulo modulus `to`, given its residues modulo limb `from`.
fn lift(basis: &RnsBasis, residues: &[u64], from: usize, to: usize) -> Buffer {
    let mut values = Buffer::zeroed(residues.len());
    basis.moduli()[to].lift_centered_slice(&mut values, residues, &basis.moduli()[from]);
    basis.ntts()[to].forward(&mut values);
    values
}

/// Which half of the pairs of a switching key.
#[derive(Clone, Copy)]
enum Half {
    B,
    A,
}

/// The inner products of digits with a key, `P c1 s` under the key's target secret, made a limb at a time.
struct Switched<'a> {
    basis: &'a RnsBasis,
    digits: &'a Digits<'a>,
    key: &'a SwitchingKey,
    remainder: Buffer,
}

impl<'a> Switched<'a> {
    fn new(hoisted: &'a Hoisted<'_>, key: &'a SwitchingKey) -> Self {
        let basis = hoisted.parameters.extended();
        Self { basis, digits: hoisted.digits(), key, remainder: Buffer::zeroed(basis.degree()) }
    }

    /// The special modulus and its place.
    fn special(&self) -> (&'a Modulus, usize) {
        let last = self.basis.len() - 1;
        (&self.basis.moduli()[last], last)
    }

    /// The coefficients of both inner products modulo `P`.
    fn remainders(&self) -> [Buffer; 2] {
        let (special, last) = self.special();
        [Half::B, Half::A].map(|half| {
            let mut remainder = Buffer::zeroed(self.basis.degree());
            special.dot(&mut remainder, &self.digits.limbs(last), &self.key.limbs(last, half));
            self.basis.ntts()[last].inverse(&mut remainder);
            remainder
        })
    }

    /// The inner product modulo modulus `j`, plus `P added`, under the automorphism.
    fn scaled(&self, j: usize, half: Half, added: Option<&Poly<Eval>>, out: &mut [u64]) {
        self.finish(j, half, added, None, out);
    }

    /// The same divided by `P` and rounded, given its `remainder`; `j` is a limb.
    fn divided(
        &mut self,
        j: usize,
        half: Half,
        added: Option<&Poly<Eval>>,
        remainder: &[u64],
        out: &mut [u64],
    ) {
        let (modulus, (special, _)) = (&self.basis.moduli()[j], self.special());
        modulus.lift_centered_slice(&mut self.remainder, remainder, special);
        self.basis.ntts()[j].forward(&mut self.remainder);
        self.finish(j, half, added, Some((&self.remainder, self.basis.last_inverses()[j])), out);
    }

    fn finish(
        &self,
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
        modulus.dot_permuted(out, &self.digits.limbs(j), &self.key.limbs(j, half), &ending);
    }
}

impl SwitchingKey {
    /// Limb `j` of one half of every digit.
    fn limbs(&self, j: usize, half: Half) -> Vec<&[u64]> {
        let digits = self.digits.iter();
        match half {
            Half::B => digits.map(|(b, _)| b.limb(j)).collect(),
            Half::A => digits.map(|(_, a)| a.limb(j)).collect(),
        }
    }
}
