//! What a network is compiled for.

use lanner_network::Precision;

/// What a network is compiled for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Aim {
    /// What is asked.
    pub precision: Precision,
    /// Whether a network that misses it is refused; else the one with the most bits is taken.
    pub demanded: bool,
    /// What of the scores counts.
    pub told: Told,
}

/// What is told of scores, and so what their errors are relative to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Told {
    /// The scores of a sample, which belong together: relative to the range of the sample's scores.
    #[default]
    Scores,
    /// Which is the largest, and by how much: the same, and an error that all scores of a sample share changes nothing.
    Order,
    /// The same at each place of a map, whose scores follow one another: relative to the range of the place's scores, and each place has a label.
    OrderAt {
        /// How many places.
        places: usize,
    },
    /// The largest one's probability, by a softmax of all: the same, and the probability must be as close.
    Probability,
    /// Each score, which has a unit of its own: relative to its own range over the samples. Of a map, to that of its channel, row or column.
    Values,
    /// Whether each score is above 0: as [`Told::Values`], and signs are labels.
    Signs,
}

impl Told {
    /// Places of a map that are told each by itself; 1 of what is none.
    #[must_use]
    pub const fn places(self) -> usize {
        if let Self::OrderAt { places } = self { places } else { 1 }
    }
}
