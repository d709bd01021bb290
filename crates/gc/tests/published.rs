//! The circuits of the papers, gate by gate, with the numbers of AND gates that the library's are compared with.

mod falcon;
mod gazelle;
use crate::support;
use lanner_gc::Circuit;
use lanner_primitives::Bits;

/// A circuit as a paper has it.
struct Literal {
    circuit: Circuit,
    /// Bits of every word that goes in.
    bits: u32,
    /// Shared values that it takes.
    values: usize,
    /// The garbler's words for one share.
    words: Box<dyn Fn(u64) -> Vec<u64>>,
}

impl Literal {
    /// The output word of each instance, evaluated in the clear; one mask for each, if there are some, behind the garbler's words.
    fn run(&self, evaluator: &[u64], garbler: &[u64], masks: &[u64]) -> Vec<u64> {
        let instances = evaluator.len() / self.values;
        let mut known: Vec<Vec<u64>> = garbler
            .chunks(self.values)
            .map(|shares| shares.iter().flat_map(|share| (self.words)(*share)).collect())
            .collect();
        known.iter_mut().zip(masks).for_each(|(words, mask)| words.push(*mask));
        let outputs =
            support::clear(&self.circuit, instances, &self.pack(evaluator), &self.pack(&known.concat()));
        let width = self.circuit.outputs();
        (0..instances).map(|i| (0..width).map(|j| u64::from(outputs.get(i * width + j)) << j).sum()).collect()
    }

    fn pack(&self, words: &[u64]) -> Bits {
        words.iter().flat_map(|word| (0..self.bits).map(move |bit| word >> bit & 1 == 1)).collect()
    }
}
