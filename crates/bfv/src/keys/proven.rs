//! A public key whose owner may be anybody: `b = -a s + e` under an `a` that the server drew, with a proof that `s` and `e` are short.
//!
//! ```text
//! C                                                       S
//!                                           <--------  seed of a
//! b; of each round SHA-256 of a seed, of y and of z  -->
//!                                           <--------  half of the rounds
//! z of these, the seeds of the others       -------->
//! ```
//!
//! A round's seed gives `r` and `f`, uniform in boxes [`SLACK_BITS`] bits larger than those of `s` and `e`; `y = -a r + f` and `z = (r + s, f + e)`. Who opens the seed
//! shows that `y` is made so; who opens `z` shows `y = -a z_s + z_e - b`. From both follows `b = -a s + e` with `s = z_s - r` and `e = z_e - f`, at most twice as long as
//! the boxes' sides. What tells nothing of `s` and `e` are `z` at least their bounds away from the boxes' ends: any other is not shown, and [`VOID`] rounds may be void so.
//!
//! Of a client without such `s` and `e`, no round's commitments open both ways. Say that in `m` of the rounds `z` opens: all must be asked for, and of the others asked for at most
//! [`VOID`] be void, so that it passes with `C(112 - m, 56 - m) / C(112, 56)` where `m >= 44`: **2^-65.5**. An honest client has more than [`VOID`] void rounds with `2^-39`.

use lanner_primitives::{Prg, Seed};
use lanner_ring::{Coeff, Eval, Poly, sample};
use lanner_wire::{DecodeError, Reader, Writer, packed_len};
use rand_core::CryptoRng;
use sha2::{Digest, Sha256};
use zeroize::{ZeroizeOnDrop, Zeroizing};

use super::{PublicKey, SecretKey};
use crate::ciphertext::SEED_BYTES;
use crate::packing::{packed_poly_len, read_poly, write_poly};
use crate::{BfvError, Parameters};

/// What the owner of a key keeps until it is asked.
#[derive(ZeroizeOnDrop)]
pub struct KeyProof {
    #[zeroize(skip)]
    parameters: Parameters,
    /// `s`, then `e`.
    secrets: [Vec<i32>; 2],
    seeds: Vec<Seed>,
}

/// What the server keeps of a key until it is proved.
pub struct KeyVerifier {
    key: PublicKey,
    commitments: Vec<[[u8; HASH]; 3]>,
}

/// The rounds whose `z` is asked for: half of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyChallenge([bool; ROUNDS]);

impl SecretKey {
    /// A fresh key, the message with its public key under a given `a` and with commitments, and what is needed to answer.
    #[must_use]
    pub fn generate_proven(
        parameters: &Parameters,
        a: &Seed,
        rng: &mut (impl CryptoRng + ?Sized),
    ) -> (Self, KeyProof, Vec<u8>) {
        let key = Self::generate(parameters, rng);
        let basis = parameters.basis(parameters.limbs());
        let error = sample::error(&basis, rng);
        let q = &basis.moduli()[0];
        let small = |poly: &Poly<Coeff>| poly.limb(0).iter().map(|x| q.center(*x) as i32).collect::<Vec<_>>();
        let mut s = Poly::<Eval>::zero(&basis);
        s.limbs_mut().zip(key.s.limbs()).for_each(|(limb, of_key)| limb.copy_from_slice(of_key));
        let secrets = [small(&s.into_coeff()), small(&error)];
        let expanded = expand(parameters, a);
        let b = combine(&expanded, &secrets, parameters);
        let seeds: Vec<Seed> = (0..ROUNDS).map(|_| Seed::random(rng)).collect();
        let mut writer = Writer::new();
        write_poly(&b, &mut writer);
        let proof = KeyProof { parameters: parameters.clone(), secrets, seeds };
        for seed in &proof.seeds {
            let boxes = drawn(parameters, seed);
            let shown = proof.shown(&boxes).unwrap_or_default();
            writer.bytes(&hashed(OF_SEED, seed.as_bytes()));
            writer.bytes(&hash_of_poly(&combine(&expanded, &boxes, parameters)));
            writer.bytes(&hashed(OF_SUM, &shown));
        }
        (key, proof, writer.into_bytes())
    }
}

impl KeyProof {
    /// Bytes of the message with the key and commitments.
    #[must_use]
    pub fn announced_len(parameters: &Parameters) -> usize {
        packed_poly_len(&parameters.basis(parameters.limbs())) + ROUNDS * 3 * HASH
    }

    /// Bytes of the answer.
    #[must_use]
    pub fn answer_len(parameters: &Parameters) -> usize {
        ROUNDS / 2 * (SEED_BYTES + 1 + shown_len(parameters))
    }

    /// The answer.
    #[must_use]
    pub fn answer(self, challenge: &KeyChallenge) -> Vec<u8> {
        let mut writer = Writer::with_capacity(Self::answer_len(&self.parameters));
        for (seed, sum) in self.seeds.iter().zip(challenge.0) {
            if !sum {
                writer.bytes(seed.as_bytes());
                continue;
            }
            let shown = self.shown(&drawn(&self.parameters, seed));
            writer.bool(shown.is_some());
            writer.bytes(&shown.unwrap_or_else(|| vec![0; shown_len(&self.parameters)]));
        }
        writer.into_bytes()
    }

    /// `z`, if it tells nothing.
    fn shown(&self, boxes: &[Vec<i32>; 2]) -> Option<Vec<u8>> {
        let mut writer = Writer::new();
        for ((secret, drawn), Part { bits, bound }) in self.secrets.iter().zip(boxes).zip(PARTS) {
            let half = 1_i32 << (bits - 1);
            let sums = secret.iter().zip(drawn).map(|(secret, drawn)| secret + drawn + half);
            let sums: Zeroizing<Vec<u64>> = Zeroizing::new(sums.map(|sum| sum as u64).collect());
            // Which rounds are void follows from what is uniform whatever the secrets are.
            if !sums.iter().all(|sum| (bound..(1 << bits) - bound).contains(sum)) {
                return None;
            }
            writer.packed(&sums, bits);
        }
        Some(writer.into_bytes())
    }
}

impl KeyChallenge {
    /// Bytes of a challenge.
    pub const ENCODED_LEN: usize = ROUNDS / 8;

    /// Half of the rounds, all halves alike.
    #[must_use]
    pub fn draw(rng: &mut (impl CryptoRng + ?Sized)) -> Self {
        let mut asked = std::array::from_fn(|i| i < ROUNDS / 2);
        for last in (1..ROUNDS).rev() {
            // Within 2^-57 of uniform.
            let place = ((u128::from(rng.next_u64()) * (last as u128 + 1)) >> 64) as usize;
            asked.swap(last, place);
        }
        Self(asked)
    }

    /// Its bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::ENCODED_LEN] {
        std::array::from_fn(|i| (0..8).map(|j| u8::from(self.0[8 * i + j]) << j).sum())
    }

    /// Reads what [`Self::to_bytes`] wrote.
    ///
    /// # Errors
    /// [`BfvError::Decode`] unless half of the rounds are asked for.
    pub fn from_bytes(bytes: &[u8; Self::ENCODED_LEN]) -> Result<Self, BfvError> {
        let asked: [bool; ROUNDS] = std::array::from_fn(|i| bytes[i / 8] >> (i % 8) & 1 == 1);
        if asked.iter().filter(|asked| **asked).count() != ROUNDS / 2 {
            return Err(DecodeError::Invalid { what: "challenge of a key" }.into());
        }
        Ok(Self(asked))
    }
}

impl KeyVerifier {
    /// Reads the key under `a` and its commitments.
    ///
    /// # Errors
    /// [`BfvError::Decode`] unless the bytes are exactly those.
    pub fn read(parameters: &Parameters, a: &Seed, announced: &[u8]) -> Result<Self, BfvError> {
        let mut reader = Reader::new(announced);
        let b = read_poly(&parameters.basis(parameters.limbs()), &mut reader)?;
        let mut commitments = Vec::with_capacity(ROUNDS);
        for _ in 0..ROUNDS {
            commitments.push([reader.array()?, reader.array()?, reader.array()?]);
        }
        reader.finish()?;
        Ok(Self { key: PublicKey::of_parts(parameters, a.clone(), b, expand(parameters, a)), commitments })
    }

    /// The key, if the answer proves it.
    ///
    /// # Errors
    /// [`BfvError::Decode`] if the answer is none; [`BfvError::Unproved`] if it proves nothing.
    pub fn finish(self, challenge: &KeyChallenge, answer: &[u8]) -> Result<PublicKey, BfvError> {
        let parameters = self.key.parameters().clone();
        let mut reader = Reader::new(answer);
        let mut void = 0;
        for ([of_seed, of_product, of_sum], asked) in self.commitments.iter().zip(challenge.0) {
            let product = if asked {
                let shown = reader.bool()?;
                let bytes = reader.bytes(shown_len(&parameters))?;
                if !shown {
                    void += 1;
                    continue;
                }
                if hashed(OF_SUM, bytes) != *of_sum {
                    return Err(BfvError::Unproved);
                }
                let mut product = combine(self.key.a(), &read_shown(&parameters, bytes)?, &parameters);
                product.sub_assign(self.key.b());
                product
            } else {
                let seed = Seed::from_bytes(reader.array()?);
                if hashed(OF_SEED, seed.as_bytes()) != *of_seed {
                    return Err(BfvError::Unproved);
                }
                combine(self.key.a(), &drawn(&parameters, &seed), &parameters)
            };
            if hash_of_poly(&product) != *of_product {
                return Err(BfvError::Unproved);
            }
        }
        reader.finish()?;
        if void > VOID { Err(BfvError::Unproved) } else { Ok(self.key) }
    }
}

/// How `r` or `f` are drawn: uniform of so many bits, centred, and beyond the bound of `s` or `e` from the ends shown.
#[derive(Clone, Copy)]
struct Part {
    bits: u32,
    bound: u64,
}

const PARTS: [Part; 2] = [Part { bits: SLACK_BITS + 1, bound: 1 }, Part { bits: 26, bound: ERROR }];
const ERROR: u64 = sample::ERROR_BOUND;

/// Bits by which `r` may be longer than `s`, and at least those by which `f` may be longer than `e`.
const SLACK_BITS: u32 = 20;
/// Rounds, of which the sums of a half are asked for.
const ROUNDS: usize = 112;
/// Rounds asked for that may show nothing.
const VOID: usize = 12;
/// Bytes of a hash.
const HASH: usize = 32;
const OF_SEED: u8 = 0;
const OF_PRODUCT: u8 = 1;
const OF_SUM: u8 = 2;

const _: () = assert!(ROUNDS.is_multiple_of(8) && ERROR << SLACK_BITS < 1 << 25);

fn shown_len(parameters: &Parameters) -> usize {
    PARTS.iter().map(|part| packed_len(parameters.degree(), part.bits)).sum()
}

fn expand(parameters: &Parameters, a: &Seed) -> Poly<Eval> {
    sample::uniform(&parameters.basis(parameters.limbs()), &mut Prg::new(a.clone()))
}

/// `-a s + e`.
fn combine(a: &Poly<Eval>, [s, e]: &[Vec<i32>; 2], parameters: &Parameters) -> Poly<Eval> {
    let basis = parameters.basis(parameters.limbs());
    let lift = |values: &[i32]| {
        let mut poly = Poly::<Coeff>::zero(&basis);
        for (limb, q) in poly.limbs_mut().zip(basis.moduli()) {
            limb.iter_mut().zip(values).for_each(|(out, value)| *out = q.reduce_signed(i64::from(*value)));
        }
        poly.into_eval()
    };
    let (mut product, mut sum) = (lift(s), lift(e));
    product.mul_assign(a);
    sum.sub_assign(&product);
    sum
}

/// `r` and `f` of a round.
fn drawn(parameters: &Parameters, seed: &Seed) -> [Vec<i32>; 2] {
    let mut random = Prg::new(seed.clone());
    PARTS.map(|Part { bits, .. }| {
        let half = 1_i32 << (bits - 1);
        let mut words = Zeroizing::new(vec![0; parameters.degree() * size_of::<u32>()]);
        random.fill_bytes(&mut words);
        let (words, _) = words.as_chunks();
        words.iter().map(|word| (u32::from_le_bytes(*word) & ((1 << bits) - 1)) as i32 - half).collect()
    })
}

/// `z` as it is shown.
fn read_shown(parameters: &Parameters, bytes: &[u8]) -> Result<[Vec<i32>; 2], BfvError> {
    let mut reader = Reader::new(bytes);
    let mut parts = PARTS.iter().map(|Part { bits, bound }| {
        let sums = reader.packed(parameters.degree(), *bits)?;
        let half = 1_i32 << (bits - 1);
        if !sums.iter().all(|sum| (*bound..(1 << bits) - bound).contains(sum)) {
            return Err(BfvError::Unproved);
        }
        Ok(sums.iter().map(|sum| *sum as i32 - half).collect())
    });
    let mut next = || parts.next().unwrap_or_else(|| Ok(Vec::new()));
    Ok([next()?, next()?])
}

fn hashed(of: u8, bytes: &[u8]) -> [u8; HASH] {
    Sha256::new().chain_update([of]).chain_update(bytes).finalize().into()
}

fn hash_of_poly(poly: &Poly<Eval>) -> [u8; HASH] {
    let mut writer = Writer::new();
    write_poly(poly, &mut writer);
    hashed(OF_PRODUCT, writer.as_bytes())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use rand_core::SeedableRng;

    use super::*;
    use crate::{CoefficientEncoder, ParameterSet, PlaintextModulus};

    fn parameters() -> Parameters {
        ParameterSet::B.parameters().unwrap()
    }

    /// A proof with secrets of choice: the commitments are those of an honest client with these.
    fn announce(secrets: [Vec<i32>; 2], b: &Poly<Eval>, a: &Seed, rng: &mut Prg) -> (KeyProof, Vec<u8>) {
        let parameters = parameters();
        let expanded = expand(&parameters, a);
        let seeds: Vec<Seed> = (0..ROUNDS).map(|_| Seed::random(rng)).collect();
        let proof = KeyProof { parameters: parameters.clone(), secrets, seeds };
        let mut writer = Writer::new();
        write_poly(b, &mut writer);
        for seed in &proof.seeds {
            let boxes = drawn(&parameters, seed);
            writer.bytes(&hashed(OF_SEED, seed.as_bytes()));
            writer.bytes(&hash_of_poly(&combine(&expanded, &boxes, &parameters)));
            writer.bytes(&hashed(OF_SUM, &proof.shown(&boxes).unwrap_or_default()));
        }
        (proof, writer.into_bytes())
    }

    #[test]
    fn an_honest_key_is_proved_and_encrypts() {
        let (parameters, mut rng) = (parameters(), Prg::from_seed([1; 16]));
        let a = Seed::random(&mut rng);
        let (secret, proof, announced) = SecretKey::generate_proven(&parameters, &a, &mut rng);
        assert_eq!(announced.len(), KeyProof::announced_len(&parameters));
        let challenge = KeyChallenge::draw(&mut rng);
        assert_eq!(KeyChallenge::from_bytes(&challenge.to_bytes()).unwrap(), challenge);
        let answer = proof.answer(&challenge);
        assert_eq!(answer.len(), KeyProof::answer_len(&parameters));
        let verify = |challenge: &KeyChallenge, announced: &[u8], answer: &[u8]| {
            KeyVerifier::read(&parameters, &a, announced)?.finish(challenge, answer)
        };
        let public = verify(&challenge, &announced, &answer).unwrap();
        let zero = public.encrypt_zero(parameters.limbs(), &mut rng);
        let modulus = PlaintextModulus::new(&parameters, 1_032_193).unwrap();
        let message = secret.decrypt(&zero, &modulus).unwrap();
        let values = CoefficientEncoder::new(&parameters, 1_032_193).unwrap().decode(&message).unwrap();
        assert!(values.iter().all(|value| *value == 0));

        // Another challenge, or a byte of anything: the key, each commitment, an answer.
        assert!(verify(&KeyChallenge::draw(&mut rng), &announced, &answer).is_err());
        let first_hash = announced.len() - ROUNDS * 3 * HASH;
        // The key, and of the first and the last round what is compared whatever is asked.
        for place in [first_hash - 10, first_hash + HASH, announced.len() - 2 * HASH] {
            let mut changed = announced.clone();
            changed[place] ^= 1;
            assert!(verify(&challenge, &changed, &answer).is_err(), "byte {place}");
        }
        for place in [20, answer.len() / 2, answer.len() - 20] {
            let mut changed = answer.clone();
            changed[place] ^= 1;
            assert!(verify(&challenge, &announced, &changed).is_err(), "byte {place}");
        }
        assert!(verify(&challenge, &announced, &answer[1..]).is_err());
        assert!(KeyChallenge::from_bytes(&[0; KeyChallenge::ENCODED_LEN]).is_err());
    }

    /// Keys for which no short secrets are known, claimed with those of an honest one; and secrets that are no longer short.
    #[test]
    fn keys_without_short_secrets_are_refused() {
        let (parameters, mut rng) = (parameters(), Prg::from_seed([2; 16]));
        let a = Seed::random(&mut rng);
        let expanded = expand(&parameters, &a);
        let n = parameters.degree();
        let short = || [vec![1; n], vec![-2; n]];
        let mut uniform = combine(&expanded, &short(), &parameters);
        uniform.limb_mut(1)[5] ^= 1;
        let mut halved = combine(&expanded, &short(), &parameters);
        for (limb, q) in halved.limbs_mut().zip(parameters.moduli()) {
            for x in limb.iter_mut() {
                *x = q.mul(*x, q.value().div_ceil(2));
            }
        }
        let long = || {
            let mut secrets = short();
            secrets[0][7] = 1 << 22;
            secrets
        };
        let cheats = [
            (short(), uniform),
            (short(), expanded.clone()),
            (short(), halved),
            (short(), Poly::zero(expanded.basis())),
            (long(), combine(&expanded, &long(), &parameters)),
        ];
        for (number, (secrets, b)) in cheats.into_iter().enumerate() {
            let (proof, announced) = announce(secrets, &b, &a, &mut rng);
            let challenge = KeyChallenge::draw(&mut rng);
            let verifier = KeyVerifier::read(&parameters, &a, &announced).unwrap();
            let refused = verifier.finish(&challenge, &proof.answer(&challenge));
            assert!(matches!(refused, Err(BfvError::Unproved)), "key {number}");
        }
    }

    /// What is shown has no coefficient within the secrets' bounds of an end: the same values are possible for all secrets.
    #[test]
    fn sums_that_would_tell_of_secrets_are_not_shown() {
        let (parameters, n) = (parameters(), parameters().degree());
        let proof = |s: i32, e: i32| KeyProof {
            parameters: parameters.clone(),
            secrets: [vec![s; n], vec![e; n]],
            seeds: Vec::new(),
        };
        let boxes = |r: i32, f: i32| {
            let mut boxes = [vec![0; n], vec![0; n]];
            (boxes[0][9], boxes[1][9]) = (r, f);
            boxes
        };
        let (r, f) = (1 << 20, 1 << 25);
        let bound = ERROR as i32;
        for (s, e) in [(0, 0), (1, bound), (-1, -bound)] {
            let shown = |r: i32, f: i32| proof(s, e).shown(&boxes(r - s, f - e)).is_some();
            assert!(shown(1 - r, bound - f) && shown(r - 2, f - bound - 1));
            assert!(!shown(-r, 0) && !shown(r - 1, 0) && !shown(0, bound - f - 1) && !shown(0, f - bound));
        }
    }

    #[test]
    fn a_challenge_asks_for_every_round_half_of_the_time() {
        let mut rng = Prg::from_seed([3; 16]);
        let mut counts = [0_u32; ROUNDS];
        for _ in 0..4096 {
            let KeyChallenge(asked) = KeyChallenge::draw(&mut rng);
            counts.iter_mut().zip(asked).for_each(|(count, asked)| *count += u32::from(asked));
        }
        // Six deviations.
        assert!(counts.iter().all(|count| count.abs_diff(2048) < 192), "{counts:?}");
    }
}
