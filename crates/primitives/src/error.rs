use thiserror::Error;

/// What can go wrong in this crate: misuse of a length, bytes that do not decode, or no entropy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PrimitivesError {
    /// A slice or vector has another length than the operation needs.
    #[error("a length of {got} where {expected} was due")]
    Length {
        /// The length that was due.
        expected: usize,
        /// The length that came.
        got: usize,
    },
    /// A bit vector's unused last bits are not zero.
    #[error("the padding of a bit vector of {bits} bits is not zero")]
    Padding {
        /// The number of bits that count.
        bits: usize,
    },
    /// The operating system gave no randomness.
    #[error("no randomness from the operating system: {0}")]
    Entropy(String),
}
