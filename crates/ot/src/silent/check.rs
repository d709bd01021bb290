//! The receiver of silent trees checks that their sender's message belongs to trees.
//!
//! ```text
//! S                                                    R
//!    T_j = H(v_j), by the tree's hash                     T_j = H(w_j), but for j = alpha
//!    blocks of the levels; sum of T_j of each tree -->    T_alpha = that sum less the other T_j
//!    keys: a hash of these                                the same
//!    c = sums of (T_j + k_j) (T_j' + k_j')                the same, for two sets of keys
//!    SHA-256(c of each tree)                       -->    is equal, or the session is over
//! ```
//!
//! A tree's leaves but `alpha` follow from the message, the receiver's transfers and `alpha`. Let the message be wrong: two places that both pass have
//! the same tags, or `c` of different tags is the same, so that they are places of one tree's leaves, but for collisions:
//!
//! - of `c`: the pseudo-dot product of [BHKKR99](https://www.cs.ucdavis.edu/~rogaway/umac/umac_proc.pdf) ("UMAC") over `GF(2^128)` with keys that the message is hashed to, twice, so that
//!   two lists of tags agree with probability `2^-256`;
//! - of tags: a wrong sum is wrong in a leaf for either of two places, by one difference that the sender chooses for both. Two collisions with the
//!   same difference in one tree take about `2^119` calls of the cipher.
//!
//! So a sender is right for some places of each tree. It passes if the receiver's is one of them: it learns `b` bits of noise with probability `2^-b`,
//! and is caught otherwise. What the receiver gets for `alpha` is the sum of the other leaves whatever was sent.
//!
//! The receiver learns `T_alpha`, one hash more of a string with delta in it under the tree's key.

use lanner_primitives::{Block, CorrelationRobustHash, Prg, Seed, field_dot, parallel};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

/// A digest as it is compared.
pub(super) type Hash = [u8; 32];

/// Bytes of the digest of a message.
pub(super) const DIGEST_BYTES: usize = size_of::<Hash>();

/// Replaces the leaves of a tree by their tags; returns their sum.
pub(super) fn tag(hash: &CorrelationRobustHash, leaves: &mut [Block]) -> Block {
    // A tree's levels have the tweaks below.
    let first = leaves.len() as u64;
    hash.hash_in_place(leaves, first);
    leaves.iter().fold(Block::ZERO, |sum, tag| sum ^ *tag)
}

/// The digest of the tags of trees of so many leaves, the first of them tree `first` of their source, under keys that `message` gives.
pub(super) fn digest(first: u64, message: &[Block], tags: &[Block], leaves: usize) -> Hash {
    let seeds: Hash = Sha256::new_with_prefix(b"lanner OT silent trees")
        .chain_update(first.to_le_bytes())
        .chain_update(Block::slice_as_bytes(message))
        .finalize()
        .into();
    let mut keys = vec![Block::ZERO; 2 * leaves];
    for (seed, keys) in seeds.as_chunks().0.iter().zip(keys.chunks_mut(leaves)) {
        Prg::new(Seed::from_bytes(*seed)).fill_blocks(keys);
    }
    let mut products = Zeroizing::new(vec![[Block::ZERO; 2]; tags.len() / leaves]);
    parallel::for_each(tags.chunks(leaves).zip(products.iter_mut()), |(tags, products)| {
        let mut keyed = Zeroizing::new([Block::ZERO; PIECE]);
        for (keys, product) in keys.chunks(leaves).zip(products) {
            let (keys, tags) = (keys.chunks(PIECE), tags.chunks(PIECE));
            for (keys, tags) in keys.zip(tags) {
                let keyed = &mut keyed[..tags.len()];
                keyed.iter_mut().zip(keys).zip(tags).for_each(|((keyed, key), tag)| *keyed = *key ^ *tag);
                let (left, right) = keyed.split_at(keyed.len() / 2);
                *product ^= field_dot(left, right);
            }
        }
    });
    let mut digest = Sha256::new_with_prefix(b"lanner OT silent tags");
    digest.update(seeds);
    digest.update(Block::slice_as_bytes(products.as_flattened()));
    digest.finalize().into()
}

/// Tags that are multiplied together: enough to be worth the reduction, few enough to stay near.
const PIECE: usize = 256;

#[cfg(test)]
mod tests {
    use rand_core::SeedableRng;

    use super::*;

    const LEAVES: usize = 512;

    #[test]
    fn digests_are_of_every_tag_every_block_and_their_place() {
        let mut rng = Prg::from_seed([6; 16]);
        let (mut message, mut tags) = (vec![Block::ZERO; 30], vec![Block::ZERO; 3 * LEAVES]);
        rng.fill_blocks(&mut message);
        rng.fill_blocks(&mut tags);
        let honest = digest(5, &message, &tags, LEAVES);
        assert_eq!(honest, digest(5, &message, &tags, LEAVES));
        assert_ne!(honest, digest(6, &message, &tags, LEAVES));
        for at in [0, 17, 29] {
            let mut message = message.clone();
            message[at] ^= Block(1 << 127);
            assert_ne!(honest, digest(5, &message, &tags, LEAVES));
        }
        // In the first, a middle and the last tree; in either half of a piece.
        for at in [0, 255, 256, 511, 700, 3 * LEAVES - 1] {
            let mut tags = tags.clone();
            tags[at] ^= Block(1);
            assert_ne!(honest, digest(5, &message, &tags, LEAVES), "tag {at}");
        }
        tags.swap(3, 4);
        assert_ne!(honest, digest(5, &message, &tags, LEAVES));
        let moved = [&tags[LEAVES..], &tags[..LEAVES]].concat();
        assert_ne!(digest(5, &message, &tags, LEAVES), digest(5, &message, &moved, LEAVES));
    }

    /// What keys are for: without them tags that change in one factor of a product of which the other is 0 pass.
    #[test]
    fn a_tag_beside_one_that_is_zero_counts() {
        let (message, mut tags) = (vec![Block(3); 10], vec![Block::ZERO; LEAVES]);
        let zeros = digest(0, &message, &tags, LEAVES);
        tags[9] = Block(1);
        let (left, right) = tags[..PIECE].split_at(PIECE / 2);
        assert!(field_dot(left, right) == Block::ZERO);
        assert_ne!(zeros, digest(0, &message, &tags, LEAVES));
    }
}
