//! What corrects the values of comparison keys, from what both parties' trees have in sum.

use lanner_primitives::{Block, Ring};
use lanner_wire::packed_len;

use crate::ProtocolError;
use crate::nonlinear::ot_nonlinear::blocks::{Driver, Lanes, Program, Task};

/// The corrections of the values of comparisons with shared thresholds a, for keys of several comparisons one after the other.
///
/// ```text
/// a_i as values, a = sum of 2^i a_i, and where the value has a second word a_i a        of the shared bits of a
/// V = (1 - 2 sign) (a_i - G),  and (1 - 2 sign) (a_i a - G')                            for every level i
/// ```
///
/// Inputs are lanes of 64 bits: of each comparison the bits of a, the signs, and G and G' for every level and key; outputs its V and V' in the same
/// order, and its thresholds.
#[derive(Clone, Debug)]
pub(super) struct Corrections {
    pub(super) comparisons: Vec<Comparison>,
    /// Keys of each.
    pub(super) keys: usize,
}

/// `f(x) = (1, a)` for x below a threshold a, or `f(x) = 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Comparison {
    /// Of x and a.
    pub(super) bits: u32,
    /// The ring of the value.
    pub(super) to: u32,
    /// The ring that the threshold is shared in, no smaller.
    pub(super) threshold: u32,
    /// Whether the value has a in it.
    pub(super) with_threshold: bool,
}

impl Comparison {
    /// Words of the value.
    pub(super) const fn words(self) -> usize {
        if self.with_threshold { 2 } else { 1 }
    }

    /// Bytes of a party's keys and shares of thresholds.
    pub(super) fn held(self, keys: usize) -> usize {
        let (nodes, values) = (keys * Block::BYTES, self.words() * packed_len(keys, self.to));
        let levels = self.bits as usize;
        Block::BYTES + packed_len(keys, self.threshold) + (levels - 1) * nodes + levels * values
    }

    /// Lanes of the inputs.
    pub(super) const fn inputs(self, keys: usize) -> usize {
        (2 + self.words()) * self.bits as usize * keys
    }
}

/// What goes into the corrections of a comparison, level by level and key by key.
struct Inputs<V> {
    comparison: Comparison,
    bits: V,
    signs: V,
    sums: Vec<V>,
}

/// The next lanes of some.
fn take<V: Lanes>(x: &V, from: &mut usize, count: usize) -> V {
    let taken = x.range(*from..*from + count);
    *from += count;
    taken
}

impl Program for Corrections {
    fn run<D: Driver>(&self, driver: &mut D, x: &D::Values) -> Result<D::Values, ProtocolError> {
        let missing = || ProtocolError::Shape { what: "the corrections of keys" };
        let inputs = self.inputs(x);
        let bits = inputs.iter().map(|of| (of.bits.clone(), of.comparison.threshold)).collect();
        let values = driver.all_bits_to_values(bits)?;
        let thresholds: Vec<D::Values> =
            inputs.iter().zip(&values).map(|(of, values)| self.threshold(of.comparison, values)).collect();
        // The bits times the threshold, where the value has it.
        let with = inputs.iter().zip(&thresholds).filter(|(of, _)| of.comparison.with_threshold);
        let products = with.map(|(of, threshold)| {
            let (lanes, ring) = (of.bits.count(), Ring::Pow2(of.comparison.to));
            let keys: Vec<usize> = (0..lanes).map(|lane| lane % self.keys).collect();
            let values = threshold.gather(&keys).map(|a| ring.embed(a as i64));
            Task::Mux { choices: of.bits.words(), values, bits: of.comparison.to }
        });
        let products: Vec<Task<D::Values>> = products.collect();
        let products = if products.is_empty() { Vec::new() } else { driver.turn(products)? };
        let mut products = products.into_iter().flatten();
        let (mut differences, mut tasks) = (Vec::new(), Vec::new());
        for (Inputs { comparison: of, signs, sums, .. }, values) in inputs.iter().zip(&values) {
            let ring = Ring::Pow2(of.to);
            for (word, sum) in sums.iter().enumerate() {
                let value = if word == 0 { values.clone() } else { products.next().ok_or_else(missing)? };
                let difference = value
                    .zip_map(sum, |value, sum| ring.sub(ring.embed(value as i64), ring.embed(sum as i64)));
                // Twice the product counts: its top bit does not.
                let half = Ring::Pow2(of.to - 1);
                let values = difference.map(|difference| half.embed(difference as i64));
                tasks.push(Task::Mux { choices: signs.words(), values, bits: of.to - 1 });
                differences.push((ring, difference));
            }
        }
        let mut negative = driver.turn(tasks)?.into_iter().flatten().zip(differences);
        let mut outputs = Vec::new();
        for (of, threshold) in inputs.iter().zip(thresholds) {
            for _ in 0..of.comparison.words() {
                let (negative, (ring, difference)) = negative.next().ok_or_else(missing)?;
                outputs.push(difference.zip_map(&negative, |value, negative| {
                    ring.sub(value, ring.embed((negative << 1) as i64))
                }));
            }
            outputs.push(threshold);
        }
        Ok(D::Values::concat(&outputs.iter().collect::<Vec<_>>()))
    }
}

impl Corrections {
    fn inputs<V: Lanes>(&self, x: &V) -> Vec<Inputs<V>> {
        let mut from = 0;
        let mut of = |comparison: &Comparison| {
            let count = comparison.bits as usize * self.keys;
            let mut next = || take(x, &mut from, count);
            let (bits, signs) = (next(), next());
            let sums = (0..comparison.words()).map(|_| next()).collect();
            Inputs { comparison: *comparison, bits, signs, sums }
        };
        self.comparisons.iter().map(&mut of).collect()
    }

    /// The thresholds, of the values of their bits, the highest first.
    fn threshold<V: Lanes>(&self, of: Comparison, values: &V) -> V {
        let ring = Ring::Pow2(of.threshold);
        let level = |level: usize| values.range(level * self.keys..(level + 1) * self.keys);
        let double_and_add =
            |sum: V, next: V| sum.zip_map(&next, |sum, bit| ring.add(ring.add(sum, sum), bit));
        (1..of.bits as usize).map(level).fold(level(0), double_and_add)
    }
}
