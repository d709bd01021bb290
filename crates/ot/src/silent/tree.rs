//! Correlated trees: the nodes of each level add up to delta.
//!
//! A node `x` of any level has the children `H(x)` and `x xor H(x)`. The left children of a level are its first half, so bit `l` of a
//! leaf's number is the side taken at level `l + 1`. Every tree has a hash of its own. Leaves lose their low bit, which carries the choice.

use lanner_primitives::{Block, CorrelationRobustHash, add_at_siblings};
use zeroize::Zeroizing;

/// Replaces the nodes of one level, the first half of `nodes`, by their children's bits of `keep`; returns the sum of the left ones. Every
/// node of a tree is hashed with a tweak of its own.
fn descend(hash: &CorrelationRobustHash, nodes: &mut [Block], keep: Block) -> Block {
    let parents = nodes.len() as u64 / 2;
    hash.expand_in_place(nodes, parents, keep)
}

/// Grows a tree from its root's left child. Fills `nodes` with the leaves, and `messages` with what completes the other party's,
/// masked with its transfers `q`, one for each level.
pub(super) fn grow(
    hash: &CorrelationRobustHash,
    delta: Block,
    root: Block,
    q: &[Block],
    messages: &mut [Block],
    nodes: &mut [Block],
) {
    let keep = |level| if level + 1 == q.len() { LEAF } else { Block::ONES };
    nodes[0] = root & keep(0);
    nodes[1] = (root ^ delta) & keep(0);
    for (level, (q, message)) in q.iter().zip(messages).enumerate() {
        let left = if level == 0 { root } else { descend(hash, &mut nodes[..2 << level], keep(level)) };
        *message = *q ^ left;
    }
}

/// Completes a tree but for the leaf `alpha`, whose bit of each level is the complement of the choice in the low bit of its transfer
/// `u`. Fills `nodes` with the leaves; at `alpha` with the sender's leaf plus delta.
///
/// The same places are read and written whatever `alpha`: the unknown path's nodes are computed from zero like all others and
/// corrected afterwards.
pub(super) fn complete(hash: &CorrelationRobustHash, u: &[Block], messages: &[Block], nodes: &mut [Block]) {
    // The unknown node's number in its level.
    let mut unknown = Zeroizing::new(0);
    // The sum of all nodes of a level, which is that of their children.
    let mut all = Block::ZERO;
    nodes[..2].fill(Block::ZERO);
    for (level, (u, message)) in u.iter().zip(messages).enumerate() {
        let is_last = level + 1 == messages.len();
        let keep = if is_last { LEAF } else { Block::ONES };
        let nodes = &mut nodes[..2 << level];
        let left = if level == 0 { Block::ZERO } else { descend(hash, nodes, keep) };
        // The sum of the side that the choice names is known, so its one missing node is.
        let known = [!u.lsb(), u.lsb()].map(Block::mask);
        let missing = (left & known[0]) ^ ((left ^ all) & known[1]) ^ *u ^ *message;
        all ^= missing;
        // All leaves of the sender's add up to delta but for its low bit.
        let other = if is_last { (all & LEAF) ^ Block(1) } else { Block::ZERO };
        let values = known.map(|known| (missing & keep & known) ^ (other & !known));
        add_at_siblings(nodes, *unknown, values);
        *unknown += usize::from(!u.lsb()) << level;
    }
}

/// What leaves keep.
const LEAF: Block = Block(!1);

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
                let q: Vec<Block> = (0..depth).map(|_| Block::random(&mut rng).with_lsb(false)).collect();
                let bit = |level: usize| alpha >> level & 1 == 0;
                let u = q.iter().enumerate().map(|(level, q)| *q ^ (delta & Block::mask(bit(level))));
                let u: Vec<Block> = u.collect();
                let mut messages = vec![Block::ZERO; depth];
                let (mut v, mut w) = (vec![Block::ZERO; 1 << depth], vec![Block::ONES; 1 << depth]);
                grow(&hash, delta, Block::random(&mut rng), &q, &mut messages, &mut v);
                complete(&hash, &u, &messages, &mut w);
                let difference = |j: usize| if j == alpha { delta } else { Block::ZERO };
                assert!((0..1 << depth).all(|j| v[j] ^ w[j] == difference(j) && !v[j].lsb()));
            }
        }
    }
}
