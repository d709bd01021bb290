//! The small-field VOLE: sums of expanded leaves ([Roy22](https://eprint.iacr.org/2022/192)).
//!
//! With `r_x` the expansion of leaf `x`, the party with all leaves forms `u = sum_x r_x` and, for each bit `b` of a field
//! element, `v_b = sum of r_x over x with bit b set`. The party that misses leaf `delta_g` does the same over
//! `y = x xor delta_g`; its place 0 is never added, and its sums are `w_b = v_b xor u * (delta_g)_b`.

use lanner_primitives::{Block, PrgStream, Seed};

use super::{FIELD_BITS, LEAVES};

/// The blocks of one leaf that are expanded at a time: all leaves' stay in the first cache.
pub const STRIPE: usize = 64;

/// One tree's leaves, ready to be expanded.
pub struct Tree {
    leaves: Vec<PrgStream>,
    /// The place of the first leaf: 0, or 1 where place 0 is missing.
    first: usize,
}

impl Tree {
    /// The tree of all 16 leaves, given what each is expanded from.
    #[must_use]
    pub fn whole(leaves: &[Seed]) -> Self {
        Self::from_place(leaves, 0)
    }

    /// The tree that misses place 0.
    #[must_use]
    pub fn punctured(leaves: &[Seed]) -> Self {
        Self::from_place(leaves, 1)
    }

    fn from_place(leaves: &[Seed], first: usize) -> Self {
        Self { leaves: leaves.iter().skip(first).map(PrgStream::new).collect(), first }
    }

    /// Gives the leaf at a place another expansion.
    #[cfg(test)]
    pub(super) fn replace(&mut self, place: usize, seed: &Seed) {
        self.leaves[place] = PrgStream::new(seed);
    }

    /// Expands blocks `first..first + u.len()` of every leaf, at most [`STRIPE`] of them.
    ///
    /// `u` gets the sum of all leaves; the four rows of `sums`, each as long as `u`, get the sums over the places with bit
    /// 0, 1, 2 and 3 set. `scratch` is overwritten.
    pub fn expand(&self, first: u64, scratch: &mut Scratch, u: &mut [Block], sums: &mut [Block]) {
        let stripe = u.len();
        for (place, leaf) in (self.first..).zip(&self.leaves) {
            leaf.fill_at(first, &mut scratch.0[place * STRIPE..][..stripe]);
        }
        scratch.0[..self.first * STRIPE].fill(Block::ZERO);
        // Halves are added onto each other from the highest bit of the place down; what is added is what has the bit set.
        let mut half = LEAVES / 2;
        for row in sums.chunks_exact_mut(stripe).rev().take(FIELD_BITS) {
            let (low, high) = scratch.0.split_at_mut(half * STRIPE);
            row.copy_from_slice(&high[..stripe]);
            for place in 1..half {
                add(row, &high[place * STRIPE..][..stripe]);
            }
            add(low, &high[..half * STRIPE]);
            half /= 2;
        }
        u.copy_from_slice(&scratch.0[..stripe]);
    }
}

/// Room for one stripe of every leaf of a tree.
pub struct Scratch(Box<[Block]>);

impl Default for Scratch {
    fn default() -> Self {
        Self(vec![Block::ZERO; LEAVES * STRIPE].into_boxed_slice())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        zeroize::Zeroize::zeroize(&mut *self.0);
    }
}

/// `to[i] ^= by[i]`.
pub(super) fn add(to: &mut [Block], by: &[Block]) {
    for (a, b) in to.iter_mut().zip(by) {
        *a ^= *b;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanner_primitives::Prg;
    use rand_core::SeedableRng;

    #[test]
    fn punctured_sums_differ_by_u_times_delta() {
        let mut rng = Prg::from_seed([5; 16]);
        let leaves: [Block; LEAVES] = std::array::from_fn(|_| Block::random(&mut rng));
        let mut scratch = Scratch::default();
        for delta in 0..LEAVES {
            let relative = std::array::from_fn(|y| if y == 0 { Block::ZERO } else { leaves[y ^ delta] });
            for stripe in [1, 7, 8, 63, 64] {
                let (mut u, mut v) = (vec![Block::ZERO; stripe], vec![Block::ZERO; 4 * stripe]);
                let (mut unused, mut w) = (u.clone(), v.clone());
                let seeds = |leaves: &[Block; LEAVES]| leaves.map(|leaf| Seed::from_bytes(leaf.to_bytes()));
                Tree::whole(&seeds(&leaves)).expand(10, &mut scratch, &mut u, &mut v);
                Tree::punctured(&seeds(&relative)).expand(10, &mut scratch, &mut unused, &mut w);
                for b in 0..FIELD_BITS {
                    let mask = Block::mask(delta >> b & 1 == 1);
                    assert!((0..stripe).all(|i| w[b * stripe + i] == v[b * stripe + i] ^ (u[i] & mask)));
                }
            }
        }
    }
}
