//! BFV homomorphic encryption ([FV12](https://eprint.iacr.org/2012/144)) for two parties: a client who holds the secret
//! key, and a server who evaluates linear functions, and products of what is encrypted, with weights that the client must not learn.
//!
//! - [`Parameters`]: ring degree and moduli, refused unless they give 128 bits of security.
//! - [`SlotEncoder`], [`CoefficientEncoder`]: vectors modulo a plaintext modulus `t`. No key depends on `t`.
//! - [`SecretKey`], [`PublicKey`], [`EvaluationKeys`]: the client's keys; uploads are symmetric and seeded. A [`NeededKey`] says what an
//!   evaluation key is for, and for how many limbs.
//! - [`Evaluator`], [`Hoisted`], [`LinearCombination`], [`ExtendedCombination`]: what the server computes, on ciphertexts of all limbs or of
//!   those that are left.
//! - [`function_privacy`]: the one way in which a ciphertext leaves the server.
//! - [`halves`]: all of this with most of the work before the message is known.
//! - [`NoiseBound`]: bounds on the noise from public quantities, carried by every [`Ciphertext`].
//!
//! Threat model: both parties follow the protocol and look at everything they see. Messages are hidden from the server
//! by ring-LWE with ternary secrets; the server's function is hidden from the client by [`function_privacy`]. Messages are scaled
//! by `round(q m / t)` exactly, so that shares modulo `t` wrap without a trace.
//!
//! One layer `y = w0 x + w1 rot(x)`, of which the client learns `y - r` and the server keeps `r`:
//!
//! ```
//! use lanner_bfv::*;
//! # use lanner_primitives::Prg;
//! # let mut rng = Prg::from_entropy()?;
//! let parameters = ParameterSet::B.parameters()?;
//! let encoder = SlotEncoder::new(&parameters, 1_032_193)?;
//! let evaluator = Evaluator::new(&parameters);
//!
//! // Client: keys once, then an input.
//! let secret = SecretKey::generate(&parameters, &mut rng);
//! let public = PublicKey::generate(&secret, &mut rng);
//! let keys = EvaluationKeys::generate(&secret, &[evaluator.rotation(1)?], &mut rng)?;
//! let upload = secret.encrypt(&encoder.encode(&[3; 8192])?, &mut rng)?;
//!
//! // Server: what hides the function is made before the input comes.
//! let noise = NoiseBound::fresh().switched_key(&parameters).multiplied(&parameters, 1_032_193).times(2);
//! let blinding = Blinding::prepare(encoder.modulus(), &public, noise, &mut rng)?;
//! let mask = encoder.encode(&[1000; 8192])?; // uniform in every slot, in earnest
//! let x = upload.expand();
//! let mut y = LinearCombination::new(&parameters);
//! y.add(&x, &encoder.multiplier(&[5; 8192])?)?;
//! y.add(&evaluator.rotate(&x, 1, &keys)?, &encoder.multiplier(&[7; 8192])?)?;
//! let sealed = seal(&y.finish(), blinding, &mask)?;
//!
//! // Client: its share.
//! let share = encoder.decode(&secret.decrypt_sealed(&sealed)?)?;
//! assert!(share.iter().all(|c| (c + 1000) % 1_032_193 == 3 * 5 + 3 * 7));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod ciphertext;
mod coefficient;
mod combination;
mod encode;
mod error;
mod evaluator;
pub mod function_privacy;
pub mod halves;
mod hoisted_sums;
mod hoisting;
mod interleave;
mod key_switching;
mod keys;
mod noise;
mod packing;
mod parameters;
mod plaintext;
mod product;
mod reduce;
mod security;
mod switch;
mod wide;

pub use ciphertext::{Ciphertext, SeededCiphertext};
pub use coefficient::CoefficientFactor;
pub use combination::{ExtendedCombination, ExtendedCombinations, Factor, LinearCombination, Product};
pub use encode::{
    CoefficientEncoder, Encoded, Multiplier, MultiplierForm, PeriodicEncoder, PeriodicForm,
    PeriodicMultiplier, SlotEncoder,
};
pub use error::BfvError;
pub use evaluator::Evaluator;
pub use function_privacy::{Blinding, SealedCiphertext, seal};
pub use hoisted_sums::{HoistedRotation, HoistedTerms};
pub use hoisting::{ExtendedCiphertext, Hoisted};
pub use interleave::Interleaving;
pub use keys::{EvaluationKeys, KeyChallenge, KeyProof, KeyVerifier, NeededKey, PublicKey, SecretKey};
pub use lanner_ring::GaloisElement;
pub use noise::NoiseBound;
pub use parameters::{ParameterSet, Parameters};
pub use plaintext::{Plaintext, PlaintextModulus};
pub use security::SECURITY_BITS;
pub use wide::{C0Coefficients, LastCoefficient, WideFactor};
