//! The receiver of silent trees checks that their sender's message belongs to trees.
//!
//! ```text
//! S                                                    R
//!    T_j = H(v_j), by the tree's hash                     T_j = H(w_j), but for j = alpha
//!    blocks of the levels; sum of T_j of each tree -->    T_alpha = that sum less the other T_j
//!    keys: a hash of these                                the same
//!    c = sum of (T_j + k_j) (T_j' + k_j')                 the same
//!    SHA-256(c of each tree)                       -->    is equal, or the session is over
//! ```
//!
//! In a tree of `2^d` leaves all but `alpha` follow from the message, the receiver's transfers and `alpha`. Places that pass with the same leaves are
//! places of one tree, whose leaves add up to delta if there are two of them: what becomes of their transfers does not tell which of them it is. Two places
//! pass with other leaves only if
//!
//! - their lists of tags differ and `c` does not: `c` is the pseudo-dot product of BHKKR99 ("UMAC: fast and secure message authentication") over
//!   `GF(2^128)`. A message fixes all lists, and its hash then the keys. In the difference of `c` of two lists the products of two keys cancel, and a multiple of a key by
//!   a difference of tags, which is not 0, is left: it is 0 with probability `2^-128`. So two given lists need `2^128` messages, and any two of a tree, which has
//!   `2^(2d-1)` pairs, need `2^(129-2d)`, each with `2^d` calls of the cipher for its keys: `2^119` calls at `d = 10`;
//! - or tags of different leaves are equal. A sum that is wrong above the last level is wrong in two leaves or more beside a place, whose tags, 256 bits, all have to be
//!   those of other leaves: `2^128` calls. A wrong sum of the last level is wrong in one leaf, the one beside the place, by a difference that is the
//!   same for all places: each place that is to pass needs a collision of its own. One of them is a guess of the place. Two with the same difference take about `2^97`
//!   calls, a birthday for either and one among them, and three more than `2^118`, since two of their leaves come from one node.
//!
//! So a sender that passes with probability `2^-b` learns `b` bits of noise, and is caught otherwise; who has made `2^97` calls for a tree may guess `d` bits of it with
//! probability `2^(1-d)`, one bit more than another. What the receiver gets for `alpha` is the sum of the other leaves whatever was sent.
//!
//! The receiver learns `T_alpha`, one hash more of a string with delta in it under the tree's key.

use lanner_primitives::{Block, CorrelationRobustHash, Prg, field_dot, parallel};
use rand_core::SeedableRng;
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
    let said: Hash = Sha256::new_with_prefix(b"lanner OT silent trees")
        .chain_update(first.to_le_bytes())
        .chain_update(Block::slice_as_bytes(message))
        .finalize()
        .into();
    let mut seed = [0; 16];
    seed.copy_from_slice(&said[..16]);
    let mut keys = vec![Block::ZERO; leaves];
    Prg::from_seed(seed).fill_blocks(&mut keys);
    let mut products = Zeroizing::new(vec![Block::ZERO; tags.len() / leaves]);
    parallel::for_each(tags.chunks(leaves).zip(products.iter_mut()), |(tags, product)| {
        let mut keyed = Zeroizing::new([[Block::ZERO; AT_ONCE]; 2]);
        for (keys, tags) in keys.chunks(PIECE).zip(tags.chunks(PIECE)) {
            let (left_keys, right_keys) = keys.split_at(keys.len() / 2);
            let (left_tags, right_tags) = tags.split_at(tags.len() / 2);
            let left = left_keys.chunks(AT_ONCE).zip(left_tags.chunks(AT_ONCE));
            let right = right_keys.chunks(AT_ONCE).zip(right_tags.chunks(AT_ONCE));
            for (left, right) in left.zip(right) {
                let [first, second] = &mut *keyed;
                *product ^= field_dot(sum(left, first), sum(right, second));
            }
        }
    });
    let mut digest = Sha256::new_with_prefix(b"lanner OT silent tags");
    digest.update(said);
    digest.update(Block::slice_as_bytes(&products));
    digest.finalize().into()
}

/// The sums of keys and tags.
fn sum<'s>((keys, tags): (&[Block], &[Block]), sums: &'s mut [Block]) -> &'s [Block] {
    for ((sum, key), tag) in sums.iter_mut().zip(keys).zip(tags) {
        *sum = *key ^ *tag;
    }
    &sums[..tags.len()]
}

/// Tags whose first half is multiplied by the second.
const PIECE: usize = 256;
/// Products at once: enough to be worth the reduction, few enough to stay near and be wiped fast.
const AT_ONCE: usize = 32;

#[cfg(test)]
mod tests {
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
