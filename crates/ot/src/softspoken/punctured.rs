//! A tree of 16 seeds of which one party misses one leaf: the punctured pseudorandom function of
//! [GGM86](https://doi.org/10.1145/6490.6503).
//!
//! Leaves are named by the bits on their path, the root's step being the highest. The party that misses leaf `alpha`
//! keeps its nodes by their distance `y = x xor alpha` from the missing path, so that what it misses is always node 0
//! and no index depends on `alpha`.
//!
//! Security: a node's children are the first two blocks of its pseudorandom stream; the missing leaf stays pseudorandom
//! to who holds the others.

use lanner_primitives::{Block, Prg, Seed};
use subtle::{Choice, ConditionallySelectable};
use zeroize::Zeroizing;

use super::{FIELD_BITS, LEAVES};

/// The blocks that complete one tree: a masked pair for each level below the first.
pub const PUNCTURE_BLOCKS: usize = 2 * (FIELD_BITS - 1);

/// Builds a tree from the key pairs of four base OTs; pair `b` belongs to the level that decides bit `b` of a leaf.
///
/// Returns all leaves and what the other party needs to know all but one of them.
#[must_use]
pub fn build(keys: &[[Block; 2]; FIELD_BITS]) -> (Zeroizing<[Block; LEAVES]>, [Block; PUNCTURE_BLOCKS]) {
    let top = keys[FIELD_BITS - 1];
    let mut nodes = Zeroizing::new([Block::ZERO; LEAVES]);
    // The other party gets the child on the side it does not descend to: choice 0 learns node 1.
    nodes[0] = top[1];
    nodes[1] = top[0];
    let mut puncture = [Block::ZERO; PUNCTURE_BLOCKS];
    for level in 1..FIELD_BITS {
        let mut sums = [Block::ZERO; 2];
        for parent in (0..1 << level).rev() {
            let children = children(nodes[parent]);
            for (side, child) in children.iter().enumerate() {
                nodes[2 * parent + side] = *child;
                sums[side] ^= *child;
            }
        }
        let pair = keys[FIELD_BITS - 1 - level];
        puncture[2 * level - 2] = sums[1] ^ pair[0];
        puncture[2 * level - 1] = sums[0] ^ pair[1];
    }
    (nodes, puncture)
}

/// Rebuilds a tree from one key of each pair: `keys[b]` was chosen by `alpha[b]`, bit `b` of the missing leaf.
///
/// Returns leaf `y xor alpha` in place `y`, for `y` from 1; place 0 holds nothing of use.
#[must_use]
pub fn complete(
    keys: &[Block; FIELD_BITS],
    alpha: &[bool; FIELD_BITS],
    puncture: &[Block; PUNCTURE_BLOCKS],
) -> Zeroizing<[Block; LEAVES]> {
    let mut nodes = Zeroizing::new([Block::ZERO; LEAVES]);
    nodes[1] = keys[FIELD_BITS - 1];
    for level in 1..FIELD_BITS {
        let bit = FIELD_BITS - 1 - level;
        let towards = Choice::from(u8::from(alpha[bit]));
        let mut sum = Block::ZERO;
        for parent in (1..1 << level).rev() {
            let [mut near, mut far] = children(nodes[parent]);
            Block::conditional_swap(&mut near, &mut far, towards);
            nodes[2 * parent] = near;
            nodes[2 * parent + 1] = far;
            sum ^= far;
        }
        let (zero, one) = (puncture[2 * level - 2], puncture[2 * level - 1]);
        nodes[1] = Block::conditional_select(&zero, &one, towards) ^ keys[bit] ^ sum;
        nodes[0] = Block::ZERO;
    }
    nodes
}

fn children(node: Block) -> [Block; 2] {
    let mut pair = [Block::ZERO; 2];
    Prg::new(Seed::from_bytes(node.to_bytes())).fill_blocks(&mut pair);
    pair
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::SeedableRng;

    #[test]
    fn all_leaves_but_alpha_are_known_for_every_alpha() {
        let mut rng = Prg::from_seed([4; 16]);
        let keys = std::array::from_fn(|_| [Block::random(&mut rng), Block::random(&mut rng)]);
        let (leaves, puncture) = build(&keys);
        for alpha in 0..LEAVES {
            let bits: [bool; FIELD_BITS] = std::array::from_fn(|b| alpha >> b & 1 == 1);
            let chosen = std::array::from_fn(|b| keys[b][usize::from(bits[b])]);
            let known = complete(&chosen, &bits, &puncture);
            assert!((1..LEAVES).all(|y| known[y] == leaves[y ^ alpha]), "alpha {alpha}");
            assert!(known[0] != leaves[alpha]);
        }
    }
}
