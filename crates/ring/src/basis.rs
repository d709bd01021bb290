//! A residue number system: a degree and the primes whose product is the ciphertext modulus.

use std::sync::Arc;

use crate::modulus::Shoup;
use crate::{Modulus, Ntt, RingError};

/// The ring `Z_q[X]/(X^n + 1)` with `q` the product of distinct primes, each `1 mod 2n`.
///
/// Cloning and taking prefixes share the tables.
#[derive(Clone, Debug)]
pub struct RnsBasis {
    chain: Arc<Chain>,
    len: usize,
}

/// The full chain of primes with its constants; a basis is a prefix of it.
#[derive(Debug)]
struct Chain {
    degree: usize,
    ntts: Vec<Arc<Ntt>>,
    moduli: Vec<Modulus>,
    /// `inverses[k][i]` is `q_k^-1 mod q_i`, for `i < k`.
    inverses: Vec<Vec<Shoup>>,
}

impl RnsBasis {
    /// Builds the basis of the given primes, in this order.
    ///
    /// # Errors
    /// [`RingError::Basis`] for no prime or a repeated one; what [`Modulus::new`] and [`Ntt::new`] refuse.
    pub fn new(degree: usize, primes: &[u64]) -> Result<Self, RingError> {
        let moduli: Vec<_> = primes.iter().map(|q| Modulus::new(*q)).collect::<Result<_, _>>()?;
        Self::from_moduli(degree, &moduli)
    }

    /// Builds the basis of the given moduli, in this order.
    ///
    /// # Errors
    /// [`RingError::Basis`] for no prime or a repeated one; what [`Ntt::new`] refuses.
    pub fn from_moduli(degree: usize, moduli: &[Modulus]) -> Result<Self, RingError> {
        let ntts = moduli.iter().map(|modulus| Ntt::new(modulus, degree).map(Arc::new));
        Self::from_ntts(ntts.collect::<Result<_, _>>()?)
    }

    /// The basis of some limbs of this one, in the given order, sharing the transform tables.
    ///
    /// # Errors
    /// [`RingError::Basis`] for no index, a repeated one, or one out of range.
    pub fn select(&self, indices: &[usize]) -> Result<Self, RingError> {
        let ntts = indices.iter().map(|i| self.ntts().get(*i).cloned().ok_or(RingError::Basis));
        Self::from_ntts(ntts.collect::<Result<_, _>>()?)
    }

    fn from_ntts(ntts: Vec<Arc<Ntt>>) -> Result<Self, RingError> {
        let moduli: Vec<_> = ntts.iter().map(|ntt| *ntt.modulus()).collect();
        let repeated = |(i, a): (usize, &Modulus)| moduli[..i].iter().any(|b| a.value() == b.value());
        if moduli.is_empty() || moduli.iter().enumerate().any(repeated) {
            return Err(RingError::Basis);
        }
        let inverse = |of: &Modulus, modulus: &Modulus| modulus.shoup(modulus.inverse(of.value()));
        let row = |k: usize| moduli[..k].iter().map(|modulus| inverse(&moduli[k], modulus)).collect();
        let inverses = (0..moduli.len()).map(row).collect();
        let (degree, len) = (ntts[0].degree(), ntts.len());
        Ok(Self { chain: Arc::new(Chain { degree, ntts, moduli, inverses }), len })
    }

    /// The ring degree `n`.
    #[must_use]
    pub fn degree(&self) -> usize {
        self.chain.degree
    }

    /// The number of primes.
    #[must_use]
    #[allow(clippy::len_without_is_empty)] // A basis is never empty.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The primes.
    #[must_use]
    pub fn moduli(&self) -> &[Modulus] {
        &self.chain.moduli[..self.len]
    }

    /// The transforms, one for each prime.
    #[must_use]
    pub fn ntts(&self) -> &[Arc<Ntt>] {
        &self.chain.ntts[..self.len]
    }

    /// The basis of the first `len` primes.
    ///
    /// # Panics
    /// If `len` is zero or exceeds [`Self::len`].
    #[must_use]
    pub fn prefix(&self, len: usize) -> Self {
        assert!((1..=self.len).contains(&len), "prefix length");
        Self { chain: Arc::clone(&self.chain), len }
    }

    /// `q_last^-1 mod q_i` for each `i` before the last.
    #[must_use]
    pub fn last_inverses(&self) -> &[Shoup] {
        &self.chain.inverses[self.len - 1]
    }

    /// `(q_limbs ... q_last)^-1 mod q_i`, for `i < limbs`.
    pub(crate) fn inverse_of_last(&self, limbs: usize, i: usize) -> Shoup {
        let (modulus, inverses) = (&self.moduli()[i], &self.chain.inverses[limbs..self.len]);
        modulus.shoup(inverses.iter().fold(modulus.reduce(1), |product, row| modulus.mul(product, row[i].w)))
    }

    /// `log2 q`.
    #[must_use]
    pub fn log2(&self) -> f64 {
        self.moduli().iter().map(|modulus| (modulus.value() as f64).log2()).sum()
    }

    /// Whether both have the same degree and primes.
    #[must_use]
    pub fn same(&self, other: &Self) -> bool {
        let shared = Arc::ptr_eq(&self.chain, &other.chain) && self.len == other.len;
        shared
            || self.degree() == other.degree()
                && self.moduli().iter().map(Modulus::value).eq(other.moduli().iter().map(Modulus::value))
    }
}
