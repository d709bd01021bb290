//! What can go wrong when circuits are built, garbled or evaluated.

use thiserror::Error;

/// An error of this crate. No variant carries a secret value.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum GcError {
    /// A slice, a bit vector or a chunk of tables has another length than the circuit and the instances give.
    #[error("{what}: expected {expected}, got {got}")]
    Length {
        /// What was too long or too short.
        what: &'static str,
        /// The length that the circuit and the number of instances give.
        expected: usize,
        /// The length that was passed.
        got: usize,
    },
    /// The two words of a word-level operation differ in width.
    #[error("words of {left} and {right} bits where equal widths are needed")]
    Width {
        /// Bits of the first word.
        left: usize,
        /// Bits of the second word.
        right: usize,
    },
    /// A wire that the builder did not make was used.
    #[error("a wire of another circuit was used")]
    ForeignWire,
    /// A circuit has more wires than an index can name.
    #[error("the circuit has too many wires")]
    TooLarge,
    /// The garbling offset has colour bit zero, so that a wire's two labels would have one colour.
    #[error("the lowest bit of delta must be one")]
    DeltaColour,
    /// The batch numbers of a session, or the size of its tables, would not fit their integer.
    #[error("the batch numbers of the session are used up")]
    BatchesExhausted,
    /// A library circuit does not exist for these parameters.
    #[error("no such circuit: {0}")]
    Parameters(&'static str),
    /// A share is not below its modulus.
    #[error("a share is out of the range of its ring")]
    ShareRange,
}
