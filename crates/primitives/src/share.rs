//! One party's additive share of a vector.

use crate::Ring;
use rand_core::CryptoRng;
use thiserror::Error;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// One party's additive share of a vector of secrets; the secret is the sum of both parties' shares.
///
/// Invariant: every element of `values` is reduced in `ring`.
#[derive(Clone)]
pub struct Share {
    ring: Ring,
    values: Vec<u64>,
}

/// Why shares do not fit together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ShareError {
    /// Two shares differ in ring or length.
    #[error("shares of {left:?} and {right:?} do not fit together")]
    Mismatch {
        /// Ring and length of the first.
        left: (Ring, usize),
        /// Ring and length of the second.
        right: (Ring, usize),
    },
    /// An element is not reduced, or an index is outside the share.
    #[error("an element lies outside {ring:?}")]
    Range {
        /// The ring.
        ring: Ring,
    },
}

impl Share {
    /// A share of given reduced elements.
    ///
    /// # Errors
    /// [`ShareError::Range`] if an element is not reduced.
    pub fn new(ring: Ring, values: Vec<u64>) -> Result<Self, ShareError> {
        // A share from here on, so that values that are refused are erased too.
        let share = Self { ring, values };
        if !share.values.iter().all(|value| ring.contains(*value)) {
            return Err(ShareError::Range { ring });
        }
        Ok(share)
    }

    /// The share of a party that holds nothing yet.
    #[must_use]
    pub fn zero(ring: Ring, length: usize) -> Self {
        Self { ring, values: vec![0; length] }
    }

    /// Uniform elements: a mask.
    pub fn random(ring: Ring, length: usize, rng: &mut impl CryptoRng) -> Self {
        Self { ring, values: (0..length).map(|_| uniform(ring, rng)).collect() }
    }

    /// The share of a party that knows the signed secrets themselves.
    #[must_use]
    pub fn embed(ring: Ring, secrets: &[i64]) -> Self {
        Self { ring, values: secrets.iter().map(|x| ring.embed(*x)).collect() }
    }

    /// The ring.
    #[must_use]
    pub fn ring(&self) -> Ring {
        self.ring
    }

    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The reduced elements.
    #[must_use]
    pub fn values(&self) -> &[u64] {
        &self.values
    }

    /// The element-wise sum.
    ///
    /// # Errors
    /// [`ShareError::Mismatch`] if rings or lengths differ.
    pub fn add(&self, other: &Self) -> Result<Self, ShareError> {
        self.combine(other, Ring::add)
    }

    /// The element-wise difference.
    ///
    /// # Errors
    /// [`ShareError::Mismatch`] if rings or lengths differ.
    pub fn sub(&self, other: &Self) -> Result<Self, ShareError> {
        self.combine(other, Ring::sub)
    }

    fn combine(&self, other: &Self, operation: impl Fn(Ring, u64, u64) -> u64) -> Result<Self, ShareError> {
        if (self.ring, self.len()) != (other.ring, other.len()) {
            return Err(ShareError::Mismatch {
                left: (self.ring, self.len()),
                right: (other.ring, other.len()),
            });
        }
        let pairs = self.values.iter().zip(&other.values);
        Ok(Self { ring: self.ring, values: pairs.map(|(a, b)| operation(self.ring, *a, *b)).collect() })
    }

    /// `factor` times each element.
    #[must_use]
    pub fn scale(&self, factor: i64) -> Self {
        let factor = self.ring.factor(self.ring.embed(factor));
        Self { ring: self.ring, values: self.values.iter().map(|a| factor.times(*a)).collect() }
    }

    /// Element `i` of the result is element `sources[i].1` of `shares[sources[i].0]`, or zero where there is no source.
    ///
    /// # Errors
    /// [`ShareError::Mismatch`] if the rings differ; [`ShareError::Range`] if a source is outside its share.
    pub fn gather(shares: &[&Self], sources: &[Option<(usize, usize)>]) -> Result<Self, ShareError> {
        let ring = shares.first().map_or(Ring::Pow2(1), |share| share.ring);
        if let Some(other) = shares.iter().find(|share| share.ring != ring) {
            let left = (ring, shares[0].len());
            return Err(ShareError::Mismatch { left, right: (other.ring, other.len()) });
        }
        let mut gathered = Self { ring, values: Vec::with_capacity(sources.len()) };
        for source in sources {
            let element = match source {
                None => Some(0),
                Some((share, element)) => {
                    shares.get(*share).and_then(|share| share.values.get(*element)).copied()
                }
            };
            gathered.values.push(element.ok_or(ShareError::Range { ring })?);
        }
        Ok(gathered)
    }

    /// Element `i` of the result is the sum of the elements that `groups[i]` names: a local linear map with 0/1 weights.
    ///
    /// # Errors
    /// [`ShareError::Range`] if an index is outside the share.
    pub fn sum_groups(&self, groups: &[Vec<usize>]) -> Result<Self, ShareError> {
        let mut sums = Self { ring: self.ring, values: Vec::with_capacity(groups.len()) };
        for group in groups {
            let mut elements = group.iter().map(|i| self.values.get(*i).copied());
            let sum = elements.try_fold(0, |sum, element| Some(self.ring.add(sum, element?)));
            sums.values.push(sum.ok_or(ShareError::Range { ring: self.ring })?);
        }
        Ok(sums)
    }

    /// The secrets as signed integers, given the other party's share.
    ///
    /// # Errors
    /// [`ShareError::Mismatch`] if rings or lengths differ.
    pub fn reveal(&self, other: &Self) -> Result<Vec<i64>, ShareError> {
        Ok(self.add(other)?.values.iter().map(|a| self.ring.signed(*a)).collect())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.values.zeroize();
    }
}

impl ZeroizeOnDrop for Share {}

/// A uniform element. Rejection looks only at draws that are thrown away.
fn uniform(ring: Ring, rng: &mut impl CryptoRng) -> u64 {
    let bits = ring.bits();
    loop {
        let draw = rng.next_u64() >> (64 - bits);
        if ring.contains(draw) {
            return draw;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const P: Ring = Ring::Prime(1_032_193);

    #[test]
    fn shares_of_a_secret_reveal_it() {
        let secret = Share::embed(P, &[-5, 0, 7, 516_096, -516_096]);
        let mask = Share::new(P, vec![1, 0, 1_032_192, 516_097, 516_096]).unwrap();
        let other =
            Share::new(P, secret.values.iter().zip(mask.values()).map(|(x, m)| P.sub(*x, *m)).collect());
        assert_eq!(mask.reveal(&other.unwrap()).unwrap(), [-5, 0, 7, 516_096, -516_096]);
    }

    #[test]
    fn groups_sum_in_the_ring() {
        let share = Share::embed(P, &[1, -2, 3]);
        let sums = share.sum_groups(&[vec![0, 1], vec![2], vec![]]).unwrap();
        assert_eq!(sums.reveal(&Share::zero(P, 3)).unwrap(), [-1, 3, 0]);
        assert!(share.sum_groups(&[vec![3]]).is_err());
    }

    #[test]
    fn factors_and_movements_act_on_the_secrets() {
        let mask = Share::new(P, vec![5, 1_032_192, 77]).unwrap();
        let other = Share::embed(P, &[1, -2, 3]).sub(&mask).unwrap();
        let apply = |share: &Share| {
            let moved = Share::gather(&[share, &share.scale(-4)], &[Some((1, 2)), None, Some((0, 0))]);
            moved.unwrap()
        };
        assert_eq!(apply(&mask).reveal(&apply(&other)).unwrap(), [-12, 0, 1]);
        assert!(Share::gather(&[&mask], &[Some((1, 0))]).is_err());
        assert!(Share::gather(&[&mask], &[Some((0, 3))]).is_err());
        assert!(Share::gather(&[&mask, &Share::zero(Ring::Pow2(20), 3)], &[]).is_err());
    }

    #[test]
    fn other_rings_and_unreduced_elements_are_refused() {
        assert!(Share::new(P, vec![1_032_193]).is_err());
        assert!(Share::zero(P, 2).add(&Share::zero(Ring::Pow2(20), 2)).is_err());
        assert!(Share::zero(P, 2).add(&Share::zero(P, 3)).is_err());
    }
}
