//! Trees are checked once, at set-up, and then no party can have chosen what their leaves expand to.
//!
//! ```text
//! R: all leaves of every tree                      S: all but one of every tree
//!    tag = SHA-256(tree, leaf)
//!    for each tree the sum of its tags  ----------->  the missing tag: the sum less the known tags
//!    SHA-256(all tags)                  ----------->  equal, or the session is over
//! both: context = SHA-256(salt of S, message of R); a leaf expands from SHA-256(context, tree, leaf)
//! ```
//!
//! The consistency check of punctured trees of [Roy22](https://eprint.iacr.org/2022/192), with SHA-256 in place of a generator of twice the
//! length and one digest for all trees. A receiver whose trees give the sender other leaves for another delta passes only with the
//! tags of the sender's: it guesses the bits of delta that the leaves depend on, so `b` bits are learnt with probability `2^-b`.
//!
//! What a leaf expands to depends on the whole message and on a salt that the sender draws. So a receiver can change what it gets
//! only in all of its transfers at once, and cannot choose blocks for which hashes of its peer are related.

use lanner_primitives::{Block, Seed};
use sha2::{Digest, Sha256};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};
use zeroize::{Zeroize, Zeroizing};

use super::{FIELD_BITS, LEAVES, TREES};

/// A hash as it is compared.
pub(super) type Hash = [u8; 32];

/// Bytes of what proves a set-up's trees: a sum of tags for each, and the digest of all.
pub(super) const PROOF_BYTES: usize = (TREES + 1) * size_of::<Hash>();

/// The tags of the leaves that are known, tree by tree.
pub(super) struct Tags {
    digest: Sha256,
    trees: u8,
}

impl Tags {
    pub(super) fn new() -> Self {
        Self { digest: Sha256::new_with_prefix(b"lanner OT tags"), trees: 0 }
    }

    fn of(&mut self, leaves: &[Block; LEAVES]) -> Zeroizing<[Hash; LEAVES]> {
        let tree = self.trees;
        self.trees += 1;
        Zeroizing::new(leaves.map(|leaf| hash(b"lanner OT tag", &[&[tree], &leaf.to_bytes()])))
    }

    /// Notes a tree that is known whole; returns the sum of its tags.
    pub(super) fn whole(&mut self, leaves: &[Block; LEAVES]) -> Hash {
        let tags = self.of(leaves);
        self.digest.update(tags.as_flattened());
        tags.iter().fold([0; 32], add)
    }

    /// Notes a tree of which place 0 is missing, place `y` being that of leaf `y xor alpha`, given the sum of all tags.
    pub(super) fn punctured(&mut self, leaves: &[Block; LEAVES], alpha: [bool; FIELD_BITS], sum: &Hash) {
        let mut tags = self.of(leaves);
        tags[0] = tags[1..].iter().fold(*sum, add);
        // From places to leaves, with no index that depends on alpha.
        for (bit, alpha) in alpha.iter().enumerate() {
            let swap = Choice::from(u8::from(*alpha));
            for place in (0..LEAVES).filter(|place| place >> bit & 1 == 0) {
                let (low, high) = tags.split_at_mut(place | 1 << bit);
                for (a, b) in low[place].iter_mut().zip(&mut high[0]) {
                    u8::conditional_swap(a, b, swap);
                }
            }
        }
        self.digest.update(tags.as_flattened());
    }

    /// The digest of all trees' tags.
    pub(super) fn digest(self) -> Hash {
        self.digest.finalize().into()
    }

    /// Whether it is the digest that the peer sent.
    pub(super) fn equal(self, sent: &[u8]) -> bool {
        self.digest().ct_eq(sent).into()
    }
}

fn add(sum: Hash, tag: &Hash) -> Hash {
    std::array::from_fn(|i| sum[i] ^ tag[i])
}

/// The hash of some parts whose lengths follow from the name.
pub(super) fn hash(name: &[u8], parts: &[&[u8]]) -> Hash {
    let mut digest = Sha256::new_with_prefix(name);
    for part in parts {
        digest.update(part);
    }
    digest.finalize().into()
}

/// What both parties of a set-up said, by which all that follows is keyed.
pub(super) struct Context(Hash);

impl Context {
    pub(super) fn new(salt: Block, message: &[u8]) -> Self {
        Self(hash(b"lanner OT set-up", &[&salt.to_bytes(), message]))
    }

    pub(super) const fn as_bytes(&self) -> &Hash {
        &self.0
    }

    /// The salt of the transfers' hashes.
    pub(super) fn salt(&self) -> Block {
        first_block(&hash(b"lanner OT hashes", &[&self.0]))
    }

    /// What the leaves of a tree are expanded from.
    pub(super) fn seeds(&self, tree: usize, leaves: &[Block; LEAVES]) -> Vec<Seed> {
        let seed = |leaf: &Block| {
            let mut bytes = hash(b"seed", &[&self.0, &[tree as u8], &leaf.to_bytes()]);
            let seed = Seed::from_bytes(first_block(&bytes).to_bytes());
            bytes.zeroize();
            seed
        };
        leaves.iter().map(seed).collect()
    }
}

/// The first half of a hash.
pub(super) fn first_block(hash: &Hash) -> Block {
    Block::from_bytes(std::array::from_fn(|i| hash[i]))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use lanner_primitives::Prg;
    use rand_core::SeedableRng;

    use super::*;

    /// What the sender that misses `alpha` has of these leaves.
    fn known(leaves: &[Block; LEAVES], alpha: usize) -> ([Block; LEAVES], [bool; FIELD_BITS]) {
        let places = std::array::from_fn(|y| if y == 0 { Block::ZERO } else { leaves[y ^ alpha] });
        (places, std::array::from_fn(|bit| alpha >> bit & 1 == 1))
    }

    /// Whether the sender accepts, given the leaves that each party has of some trees.
    fn accepted(receiver: &[[Block; LEAVES]], sender: &[[Block; LEAVES]], alphas: &[usize]) -> bool {
        let (mut made, mut tags) = (Tags::new(), Tags::new());
        let sums: Vec<Hash> = receiver.iter().map(|leaves| made.whole(leaves)).collect();
        for ((leaves, alpha), sum) in sender.iter().zip(alphas).zip(&sums) {
            let (leaves, alpha) = known(leaves, *alpha);
            tags.punctured(&leaves, alpha, sum);
        }
        tags.equal(&made.digest())
    }

    fn trees(count: usize) -> Vec<[Block; LEAVES]> {
        let mut rng = Prg::from_seed([8; 16]);
        (0..count).map(|_| std::array::from_fn(|_| Block::random(&mut rng))).collect()
    }

    #[test]
    fn a_wrong_leaf_passes_only_where_the_sender_misses_it() {
        let honest = trees(3);
        for alpha in 0..LEAVES {
            assert!(accepted(&honest, &honest, &[alpha, 5, 15 - alpha]));
            for leaf in 0..LEAVES {
                let mut wrong = honest.clone();
                wrong[0][leaf] ^= Block(1);
                // One of the sixteen.
                assert_eq!(accepted(&wrong, &honest, &[alpha, 5, 9]), leaf == alpha);
            }
        }
        let mut wrong = honest.clone();
        wrong.swap(0, 1);
        assert!(!accepted(&wrong, &honest, &[0, 0, 0]));
    }

    #[test]
    fn a_check_without_one_tree_would_let_any_leaf_pass_there() {
        let honest = trees(2);
        let mut wrong = honest.clone();
        wrong[1][3] ^= Block(1);
        let first = |trees: &[[Block; LEAVES]]| [trees[0]];
        for alpha in 0..LEAVES {
            assert!(accepted(&first(&wrong), &first(&honest), &[alpha]));
            assert_eq!(accepted(&wrong, &honest, &[0, alpha]), alpha == 3);
        }
    }

    #[test]
    fn seeds_follow_from_all_that_was_said() {
        let leaves = trees(1)[0];
        let seed = |salt, message: &[u8], tree, place: usize| {
            let seeds = Context::new(Block(salt), message).seeds(tree, &leaves);
            *seeds[place].as_bytes()
        };
        let one = seed(1, b"message", 0, 0);
        assert_eq!(one, seed(1, b"message", 0, 0));
        assert!(
            [seed(2, b"message", 0, 0), seed(1, b"massage", 0, 0), seed(1, b"message", 1, 0)]
                .iter()
                .all(|other| *other != one)
        );
        assert_ne!(one, seed(1, b"message", 0, 1));
        assert!(Context::new(Block(1), b"a").salt() != Context::new(Block(1), b"b").salt());
    }
}
