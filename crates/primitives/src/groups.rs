//! A key of the hash's cipher for each group of hashes.

use crate::{Block, CorrelationRobustHash};

/// The hashes of groups of work, each under a key of its own, all made from one public salt.
///
/// Whoever evaluates the cipher once tries one guess of a secret at all hashes under its key that have the secret in them: so many groups as a
/// salt has, what a guess is worth follows from the hashes of one.
pub struct HashGroups {
    keys: CorrelationRobustHash,
}

impl HashGroups {
    /// Of a salt that makes no other keys.
    #[must_use]
    pub fn new(salt: Block) -> Self {
        Self { keys: CorrelationRobustHash::new(salt) }
    }

    /// The hash of a group: different numbers have different keys.
    #[must_use]
    pub fn group(&self, number: u64) -> CorrelationRobustHash {
        CorrelationRobustHash::new(self.keys.hash(Block::ZERO, number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_hash_under_what_the_salt_encrypts_their_number_to() {
        let (salt, x) = (Block(7), Block(5));
        for number in [0, 1, 1 << 63] {
            let key = CorrelationRobustHash::new(salt).hash(Block::ZERO, number);
            assert!(
                HashGroups::new(salt).group(number).hash(x, 3) == CorrelationRobustHash::new(key).hash(x, 3)
            );
        }
        let hashes = [0, 1, 1 << 63].map(|number| HashGroups::new(salt).group(number).hash(x, 3));
        assert!(hashes[0] != hashes[1] && hashes[0] != hashes[2] && hashes[1] != hashes[2]);
    }
}
