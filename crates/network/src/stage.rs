//! What a run of the reference has behind some of its nodes, and which networks may go on from there.

use crate::network::Network;

/// What a run has behind some of its nodes: the values that later nodes read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// How many nodes are behind it.
    pub(crate) nodes: usize,
    /// The integers of these values, by number.
    pub(crate) values: Vec<(usize, Vec<i64>)>,
}

impl Stage {
    /// How many nodes it is behind.
    #[must_use]
    pub const fn nodes(&self) -> usize {
        self.nodes
    }
}

/// How many first nodes of two networks are the same, and what their values may be.
#[must_use]
pub fn alike(one: &Network, other: &Network) -> usize {
    let [a, b] = [one, other].map(Network::public);
    if a.is_wide() || b.is_wide() || a.input() != b.input() || a.limit(0) != b.limit(0) {
        return 0;
    }
    let both = a.nodes().iter().zip(b.nodes()).enumerate();
    let same = both.take_while(|(index, (x, y))| {
        (&x.op, &x.inputs, &x.shape, x.accumulator) == (&y.op, &y.inputs, &y.shape, y.accumulator)
            && a.limit(index + 1) == b.limit(index + 1)
            && one.weights(*index) == other.weights(*index)
    });
    same.count()
}
