//! Values modulo a product of primes, as residues modulo each.

use lanner_bfv::{Parameters, SlotEncoder};
use lanner_primitives::parallel;
use lanner_step::{ProtocolError, Result};

/// An encoder for each prime of a product.
pub struct Primes {
    primes: Vec<u64>,
    encoders: Vec<SlotEncoder>,
}

impl Primes {
    /// For ciphertexts of these parameters.
    ///
    /// # Errors
    /// [`ProtocolError::Parameters`] unless there are one to three different primes whose product is below `2^96`;
    /// [`ProtocolError::Bfv`] unless each is `1 mod 2N`.
    pub fn new(parameters: &Parameters, primes: &[u64]) -> Result<Self> {
        let different = primes.iter().enumerate().all(|(i, prime)| !primes[..i].contains(prime));
        ProtocolError::refuse_if(!different || product(primes).is_none(), "the primes of encrypted values")?;
        let encoders = primes.iter().map(|prime| SlotEncoder::new(parameters, *prime));
        Ok(Self { primes: primes.to_vec(), encoders: encoders.collect::<Result<_, _>>()? })
    }

    /// The encoders, in the order of the primes.
    #[must_use]
    pub fn encoders(&self) -> &[SlotEncoder] {
        &self.encoders
    }

    /// What is made with each encoder, several at once.
    pub(super) fn each<T: Send>(
        &self,
        make: impl Fn(usize, &SlotEncoder) -> Result<T> + Send + Sync,
    ) -> Result<Vec<T>> {
        parallel::map(self.encoders.iter().enumerate(), |(number, encoder)| make(number, encoder))
            .into_iter()
            .collect()
    }

    /// The integers of smallest absolute value with these residues, given prime by prime.
    #[must_use]
    pub fn recombine(&self, residues: &[Vec<u64>]) -> Vec<i128> {
        let count = residues.first().map_or(0, Vec::len);
        let modulus = product(&self.primes).unwrap_or(1);
        let centred = |x: u128| if x > modulus / 2 { x as i128 - modulus as i128 } else { x as i128 };
        let of = |element: usize| {
            // Garner's mixed radix: x is known modulo `known`, and the next digit is what is missing modulo the next prime.
            let (mut x, mut known) = (0_u128, 1_u128);
            for (prime, residues) in self.primes.iter().zip(residues) {
                let p = u128::from(*prime);
                let missing = (u128::from(residues[element]) + p - x % p) % p;
                x += known * (missing * inverse(known % p, p) % p);
                known *= p;
            }
            centred(x)
        };
        (0..count).map(of).collect()
    }
}

/// The product of one to three primes, if it is below `2^96`.
pub(super) fn product(primes: &[u64]) -> Option<u128> {
    let all = primes.iter().try_fold(1_u128, |product, prime| product.checked_mul((*prime).into()))?;
    ((1..=3).contains(&primes.len()) && all >> 96 == 0).then_some(all)
}

/// The largest of some primes.
#[must_use]
pub fn largest(primes: &[u64]) -> u64 {
    primes.iter().max().copied().unwrap_or(1)
}

/// The residue of an integer.
pub(super) fn residue(x: i128, prime: u64) -> u64 {
    x.rem_euclid(prime.into()) as u64
}

/// `x^(p-2) mod p`, for a prime below `2^41`.
fn inverse(x: u128, p: u128) -> u128 {
    let (mut power, mut base, mut exponent) = (1, x, p - 2);
    while exponent > 0 {
        if exponent & 1 == 1 {
            power = power * base % p;
        }
        base = base * base % p;
        exponent >>= 1;
    }
    power
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use lanner_bfv::ParameterSet;

    use super::*;

    const PRIMES: [u64; 3] = [2_147_352_577, 2_146_959_361, 2_146_041_857];

    #[test]
    fn residues_give_the_integers_back() {
        let parameters = ParameterSet::L.parameters().unwrap();
        for count in 1..=3 {
            let primes = Primes::new(&parameters, &PRIMES[..count]).unwrap();
            let half = (product(&PRIMES[..count]).unwrap() / 2) as i128;
            let integers = [0, 1, -1, half, -half, half - 1, 1 - half, half / 3, -half / 7];
            let residues: Vec<Vec<u64>> =
                PRIMES[..count].iter().map(|p| integers.iter().map(|x| residue(*x, *p)).collect()).collect();
            assert_eq!(primes.recombine(&residues), integers);
        }
    }

    #[test]
    fn other_primes_are_refused() {
        let parameters = ParameterSet::L.parameters().unwrap();
        let [first, second, third] = PRIMES;
        for primes in [
            vec![],
            vec![first, first],
            vec![first, second, third, 268_238_849],
            vec![65_537 * 3],
            vec![1_032_193],
        ] {
            assert!(Primes::new(&parameters, &primes).is_err(), "{primes:?}");
        }
    }
}
