//! What can be wrong with ring parameters or with data that claims to be a ring element.

use thiserror::Error;

/// Why a ring object could not be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RingError {
    /// The modulus is not a prime in `[2, 2^61)`.
    #[error("modulus {q} is not a prime below 2^61")]
    Modulus {
        /// The refused value.
        q: u64,
    },
    /// The degree is not a power of two in `[8, 65536]`.
    #[error("degree {n} is not a power of two between 8 and 65536")]
    Degree {
        /// The refused degree.
        n: usize,
    },
    /// `2n` does not divide `q - 1`, so there is no root of order `2n`.
    #[error("modulus {q} has no root of unity of order 2 * {n}")]
    NoRoot {
        /// The modulus.
        q: u64,
        /// The degree.
        n: usize,
    },
    /// `n` does not divide `q - 1`, so there is no root of order `n`.
    #[error("modulus {q} has no root of unity of order {n}")]
    NoRootOfOrder {
        /// The modulus.
        q: u64,
        /// The order.
        n: usize,
    },
    /// An RNS basis must hold at least one prime, and each at most once.
    #[error("an RNS basis needs distinct primes, and at least one")]
    Basis,
    /// The number of coefficients differs from what the basis needs.
    #[error("{found} coefficients where {expected} are needed")]
    Length {
        /// Number of coefficients needed.
        expected: usize,
        /// Number of coefficients given.
        found: usize,
    },
    /// A coefficient is not below its modulus.
    #[error("coefficient {index} of limb {limb} is not reduced")]
    NotReduced {
        /// Index of the limb.
        limb: usize,
        /// Index inside the limb.
        index: usize,
    },
    /// A Galois element must be odd and below `2n`.
    #[error("{element} is not an odd number below 2 * {n}")]
    GaloisElement {
        /// The refused exponent.
        element: usize,
        /// The degree.
        n: usize,
    },
    /// The requested kernel backend does not exist here or cannot serve this modulus.
    #[error("this backend is not available for modulus {q}")]
    Backend {
        /// The modulus.
        q: u64,
    },
}
