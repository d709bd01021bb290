//! Correlated trees: the nodes of each level add up to delta.
//!
//! A node `x` of any level has the children `H(x)` and `x xor H(x)`. The left children of a level are its first half, so bit `l` of a
//! leaf's number is the side taken at level `l + 1`. Leaves lose their low bit, which carries the choice.

use lanner_primitives::{Block, CorrelationRobustHash};
use zeroize::Zeroizing;

/// The hash of one tree: every node of a session is hashed with a tweak of its own.
#[derive(Clone, Copy)]
pub(super) struct TreeHash<'h> {
    pub(super) hash: &'h CorrelationRobustHash,
    /// The number of the tree in its source's life.
    pub(super) tree: u64,
}

impl TreeHash<'_> {
    /// Replaces the nodes of one level, the first half of `nodes`, by their children.
    fn descend(self, nodes: &mut [Block]) {
        let half = nodes.len() / 2;
        let (left, right) = nodes.split_at_mut(half);
        right.copy_from_slice(left);
        self.hash.hash_in_place(left, TREES | self.tree << LEVEL_BITS | half as u64);
        right.iter_mut().zip(left).for_each(|(right, left)| *right ^= *left);
    }
}

/// Grows a tree from its root's left child. Fills `nodes` with the leaves, and `messages` with what completes the other party's,
/// masked with its transfers `q`, one for each level.
pub(super) fn grow(
    hash: TreeHash<'_>,
    delta: Block,
    root: Block,
    q: &[Block],
    messages: &mut [Block],
    nodes: &mut [Block],
) {
    nodes[0] = root;
    nodes[1] = root ^ delta;
    for (level, (q, message)) in q.iter().zip(messages).enumerate() {
        let half = 1 << level;
        if level > 0 {
            hash.descend(&mut nodes[..2 * half]);
        }
        *message = *q ^ sum(&nodes[..half]);
    }
    clear_low_bits(nodes);
}

/// Completes a tree but for the leaf `alpha`, whose bit of each level is the complement of the choice in the low bit of its transfer
/// `u`. Fills `nodes` with the leaves; at `alpha` with the sender's leaf plus delta.
///
/// The same places are read and written whatever `alpha`: the unknown path's nodes are computed from zero like all others and
/// corrected afterwards.
pub(super) fn complete(hash: TreeHash<'_>, u: &[Block], messages: &[Block], nodes: &mut [Block]) {
    let mut alpha = Zeroizing::new(0);
    nodes[..2].fill(Block::ZERO);
    for (level, (u, message)) in u.iter().zip(messages).enumerate() {
        let half = 1 << level;
        if level > 0 {
            hash.descend(&mut nodes[..2 * half]);
        }
        // The sum of the side that the choice names is known, so its one missing node is.
        let side = usize::from(u.lsb());
        let (left, right) = (sum(&nodes[..half]), sum(&nodes[half..2 * half]));
        let have = (left & Block::mask(!u.lsb())) ^ (right & Block::mask(u.lsb()));
        add_at(&mut nodes[..2 * half], *alpha + side * half, have ^ *u ^ *message);
        *alpha += (1 - side) * half;
    }
    clear_low_bits(nodes);
    // All leaves of the sender's add up to delta but for its low bit.
    let all = sum(nodes);
    add_at(nodes, *alpha, all ^ Block(1));
}

fn clear_low_bits(leaves: &mut [Block]) {
    for leaf in leaves {
        *leaf = leaf.with_lsb(false);
    }
}

fn sum(blocks: &[Block]) -> Block {
    blocks.iter().fold(Block::ZERO, |sum, block| sum ^ *block)
}

/// Adds `value` at a secret place.
fn add_at(blocks: &mut [Block], place: usize, value: Block) {
    for (number, block) in blocks.iter_mut().enumerate() {
        *block ^= value & Block::mask(number == place);
    }
}

/// Set in the tweaks of all nodes and in none of a transfer's.
const TREES: u64 = 1 << 63;
/// Bits that name a node of a tree.
const LEVEL_BITS: u32 = 20;

#[cfg(test)]
mod tests {
    use super::*;
    use lanner_primitives::Prg;
    use rand_core::SeedableRng;

    #[test]
    fn leaves_agree_but_at_alpha_where_they_differ_by_delta() {
        let mut rng = Prg::from_seed([3; 16]);
        let hash = CorrelationRobustHash::new(Block::random(&mut rng));
        for depth in 1..=6 {
            let delta = Block::random(&mut rng).with_lsb(true);
            for alpha in 0..1_usize << depth {
                let hash = TreeHash { hash: &hash, tree: 7 + alpha as u64 };
                let q: Vec<Block> = (0..depth).map(|_| Block::random(&mut rng).with_lsb(false)).collect();
                let bit = |level: usize| alpha >> level & 1 == 0;
                let u = q.iter().enumerate().map(|(level, q)| *q ^ (delta & Block::mask(bit(level))));
                let u: Vec<Block> = u.collect();
                let mut messages = vec![Block::ZERO; depth];
                let (mut v, mut w) = (vec![Block::ZERO; 1 << depth], vec![Block::ONES; 1 << depth]);
                grow(hash, delta, Block::random(&mut rng), &q, &mut messages, &mut v);
                complete(hash, &u, &messages, &mut w);
                let difference = |j: usize| if j == alpha { delta } else { Block::ZERO };
                assert!((0..1 << depth).all(|j| v[j] ^ w[j] == difference(j) && !v[j].lsb()));
            }
        }
    }
}
