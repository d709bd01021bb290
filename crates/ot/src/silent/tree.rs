//! Correlated trees: the nodes of each level add up to delta.
//!
//! A node `x` of any level has the children `H(x)` and `x xor H(x)`. The left children of a level are its first half, so bit `l` of a
//! leaf's number is the side taken at level `l + 1`. Every tree has a hash of its own. Leaves lose their low bit, which carries the choice.

use lanner_primitives::{Block, CorrelationRobustHash, add_at_siblings};
use zeroize::Zeroizing;

use super::check;

/// Replaces the nodes of one level, the first half of `nodes`, by their children's bits of `keep`; returns the sum of the left ones. Every
/// node of a tree is hashed with a tweak of its own.
fn descend(hash: &CorrelationRobustHash, nodes: &mut [Block], keep: Block) -> Block {
    let parents = nodes.len() as u64 / 2;
    hash.expand_in_place(nodes, parents, keep)
}

/// Grows a tree from its root's left child. Fills `nodes` with the leaves, and `messages` with what completes the other party's,
/// masked with its transfers `q`, one for each level. Fills `tags`, which are as many, with the leaves' tags; returns the sum of these.
pub(super) fn grow(
    hash: &CorrelationRobustHash,
    delta: Block,
    root: Block,
    q: &[Block],
    messages: &mut [Block],
    nodes: &mut [Block],
    tags: &mut [Block],
) -> Block {
    let keep = |level| if level + 1 == q.len() { LEAF } else { Block::ONES };
    nodes[0] = root & keep(0);
    nodes[1] = (root ^ delta) & keep(0);
    for (level, (q, message)) in q.iter().zip(messages).enumerate() {
        let left = if level == 0 { root } else { descend(hash, &mut nodes[..2 << level], keep(level)) };
        *message = *q ^ left;
    }
    tags.copy_from_slice(nodes);
    check::tag(hash, tags)
}

/// Completes a tree but for the leaf `alpha`, whose bit of each level is the complement of the choice in the low bit of its transfer
/// `u`. Fills `nodes` with the leaves; at `alpha` with the sender's leaf plus delta.
///
/// The same places are read and written whatever `alpha`: the unknown path's nodes are computed from zero like all others and
/// corrected afterwards.
///
/// Fills `tags`, which are as many, with the tags of the sender's leaves, given their sum: that of `alpha` is what the others lack of it.
pub(super) fn complete(
    hash: &CorrelationRobustHash,
    u: &[Block],
    messages: &[Block],
    sum: Block,
    nodes: &mut [Block],
    tags: &mut [Block],
) {
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
        if is_last {
            tags.copy_from_slice(nodes);
            let lacking = sum ^ check::tag(hash, tags);
            add_at_siblings(tags, *unknown, known.map(|known| lacking & !known));
        }
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
                let (mut tags, mut others) = (v.clone(), w.clone());
                let root = Block::random(&mut rng);
                let sum = grow(&hash, delta, root, &q, &mut messages, &mut v, &mut tags);
                complete(&hash, &u, &messages, sum, &mut w, &mut others);
                assert!(
                    tags == others
                        && (0..1 << depth).all(|j| tags[j] == hash.hash(v[j], j as u64 + (1 << depth)))
                );
                let difference = |j: usize| if j == alpha { delta } else { Block::ZERO };
                assert!((0..1 << depth).all(|j| v[j] ^ w[j] == difference(j) && !v[j].lsb()));
            }
        }
    }

    const DEPTH: usize = 6;
    const LEAVES: usize = 1 << DEPTH;

    /// The transfers of a tree for the receiver with this `alpha`.
    fn transfers(q: &[Block], delta: Block, alpha: usize) -> Vec<Block> {
        let bit = |level: usize| Block::mask(alpha >> level & 1 == 0);
        q.iter().enumerate().map(|(level, q)| *q ^ (delta & bit(level))).collect()
    }

    /// The places of noise for which a receiver accepts what a cheat says: blocks of the levels, the tags of all leaves, and what it makes of them.
    fn accepted(
        hash: &CorrelationRobustHash,
        (q, delta): (&[Block], Block),
        blocks: &[Block],
        tags: &[Block],
    ) -> Vec<usize> {
        let sum = tags.iter().fold(Block::ZERO, |sum, tag| sum ^ *tag);
        let message = [blocks, &[sum]].concat();
        let digest = check::digest(7, &message, tags, LEAVES);
        let accepts = |alpha: &usize| {
            let (mut w, mut others) = ([Block::ZERO; LEAVES], [Block::ZERO; LEAVES]);
            complete(hash, &transfers(q, delta, *alpha), blocks, sum, &mut w, &mut others);
            check::digest(7, &message, &others, LEAVES) == digest
        };
        (0..LEAVES).filter(accepts).collect()
    }

    /// A sender that grows a tree of its own, in which `error` is added to both children of one node: right below it, wrong elsewhere.
    fn grow_wrong(
        hash: &CorrelationRobustHash,
        (q, delta, root): (&[Block], Block, Block),
        (at, node, error): (usize, usize, Block),
    ) -> (Vec<Block>, Vec<Block>) {
        let mut nodes = vec![Block::ZERO; LEAVES];
        (nodes[0], nodes[1]) = (root, root ^ delta);
        let blocks = (0..DEPTH).map(|level| {
            let keep = if level + 1 == DEPTH { LEAF } else { Block::ONES };
            let mut left = if level == 0 { root } else { descend(hash, &mut nodes[..2 << level], keep) };
            if level == at {
                left ^= error;
                nodes[node] ^= error;
                nodes[node + (1 << level)] ^= error;
            }
            q[level] ^ left
        });
        let blocks = blocks.collect();
        check::tag(hash, &mut nodes);
        (blocks, nodes)
    }

    fn material() -> (CorrelationRobustHash, Vec<Block>, Block, Block) {
        let mut rng = Prg::from_seed([4; 16]);
        let hash = CorrelationRobustHash::new(Block::random(&mut rng));
        let q = (0..DEPTH).map(|_| Block::random(&mut rng).with_lsb(false)).collect();
        (hash, q, Block::random(&mut rng).with_lsb(true), Block::random(&mut rng))
    }

    #[test]
    fn who_guesses_b_bits_of_noise_passes_for_one_place_in_two_to_the_b() {
        let (hash, q, delta, root) = material();
        for (at, node) in [(1, 0), (1, 1), (2, 3), (4, 9), (5, 0), (5, 31)] {
            let cheat = (at, node, Block(1 << 77));
            let (blocks, tags) = grow_wrong(&hash, (&q, delta, root), cheat);
            // The node's number is what was guessed: `at` bits of alpha.
            let below: Vec<usize> = (0..LEAVES).filter(|alpha| alpha % (1 << at) == node).collect();
            assert_eq!(accepted(&hash, (&q, delta), &blocks, &tags), below);
        }
        let (blocks, tags) = grow_wrong(&hash, (&q, delta, root), (1, 0, Block::ZERO));
        assert_eq!(accepted(&hash, (&q, delta), &blocks, &tags).len(), LEAVES);
    }

    #[test]
    fn a_tree_of_another_delta_passes_for_one_place() {
        let (hash, q, delta, root) = material();
        let other = delta ^ Block(1 << 40);
        let (blocks, tags) = grow_wrong(&hash, (&q, other, root), (1, 0, Block::ZERO));
        assert_eq!(accepted(&hash, (&q, delta), &blocks, &tags), [LEAVES - 1]);
    }

    #[test]
    fn one_wrong_leaf_passes_where_the_receiver_misses_it() {
        let (hash, q, delta, root) = material();
        let (blocks, tags) = grow_wrong(&hash, (&q, delta, root), (1, 0, Block::ZERO));
        for leaf in [0, 1, 30, LEAVES - 1] {
            let mut tags = tags.clone();
            tags[leaf] ^= Block(1);
            assert_eq!(accepted(&hash, (&q, delta), &blocks, &tags), [leaf]);
        }
    }
}
