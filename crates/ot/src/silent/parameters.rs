//! Sizes of the noise problem, and what iterations of it send.

use lanner_primitives::Block;

use super::check::DIGEST_BYTES;
use crate::{Cost, softspoken};

/// A set of sizes with [`SECURITY_BITS`] against attacks on regular noise: docs/estimates/lpn.txt has the estimates.
///
/// What keeps noise hidden is how many inputs the code has for each leaf of a tree. More trees alone would not help: they are more
/// samples with noise of the same rate. A random code would need half of the inputs: one so sparse has outputs that add but some of
/// them, enough to be solved for these alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Trees, each of which gives one 1 of noise.
    trees: usize,
    /// Transfers that the code expands.
    dimension: usize,
    /// Levels of a tree below its root.
    depth: u32,
}

/// Bits of security of every set's noise.
pub const SECURITY_BITS: u32 = 133;

impl Parameters {
    /// Every set, by the transfers that one iteration gives: about 0.6, 1.5, 3.5 and 8 million.
    pub const ALL: [Self; 4] = [
        Self { trees: 1400, dimension: 1 << 16, depth: 9 },
        Self { trees: 1600, dimension: 1 << 17, depth: 10 },
        Self { trees: 1850, dimension: 1 << 18, depth: 11 },
        Self { trees: 2100, dimension: 1 << 19, depth: 12 },
    ];

    /// The set that all others begin with.
    pub(super) const SMALLEST: Self = Self::ALL[0];

    /// The set of which set-up and `count` transfers send least, of the two smallest.
    ///
    /// Transfers of the second take about a tenth longer than those of the first, whose code's inputs, a MiB, stay in a core's own cache. Those
    /// of the larger sets take a fifth longer or more.
    #[must_use]
    pub fn cheapest(count: usize) -> Self {
        let [first, second, ..] = Self::ALL;
        if second.bytes(count) < first.bytes(count) { second } else { first }
    }

    /// What set-up and so many transfers send.
    fn bytes(self, count: usize) -> u64 {
        let cost = self.setup_cost().plus(Supply::new(self).take(count));
        cost.sender_bytes + cost.receiver_bytes
    }

    /// Transfers that one iteration gives.
    #[must_use]
    pub const fn usable(self) -> usize {
        self.trees * self.leaves() - self.reserve()
    }

    pub(super) const fn dimension(self) -> usize {
        self.dimension
    }

    pub(crate) const fn depth(self) -> usize {
        self.depth as usize
    }

    pub(super) const fn leaves(self) -> usize {
        1 << self.depth
    }

    /// Transfers that an iteration begins with.
    pub(super) const fn reserve(self) -> usize {
        self.dimension() + self.trees * self.depth()
    }

    /// Trees whose leaves begin the next iteration.
    const fn reserved_trees(self) -> usize {
        self.reserve().div_ceil(self.leaves())
    }

    /// The cost of bootstrapping from [`softspoken`], without its own set-up.
    #[must_use]
    pub fn setup_cost(self) -> Cost {
        let start = softspoken::random_extension_cost(Self::SMALLEST.reserve());
        if self == Self::SMALLEST {
            start
        } else {
            start.plus(Supply::new(Self::SMALLEST).take(self.reserve()))
        }
    }
}

/// How far a source has come: what is ready, and what making more sends. Both parties count alike, from public numbers alone.
#[derive(Clone, Copy, Debug)]
pub struct Supply {
    parameters: Parameters,
    /// Trees of this iteration that are grown.
    grown: usize,
    /// Transfers that are ready.
    ready: usize,
}

/// What a source does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Gives a given number of the transfers that are ready.
    Take { count: usize },
    /// Grows a given number of trees from tree `first` of the iteration on.
    Grow { first: usize, count: usize },
    /// Grows the last trees, and begins the next iteration with their leaves.
    Renew { first: usize, count: usize },
}

impl Supply {
    /// At the start of the first iteration.
    #[must_use]
    pub const fn new(parameters: Parameters) -> Self {
        Self { parameters, grown: 0, ready: 0 }
    }

    /// What `count` transfers send after what was taken before, and takes them.
    pub fn take(&mut self, mut count: usize) -> Cost {
        let mut cost = Cost::default();
        while let Some(step) = self.step(&mut count) {
            if let Step::Grow { count, .. } | Step::Renew { count, .. } = step {
                cost.sender_bytes +=
                    (count * (self.parameters.depth() + 1) * Block::BYTES + DIGEST_BYTES) as u64;
                cost.sender_messages += 1;
            }
        }
        cost
    }

    pub(super) const fn parameters(&self) -> Parameters {
        self.parameters
    }

    /// The next step towards `wanted` transfers, which it lowers by what it takes; none if none is wanted.
    pub(super) fn step(&mut self, wanted: &mut usize) -> Option<Step> {
        let (set, first) = (self.parameters, self.grown);
        let count = self.ready.min(*wanted);
        if *wanted == 0 {
            None
        } else if count > 0 {
            self.ready -= count;
            *wanted -= count;
            Some(Step::Take { count })
        } else if first == set.trees - set.reserved_trees() {
            let count = set.reserved_trees();
            self.grown = 0;
            self.ready = count * set.leaves() - set.reserve();
            Some(Step::Renew { first, count })
        } else {
            let left = set.trees - set.reserved_trees() - first;
            let count = left.min(wanted.div_ceil(set.leaves())).min(BATCH / set.leaves());
            self.grown += count;
            self.ready = count * set.leaves();
            Some(Step::Grow { first, count })
        }
    }
}

/// Leaves of the trees of one message, but for those that begin an iteration.
const BATCH: usize = 1 << 16;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn sets_give_what_they_are_listed_with() {
        assert_eq!(Parameters::ALL.map(Parameters::usable), [638_664, 1_491_328, 3_506_306, 8_052_112]);
        // Even the largest begins with one iteration of the smallest.
        assert!(Parameters::ALL[3].reserve() <= Parameters::SMALLEST.usable());
    }

    #[test]
    fn the_cheapest_set_pays_for_its_own_set_up() {
        let [first, second, ..] = Parameters::ALL;
        // Second sets begin with 288 trees of the first, and each of their transfers sends a seventh of a byte less.
        for (count, set) in [(0, first), (300_000, first), (400_000, second), (100_000_000, second)] {
            assert_eq!(Parameters::cheapest(count), set);
        }
        assert!(second.bytes(10_000_000) < first.bytes(10_000_000) * 5 / 8);
    }

    #[test]
    fn every_set_is_estimated_well_above_128_bits() {
        let text = include_str!("../../../../docs/estimates/lpn.txt");
        let rows = text.lines().skip_while(|line| *line != "The sets in use").skip(2);
        let mut sets = Parameters::ALL.into_iter();
        for row in rows.take_while(|row| !row.is_empty()) {
            let numbers: Vec<f64> = row.split_whitespace().map(|number| number.parse().unwrap()).collect();
            let set = sets.next().unwrap();
            let sizes = [set.trees, set.dimension, set.depth(), set.usable()].map(|size| size as f64);
            assert_eq!(numbers[..4], sizes);
            let least = numbers[4..].iter().copied().fold(f64::INFINITY, f64::min);
            assert!(least >= f64::from(SECURITY_BITS), "{least}");
        }
        assert_eq!(sets.next(), None);
    }

    #[test]
    fn an_iteration_ends_with_its_reserve() {
        let set = Parameters::SMALLEST;
        let mut supply = Supply::new(set);
        let all = supply.take(set.usable());
        assert_eq!((supply.ready, supply.grown), (0, 0));
        // A block for each level and a sum for each tree; eleven messages with a digest.
        assert_eq!(all.sender_bytes, (1400 * 10 * 16 + 11 * 32) as u64);
        assert_eq!(all.receiver_messages, 0);
        assert_eq!(supply.take(0), Cost::default());
        assert_eq!(supply.take(1).sender_bytes, 160 + 32);
        assert_eq!(supply.take(511), Cost::default());
    }
}
