//! The building blocks of a layer, each value's.

use lanner_step::Party;
use lanner_transfers::Layer;
use lanner_transfers::blocks::{Move, Program};

/// How many of each there are, and of how many bits together.
#[derive(Default)]
pub(crate) struct Blocks {
    /// Comparisons of two numbers.
    pub(crate) comparisons: [usize; 2],
    /// Single bits of both parties that are multiplied: carries as values, and tops of positive values. Products in trees of comparisons are those'.
    pub(crate) bits: usize,
    /// Products of a shared bit and a shared value.
    pub(crate) muxes: usize,
    /// Products of shared values, or of one party's number and the other's: bits that are chosen by.
    pub(crate) products: [usize; 2],
    /// Lookups, and all rows of their tables.
    pub(crate) lookups: [usize; 2],
    /// Correlated transfers of both directions.
    pub(crate) transfers: usize,
    /// Messages, where those of one party that follow each other are one.
    pub(crate) turns: usize,
}

impl Blocks {
    pub(crate) fn of<P: Program>(layer: &Layer<P>) -> Self {
        let inputs = layer.inputs();
        let sent = [Party::Client, Party::Server].map(|party| layer.transfers(party));
        let mut speakers: Vec<Party> = layer.messages().map(|(speaker, _)| speaker).collect();
        speakers.dedup();
        let transfers = sent.iter().sum::<usize>() / inputs;
        let mut all = Self { transfers, turns: speakers.len(), ..Self::default() };
        for step in layer.moves() {
            match step {
                Move::Leaves { values, parts } => {
                    for part in parts.into_iter().filter(|part| part.bits > 0) {
                        let count = part.ways * values / inputs;
                        add(&mut all.comparisons, count, count * part.bits as usize);
                    }
                }
                Move::Bits { .. } => {}
                Move::BothWays { values, factor: 1, .. } => all.muxes += values / inputs,
                // Both parties' numbers.
                Move::BothWays { values, factor, .. } => {
                    add(&mut all.products, values / inputs, 2 * factor as usize * values / inputs);
                }
                Move::Products { values, factor: 1, .. } => all.bits += values / inputs,
                Move::Products { values, factor, .. } => {
                    add(&mut all.products, values / inputs, factor as usize * values / inputs);
                }
                Move::Matrices { shape, bits } => {
                    let numbers = shape.groups * shape.rows * shape.inner;
                    add(&mut all.products, numbers / inputs, 2 * bits as usize * numbers / inputs);
                }
                // Of each party's entries.
                Move::Scaled { values, shape } => {
                    let count = 2 * values / inputs;
                    add(&mut all.lookups, count, count << shape.place_bits);
                }
                Move::Lookup { values, shape } => {
                    let count = values / inputs;
                    add(&mut all.lookups, count, count << shape.place_bits);
                }
            }
        }
        all
    }
}

fn add([count, size]: &mut [usize; 2], more: usize, sizes: usize) {
    *count += more;
    *size += sizes;
}
