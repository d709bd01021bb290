//! The keys that a server computes with: hybrid key switching with one digit per limb and a special modulus
//! ([HK19](https://eprint.iacr.org/2019/688)), arranged so that a rotation permutes two polynomials and not the digits
//! ([BMTPH20](https://eprint.iacr.org/2020/1203)).

use std::collections::BTreeMap;

use lanner_primitives::{Prg, Seed};
use lanner_ring::{Buffer, Eval, EvalPermutation, GaloisElement, Poly, RnsBasis, sample};
use lanner_wire::{Encode, Reader, Writer};
use rand_core::CryptoRng;

use super::needed::{NeededKey, Purpose};
use crate::ciphertext::SEED_BYTES;
use crate::packing::{decode_seed, packed_poly_len, read_poly, write_poly};
use crate::{BfvError, Parameters, SecretKey};

/// Keys for a set of automorphisms `X -> X^g`, and for products of ciphertexts, all expanded from one seed and one `b` for each digit.
///
/// Wire form: the seed, then for each element in increasing order, for products last, and each digit the polynomial `b` over the key's
/// limbs and the special modulus, packed as in a [`SeededCiphertext`](crate::SeededCiphertext). What the keys are for is public and not sent.
pub struct EvaluationKeys {
    parameters: Parameters,
    seed: Seed,
    keys: BTreeMap<Purpose, SwitchingKey>,
}

/// The key that takes a secret `u` times something to a secret `v` and then applies an automorphism `phi`: for each digit `i` a pair
/// `(b, a)` over some limbs and the special modulus `P` with `b = -a v + e + P g_i u`, where `g_i` is 1 modulo limb `i` and 0 modulo the
/// others. For the automorphism `u = s` and `v = phi^-1(s)`; for products `u = s^2`, `v = s` and `phi` is none.
pub(crate) struct SwitchingKey {
    /// As many as there are limbs.
    pub(crate) digits: Vec<(Poly<Eval>, Poly<Eval>)>,
    pub(crate) permutation: EvalPermutation,
}

impl EvaluationKeys {
    /// Fresh keys, needed in any order and with repetitions, of which the most limbs count; the identity needs none and gets none.
    ///
    /// # Errors
    /// [`BfvError::NoSpecialModulus`] if there is a key and no such modulus; [`BfvError::Mismatch`] for an element of another degree;
    /// [`BfvError::Limbs`] for more limbs than the parameters have, or none.
    pub fn generate<K: Copy + Into<NeededKey>>(
        secret: &SecretKey,
        needed: &[K],
        rng: &mut (impl CryptoRng + ?Sized),
    ) -> Result<Self, BfvError> {
        let parameters = secret.parameters().clone();
        let seed = Seed::random(rng);
        let mut expansion = Prg::new(seed.clone());
        let mut keys = BTreeMap::new();
        for (purpose, limbs) in NeededKey::all(&parameters, needed)? {
            keys.insert(purpose, SwitchingKey::generate(secret, purpose, limbs, &mut expansion, rng)?);
        }
        Ok(Self { parameters, seed, keys })
    }

    /// The parameters.
    #[must_use]
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// The number of keys.
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
        let missing = BfvError::MissingKey { element: element.exponent() };
        self.find(Purpose::Automorphism(element), limbs, missing)
    }

    /// The key of products of ciphertexts of a number of limbs.
    ///
    /// # Errors
    /// [`BfvError::MissingProductKey`]; [`BfvError::Limbs`] if there is one for fewer limbs.
    pub(crate) fn product_key(&self, limbs: usize) -> Result<&SwitchingKey, BfvError> {
        self.find(Purpose::Product, limbs, BfvError::MissingProductKey)
    }

    fn find(&self, purpose: Purpose, limbs: usize, missing: BfvError) -> Result<&SwitchingKey, BfvError> {
        let key = self.keys.get(&purpose).ok_or(missing)?;
        let most = key.digits.len();
        if limbs <= most { Ok(key) } else { Err(BfvError::Limbs { got: limbs, most }) }
    }

    /// The exact length of the wire form of these keys, counted as [`Self::generate`] does.
    ///
    /// # Errors
    /// As [`Self::generate`].
    pub fn encoded_len<K: Copy + Into<NeededKey>>(
        parameters: &Parameters,
        needed: &[K],
    ) -> Result<usize, BfvError> {
        let key = |limbs| Ok(limbs * packed_poly_len(parameters.key_switching(limbs)?));
        let keys =
            NeededKey::all(parameters, needed)?.into_values().map(key).sum::<Result<usize, BfvError>>()?;
        Ok(SEED_BYTES + keys)
    }

    /// Bytes that these keys take in memory, to within small change.
    ///
    /// # Errors
    /// As [`Self::generate`].
    pub fn kept_bytes<K: Copy + Into<NeededKey>>(
        parameters: &Parameters,
        needed: &[K],
    ) -> Result<usize, BfvError> {
        let limb = parameters.degree() * size_of::<u64>();
        let key = |limbs| Ok(limbs * 2 * parameters.key_switching(limbs)?.len() * limb);
        NeededKey::all(parameters, needed)?.into_values().map(key).sum()
    }

    /// Reads keys that are known to be these.
    ///
    /// # Errors
    /// As [`Self::generate`]; [`BfvError::Decode`] unless the bytes are exactly what [`Encode`] writes.
    pub fn decode<K: Copy + Into<NeededKey>>(
        parameters: &Parameters,
        needed: &[K],
        reader: &mut Reader<'_>,
    ) -> Result<Self, BfvError> {
        let seed = decode_seed(reader)?;
        let mut expansion = Prg::new(seed.clone());
        let mut keys = BTreeMap::new();
        for (purpose, limbs) in NeededKey::all(parameters, needed)? {
            let basis = parameters.key_switching(limbs)?;
            let digit = |_| Ok((read_poly(basis, reader)?, sample::uniform(basis, &mut expansion)));
            let digits = (0..limbs).map(digit).collect::<Result<_, BfvError>>()?;
            let permutation = EvalPermutation::new(purpose.automorphism(parameters)?);
            keys.insert(purpose, SwitchingKey { digits, permutation });
        }
        Ok(Self { parameters: parameters.clone(), seed, keys })
    }

    /// Reads keys that take all of `bytes`.
    ///
    /// # Errors
    /// As [`Self::decode`], and for bytes left over.
    pub fn from_bytes<K: Copy + Into<NeededKey>>(
        parameters: &Parameters,
        needed: &[K],
        bytes: &[u8],
    ) -> Result<Self, BfvError> {
        let mut reader = Reader::new(bytes);
        let keys = Self::decode(parameters, needed, &mut reader)?;
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
        purpose: Purpose,
        limbs: usize,
        expansion: &mut Prg,
        rng: &mut (impl CryptoRng + ?Sized),
    ) -> Result<Self, BfvError> {
        let parameters = secret.parameters();
        let basis = parameters.key_switching(limbs)?;
        let automorphism = purpose.automorphism(parameters)?;
        let s = restricted(&secret.s, basis);
        let (source, target) = match purpose {
            Purpose::Automorphism(element) => {
                let target = s.automorphism(&EvalPermutation::new(inverse(element)?));
                (s, target)
            }
            Purpose::Product => {
                let mut square = s.clone();
                square.mul_assign(&s);
                (square, s)
            }
        };
        let digits = (0..limbs).map(|i| digit(&source, &target, i, expansion, rng)).collect();
        Ok(Self { digits, permutation: EvalPermutation::new(automorphism) })
    }
}

/// Digit `i` of the key that takes `source` to `target`.
fn digit(
    source: &Poly<Eval>,
    target: &Poly<Eval>,
    i: usize,
    expansion: &mut Prg,
    rng: &mut (impl CryptoRng + ?Sized),
) -> (Poly<Eval>, Poly<Eval>) {
    let basis = source.basis();
    let a: Poly<Eval> = sample::uniform(basis, expansion);
    let mut b = sample::error(basis, rng).into_eval();
    let mut product = a.clone();
    product.mul_assign(target);
    b.sub_assign(&product);
    // P g_i u is zero modulo P and modulo every limb but i.
    let modulus = &basis.moduli()[i];
    let special = modulus.reduce(basis.moduli()[basis.len() - 1].value());
    let mut shifted = Buffer::from(source.limb(i));
    modulus.mul_scalar_slice(&mut shifted, modulus.shoup(special));
    modulus.add_assign_slice(b.limb_mut(i), &shifted);
    (b, a)
}

/// A polynomial over all limbs and the special modulus, over some limbs and that.
fn restricted(poly: &Poly<Eval>, basis: &RnsBasis) -> Poly<Eval> {
    let mut kept = Poly::zero(basis);
    let last = basis.len() - 1;
    for (j, limb) in kept.limbs_mut().enumerate() {
        limb.copy_from_slice(poly.limb(if j < last { j } else { poly.basis().len() - 1 }));
    }
    kept
}

/// The inverse automorphism: the group has order `N`, so it is the power `N - 1`.
fn inverse(element: GaloisElement) -> Result<GaloisElement, BfvError> {
    let (n, g) = (element.degree(), element.exponent());
    let power = (1..n).fold(1, |power, _| power * g % (2 * n));
    Ok(GaloisElement::new(power, n)?)
}
