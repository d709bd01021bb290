//! Keys for automorphisms: hybrid key switching with one digit per limb and a special modulus
//! ([HK19](https://eprint.iacr.org/2019/688)), arranged so that a rotation permutes two polynomials and not the digits
//! ([BMTPH20](https://eprint.iacr.org/2020/1203)).

use std::collections::BTreeMap;

use lanner_primitives::{Prg, Seed};
use lanner_ring::{Buffer, Eval, EvalPermutation, GaloisElement, Poly, RnsBasis, sample};
use lanner_wire::{Encode, Reader, Writer};
use rand_core::CryptoRng;

use crate::ciphertext::SEED_BYTES;
use crate::packing::{decode_seed, packed_poly_len, read_poly, write_poly};
use crate::{BfvError, Parameters, SecretKey};

/// Keys for a set of automorphisms `X -> X^g`, all expanded from one seed and one `b` for each digit.
///
/// Wire form: the seed, then for each element in increasing order and each digit the polynomial `b` over the limbs and
/// the special modulus, packed as in a [`SeededCiphertext`](crate::SeededCiphertext). The elements themselves
/// are public and not sent.
pub struct EvaluationKeys {
    parameters: Parameters,
    seed: Seed,
    keys: BTreeMap<usize, SwitchingKey>,
}

/// The key of one automorphism `phi`: for each digit `i` a pair `(b, a)` over the limbs and the special modulus `P` with
/// `b = -a phi^-1(s) + e + P g_i s`, where `g_i` is 1 modulo limb `i` and 0 modulo the others.
pub(crate) struct SwitchingKey {
    pub(crate) digits: Vec<(Poly<Eval>, Poly<Eval>)>,
    pub(crate) permutation: EvalPermutation,
}

impl EvaluationKeys {
    /// Fresh keys for `elements`, in any order and with repetitions; the identity needs none and gets none.
    ///
    /// # Errors
    /// [`BfvError::NoSpecialModulus`] if there is an element, the identity aside, and no such modulus;
    /// [`BfvError::Mismatch`] for an element of another degree.
    pub fn generate(
        secret: &SecretKey,
        elements: &[GaloisElement],
        rng: &mut (impl CryptoRng + ?Sized),
    ) -> Result<Self, BfvError> {
        let parameters = secret.parameters().clone();
        let seed = Seed::random(rng);
        let mut expansion = Prg::new(seed.clone());
        let mut keys = BTreeMap::new();
        for (exponent, element) in sorted(&parameters, elements)? {
            keys.insert(exponent, SwitchingKey::generate(secret, element, &mut expansion, rng)?);
        }
        Ok(Self { parameters, seed, keys })
    }

    /// The parameters.
    #[must_use]
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// The number of automorphisms.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there is no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The key of an automorphism of ciphertexts of a number of limbs.
    ///
    /// # Errors
    /// [`BfvError::MissingKey`]; [`BfvError::Limbs`] if there is one for fewer limbs.
    pub(crate) fn key(&self, element: GaloisElement, limbs: usize) -> Result<&SwitchingKey, BfvError> {
        let exponent = element.exponent();
        let key = self.keys.get(&exponent).ok_or(BfvError::MissingKey { element: exponent })?;
        let most = key.digits.len();
        if limbs <= most { Ok(key) } else { Err(BfvError::Limbs { got: limbs, most }) }
    }

    /// The exact length of the wire form for these elements, counted as [`Self::generate`] does.
    ///
    /// # Errors
    /// As [`Self::generate`].
    pub fn encoded_len(parameters: &Parameters, elements: &[GaloisElement]) -> Result<usize, BfvError> {
        let keys = sorted(parameters, elements)?.len();
        if keys == 0 {
            return Ok(SEED_BYTES);
        }
        let key = parameters.limbs() * packed_poly_len(parameters.key_switching(parameters.limbs())?);
        Ok(SEED_BYTES + key * keys)
    }

    /// Bytes that keys of a given number of automorphisms take in memory, to within small change.
    ///
    /// # Errors
    /// [`BfvError::NoSpecialModulus`].
    pub fn kept_bytes(parameters: &Parameters, keys: usize) -> Result<usize, BfvError> {
        if keys == 0 {
            return Ok(0);
        }
        let pair =
            2 * parameters.key_switching(parameters.limbs())?.len() * parameters.degree() * size_of::<u64>();
        Ok(keys * parameters.limbs() * pair)
    }

    /// Reads the keys of `elements`.
    ///
    /// # Errors
    /// As [`Self::generate`]; [`BfvError::Decode`] unless the bytes are exactly what [`Encode`] writes.
    pub fn decode(
        parameters: &Parameters,
        elements: &[GaloisElement],
        reader: &mut Reader<'_>,
    ) -> Result<Self, BfvError> {
        let seed = decode_seed(reader)?;
        let mut expansion = Prg::new(seed.clone());
        let mut keys = BTreeMap::new();
        for (exponent, element) in sorted(parameters, elements)? {
            let basis = parameters.key_switching(parameters.limbs())?;
            let digit = |_| Ok((read_poly(basis, reader)?, sample::uniform(basis, &mut expansion)));
            let digits = (0..parameters.limbs()).map(digit).collect::<Result<_, BfvError>>()?;
            keys.insert(exponent, SwitchingKey { digits, permutation: EvalPermutation::new(element) });
        }
        Ok(Self { parameters: parameters.clone(), seed, keys })
    }

    /// Reads keys that take all of `bytes`.
    ///
    /// # Errors
    /// As [`Self::decode`], and for bytes left over.
    pub fn from_bytes(
        parameters: &Parameters,
        elements: &[GaloisElement],
        bytes: &[u8],
    ) -> Result<Self, BfvError> {
        let mut reader = Reader::new(bytes);
        let keys = Self::decode(parameters, elements, &mut reader)?;
        reader.finish()?;
        Ok(keys)
    }
}

impl Encode for EvaluationKeys {
    fn encode(&self, writer: &mut Writer) {
        writer.bytes(self.seed.as_bytes());
        for (b, _) in self.keys.values().flat_map(|key| &key.digits) {
            write_poly(b, writer);
        }
    }
}

impl SwitchingKey {
    fn generate(
        secret: &SecretKey,
        element: GaloisElement,
        expansion: &mut Prg,
        rng: &mut (impl CryptoRng + ?Sized),
    ) -> Result<Self, BfvError> {
        let parameters = secret.parameters();
        let basis = parameters.key_switching(parameters.limbs())?;
        let permutation = EvalPermutation::new(element);
        let target = secret.s.automorphism(&EvalPermutation::new(inverse(element)?));
        let digit = |i| digit(secret, &target, basis, i, expansion, rng);
        let digits = (0..parameters.limbs()).map(digit).collect();
        Ok(Self { digits, permutation })
    }
}

/// Digit `i` of the key that takes `s` to `target`.
fn digit(
    secret: &SecretKey,
    target: &Poly<Eval>,
    basis: &RnsBasis,
    i: usize,
    expansion: &mut Prg,
    rng: &mut (impl CryptoRng + ?Sized),
) -> (Poly<Eval>, Poly<Eval>) {
    let a: Poly<Eval> = sample::uniform(basis, expansion);
    let mut b = sample::error(basis, rng).into_eval();
    let mut product = a.clone();
    product.mul_assign(target);
    b.sub_assign(&product);
    // P g_i s is zero modulo P and modulo every limb but i.
    let modulus = &basis.moduli()[i];
    let special = modulus.reduce(basis.moduli()[basis.len() - 1].value());
    let mut shifted = Buffer::from(secret.s.limb(i));
    modulus.mul_scalar_slice(&mut shifted, modulus.shoup(special));
    modulus.add_assign_slice(b.limb_mut(i), &shifted);
    (b, a)
}

/// The elements by exponent, without the identity.
fn sorted(
    parameters: &Parameters,
    elements: &[GaloisElement],
) -> Result<BTreeMap<usize, GaloisElement>, BfvError> {
    if elements.iter().any(|element| element.degree() != parameters.degree()) {
        return Err(BfvError::Mismatch { what: "ring degrees" });
    }
    let needed = elements.iter().filter(|element| element.exponent() != 1);
    Ok(needed.map(|element| (element.exponent(), *element)).collect())
}

/// The inverse automorphism: the group has order `N`, so it is the power `N - 1`.
fn inverse(element: GaloisElement) -> Result<GaloisElement, BfvError> {
    let (n, g) = (element.degree(), element.exponent());
    let power = (1..n).fold(1, |power, _| power * g % (2 * n));
    Ok(GaloisElement::new(power, n)?)
}
