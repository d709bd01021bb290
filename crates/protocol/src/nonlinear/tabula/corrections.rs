//! What corrects the values of comparison keys, from what both parties' trees have in sum.

use lanner_dpf::{POINTS, TAIL_BITS};
use lanner_primitives::{Block, Ring};
use lanner_wire::packed_len;

use crate::ProtocolError;
use crate::nonlinear::ot_nonlinear::blocks::{Driver, Lanes, Program, Task, xor};

/// The corrections of the values of comparisons with shared thresholds a, for keys of several comparisons one after the other.
///
/// ```text
/// a_i as values, a = sum of 2^i a_i, and where the value has a second word a_i a        of the shared bits of a
/// V = (1 - 2 sign) (a_i - G),  and (1 - 2 sign) (a_i a - G')                            for every level i
/// ```
///
/// A tail's values are those of the seven points: whether each is below the last three bits of a, by products of these.
///
/// Inputs are lanes of 64 bits: of each comparison the bits of a, the signs, and G and G' for every level and key, then G of a tail for every point and
/// key; outputs its corrections in the same order, and its thresholds.
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
        let nodes = self.opened() * keys * Block::BYTES;
        let [values, points] = [self.words() * self.levels(), self.points() * keys];
        let values = values * packed_len(keys, self.to) + packed_len(points, self.to);
        Block::BYTES + packed_len(keys, self.threshold) + nodes + values
    }

    /// Whether the last three levels are a tail: values are a bit, modulo no more than a tail's.
    pub(super) const fn has_tail(self) -> bool {
        !self.with_threshold && self.to <= u16::BITS && self.bits > TAIL_BITS
    }

    /// Levels with values of their own.
    pub(super) const fn levels(self) -> usize {
        (if self.has_tail() { self.bits - TAIL_BITS } else { self.bits }) as usize
    }

    /// Levels with children of their nodes, which are corrected.
    pub(super) const fn opened(self) -> usize {
        if self.has_tail() { self.levels() } else { self.levels() - 1 }
    }

    /// Values of a tail that are corrected: all but the last point's.
    pub(super) const fn points(self) -> usize {
        if self.has_tail() { POINTS - 1 } else { 0 }
    }

    /// Signs of a key: one for each level and one for a tail.
    pub(super) const fn signs(self) -> usize {
        self.levels() + self.has_tail() as usize
    }

    /// Values of a key that are corrected.
    pub(super) const fn values(self) -> usize {
        self.words() * self.levels() + self.points()
    }

    /// Lanes of the inputs.
    pub(super) const fn inputs(self, keys: usize) -> usize {
        (self.bits as usize + self.signs() + self.values()) * keys
    }
}

/// What goes into the corrections of a comparison, level by level and key by key.
struct Inputs<V> {
    comparison: Comparison,
    /// Of every level, the last ones too.
    bits: V,
    signs: V,
    /// Of each word of the levels' values, and last of a tail's, point by point.
    sums: Vec<V>,
}

/// The products of shared bits and others.
fn products<D: Driver, const N: usize>(
    driver: &mut D,
    bits: &D::Values,
    others: &[D::Values],
) -> Result<[D::Values; N], ProtocolError> {
    let products = driver.bit_products(bits.clone(), others.to_vec())?;
    products.try_into().map_err(|_| ProtocolError::Shape { what: "the products of bits" })
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
        let tails = self.tails(driver, &inputs)?;
        let (mut differences, mut tasks) = (Vec::new(), Vec::new());
        for ((Inputs { comparison: of, signs, sums, .. }, values), tail) in
            inputs.iter().zip(&values).zip(tails)
        {
            let (ring, levels) = (Ring::Pow2(of.to), of.levels() * self.keys);
            let mut of_words = vec![(values.range(0..levels), signs.range(0..levels))];
            if of.with_threshold {
                of_words.push((products.next().ok_or_else(missing)?, signs.clone()));
            }
            if let Some(values) = tail {
                let keys: Vec<usize> = (0..values.count()).map(|lane| levels + lane % self.keys).collect();
                of_words.push((values, signs.gather(&keys)));
            }
            for ((values, signs), sums) in of_words.into_iter().zip(sums) {
                let minus = |value: u64, sum: u64| ring.sub(ring.embed(value as i64), ring.embed(sum as i64));
                let difference = values.zip_map(sums, minus);
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
            for _ in &of.sums {
                let (negative, (ring, difference)) = negative.next().ok_or_else(missing)?;
                let less = |value: u64, negative: u64| ring.sub(value, ring.embed((negative << 1) as i64));
                outputs.push(difference.zip_map(&negative, less));
            }
            outputs.push(threshold);
        }
        Ok(D::Values::concat(&outputs.iter().collect::<Vec<_>>()))
    }
}

impl Corrections {
    /// Of each comparison with a tail whether each point is below the last three bits of the threshold, as values.
    fn tails<D: Driver>(
        &self,
        driver: &mut D,
        inputs: &[Inputs<D::Values>],
    ) -> Result<Vec<Option<D::Values>>, ProtocolError> {
        let mut tails = Vec::new();
        for Inputs { comparison: of, bits, .. } in inputs {
            tails.push(if of.has_tail() {
                let level = |level: usize| bits.range(level * self.keys..(level + 1) * self.keys).words();
                let [a2, a1, a0] = [0, 1, 2].map(|below| level(of.levels() + below));
                let [both] = products(driver, &a1, std::slice::from_ref(&a0))?;
                let either = a1.zip_map(&a0, xor).zip_map(&both, xor);
                let [high_either, high_a1, high_both] =
                    products(driver, &a2, &[either.clone(), a1.clone(), both.clone()])?;
                let or = |low: &D::Values, product: &D::Values| a2.zip_map(low, xor).zip_map(product, xor);
                let below = [
                    or(&either, &high_either),
                    or(&a1, &high_a1),
                    or(&both, &high_both),
                    a2.clone(),
                    high_either,
                    high_a1,
                    high_both,
                ];
                let below = below.map(|words| words.bits(self.keys));
                Some(driver.bits_to_values(&D::Values::concat(&below.each_ref()), of.to)?)
            } else {
                None
            });
        }
        Ok(tails)
    }

    fn inputs<V: Lanes>(&self, x: &V) -> Vec<Inputs<V>> {
        let mut from = 0;
        let mut of = |comparison: &Comparison| {
            let mut next = |count: usize| take(x, &mut from, count * self.keys);
            let (bits, signs) = (next(comparison.bits as usize), next(comparison.signs()));
            let mut sums: Vec<V> = (0..comparison.words()).map(|_| next(comparison.levels())).collect();
            sums.extend(comparison.has_tail().then(|| next(comparison.points())));
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
