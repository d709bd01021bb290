//! Numbers of operations on ciphertexts, as the paper counts them (`rot`, `AddCC`, `MultPC`, `MultCC`).

use std::ops::{Add, AddAssign, Mul};

/// Operations of an algorithm on ciphertexts. An exchange of the rows of slots is a rotation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operations {
    /// Rotations, each with a key switching.
    pub rotations: usize,
    /// Additions of ciphertexts.
    pub additions: usize,
    /// Products of ciphertexts and plaintexts.
    pub multiplications: usize,
    /// Products of ciphertexts.
    pub ciphertext_multiplications: usize,
}

impl Operations {
    /// None.
    pub const NONE: Self =
        Self { rotations: 0, additions: 0, multiplications: 0, ciphertext_multiplications: 0 };

    /// One product with a plaintext.
    pub const PRODUCT: Self = Self { multiplications: 1, ..Self::NONE };

    /// Rotations whose results are added.
    #[must_use]
    pub const fn rotate_and_add(rotations: usize) -> Self {
        Self { rotations, additions: rotations, ..Self::NONE }
    }

    /// All together: what the paper calls HOPs.
    #[must_use]
    pub const fn total(self) -> usize {
        self.rotations + self.additions + self.multiplications + self.ciphertext_multiplications
    }
}

impl Add for Operations {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            rotations: self.rotations + other.rotations,
            additions: self.additions + other.additions,
            multiplications: self.multiplications + other.multiplications,
            ciphertext_multiplications: self.ciphertext_multiplications + other.ciphertext_multiplications,
        }
    }
}

impl AddAssign for Operations {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Mul<usize> for Operations {
    type Output = Self;

    fn mul(self, times: usize) -> Self {
        Self {
            rotations: self.rotations * times,
            additions: self.additions * times,
            multiplications: self.multiplications * times,
            ciphertext_multiplications: self.ciphertext_multiplications * times,
        }
    }
}
