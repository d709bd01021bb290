//! A packed layer as a straight line of homomorphic operations.

use std::collections::{BTreeMap, BTreeSet};

use lanner_step::{Rotation, Samples};

/// What the server does with the input ciphertexts of one frame: every kernel is one of these.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// For each input ciphertext, its rotations with the products of each.
    pub inputs: Vec<Vec<Hoisted>>,
    /// Number of sums of products.
    pub sums: usize,
    /// What is done with the sums, in order.
    pub merges: Vec<Merge>,
    /// The sums that are the outputs, after all merges.
    pub outputs: Vec<usize>,
}

/// One rotation of an input ciphertext.
#[derive(Clone, Debug)]
pub struct Hoisted {
    /// The rotation.
    pub rotation: Rotation,
    /// The products of the rotated ciphertext.
    pub terms: Vec<Term>,
}

/// One ciphertext-plaintext product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term {
    /// Index of the plaintext.
    pub multiplier: usize,
    /// The sum that the product goes to.
    pub sum: usize,
}

/// Adds a rotated sum to another, or to itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Merge {
    /// The sum that is rotated.
    pub from: usize,
    /// The sum it is added to.
    pub into: usize,
    /// How it is rotated.
    pub rotation: Rotation,
}

impl Program {
    /// Every rotation that needs an evaluation key.
    #[must_use]
    pub fn keys(&self) -> BTreeSet<Rotation> {
        let inputs = self.inputs.iter().flatten().map(|rotated| rotated.rotation);
        let all = inputs.chain(self.merges.iter().map(|merge| merge.rotation));
        all.filter(|rotation| *rotation != Rotation::IDENTITY).collect()
    }

    /// The same for samples that share the slots.
    pub(super) fn of_samples(mut self, samples: Samples) -> Self {
        let hoisted = self.inputs.iter_mut().flatten().map(|hoisted| &mut hoisted.rotation);
        for rotation in hoisted.chain(self.merges.iter_mut().map(|merge| &mut merge.rotation)) {
            *rotation = samples.rotation(*rotation);
        }
        self
    }

    /// An empty sum.
    pub(super) fn add_sum(&mut self) -> usize {
        self.sums += 1;
        self.sums - 1
    }

    pub(super) fn merge(&mut self, from: usize, into: usize, rotation: Rotation) {
        self.merges.push(Merge { from, into, rotation });
    }

    /// Brings sums that lie at different offsets together at offset zero, one rotation each, by Horner's rule: what lies
    /// farther goes to its neighbour first, so that equal distances need one key. Returns the sum with the total.
    pub(super) fn gather(
        &mut self,
        sums: &BTreeMap<isize, usize>,
        rotation: impl Fn(isize) -> Rotation,
    ) -> usize {
        let target = sums.get(&0).copied().unwrap_or_else(|| self.add_sum());
        let before = sums.range(..0).collect::<Vec<_>>();
        let after = sums.range(1..).rev().collect::<Vec<_>>();
        for side in [before, after] {
            let next = side.iter().skip(1).map(|(offset, sum)| (**offset, **sum)).chain([(0, target)]);
            for ((offset, sum), (nearer, into)) in side.iter().zip(next) {
                self.merge(**sum, into, rotation(**offset - nearer));
            }
        }
        target
    }
}
