use lanner_ring::RingError;
use lanner_wire::DecodeError;
use thiserror::Error;

/// What can go wrong in this crate. No variant carries a secret value.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum BfvError {
    /// The ring degree has no entry in the security table.
    #[error("a ring degree of {degree} has no entry in the security table")]
    Degree {
        /// The refused degree.
        degree: usize,
    },
    /// A ciphertext modulus is not usable.
    #[error(
        "the ciphertext modulus {modulus} is not a prime = 1 mod 2 * {degree} of at most 50 bits, or repeats"
    )]
    Modulus {
        /// The refused modulus.
        modulus: u64,
        /// The ring degree.
        degree: usize,
    },
    /// The total modulus is too large for 128-bit security at this degree.
    #[error("log2(qP) = {bits:.1} exceeds the {limit} bits that are secure at ring degree {degree}")]
    Insecure {
        /// The ring degree.
        degree: usize,
        /// `log2(qP)` asked for.
        bits: f64,
        /// The bound at this degree.
        limit: u32,
    },
    /// The plaintext modulus is not usable.
    #[error("the plaintext modulus {modulus} is refused: {reason}")]
    PlaintextModulus {
        /// The refused modulus.
        modulus: u64,
        /// What it should be.
        reason: &'static str,
    },
    /// The noise budget of the parameters is negative for what was asked.
    #[error("{step}: a modulus of {needed:.1} bits is needed and {available:.1} bits are there")]
    Budget {
        /// The step that does not fit.
        step: &'static str,
        /// Bits needed.
        needed: f64,
        /// Bits the parameters have.
        available: f64,
    },
    /// The noise of a ciphertext may exceed what its blinding was made to hide.
    #[error("the noise may reach 2^{noise:.1} and the blinding hides up to 2^{hidden:.1}")]
    Underblinded {
        /// `log2` of the deviation bound of the ciphertext.
        noise: f64,
        /// `log2` of the deviation bound that the blinding was made for.
        hidden: f64,
    },
    /// A vector has another length than the operation needs.
    #[error("{got} values where {expected} are due")]
    Length {
        /// Values due.
        expected: usize,
        /// Values given.
        got: usize,
    },
    /// A value is not below the plaintext modulus.
    #[error("value {index} is not below the plaintext modulus {modulus}")]
    Range {
        /// Where the value is.
        index: usize,
        /// The plaintext modulus.
        modulus: u64,
    },
    /// A public key came with a proof that does not hold.
    #[error("the peer proved nothing of its key")]
    Unproved,
    /// Two operands belong to different parameters, plaintext moduli, levels or bases.
    #[error("the operands differ in {what}")]
    Mismatch {
        /// In what they differ.
        what: &'static str,
    },
    /// Key switching needs a special modulus, and the parameters have none.
    #[error("the parameters have no special modulus, so there is no key switching")]
    NoSpecialModulus,
    /// No key for this automorphism is in the set.
    #[error("the evaluation keys have none for the Galois element {element}")]
    MissingKey {
        /// The Galois element asked for.
        element: usize,
    },
    /// The set has no key for products of ciphertexts.
    #[error("the evaluation keys have none for products of ciphertexts")]
    MissingProductKey,
    /// A number of limbs is not possible, or more than a key was made for.
    #[error("{got} limbs where 1 to {most} are possible")]
    Limbs {
        /// Limbs asked for, or of a ciphertext.
        got: usize,
        /// The most there are.
        most: usize,
    },
    /// A ciphertext is at its last limb.
    #[error("a ciphertext of one limb cannot be switched down")]
    LastLimb,
    /// The ring refused a value.
    #[error(transparent)]
    Ring(#[from] RingError),
    /// Bytes do not decode.
    #[error(transparent)]
    Decode(#[from] DecodeError),
}
