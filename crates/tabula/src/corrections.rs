//! What corrects the values of comparison keys, from what both parties' trees have in sum.

use lanner_dpf::{DpfError, Shape};
use lanner_primitives::{Block, Ring};
use lanner_step::{ProtocolError, Result};
use lanner_transfers::blocks::{Driver, Lanes, Program, Task, xor};
use lanner_wire::packed_len;

/// The corrections of the values of comparisons with shared thresholds a, for keys of several comparisons one after the other.
///
/// ```text
/// a_i as values, a = sum of 2^i a_i                                                     of the shared bits of a
/// [point < low bits of a] by products of these, as values, and where the value has a second word times a
/// V = (1 - 2 sign) (b - G), b = 1 and a, for every stop;  [point < low bits of a] b     for every point of a tail
/// ```
///
/// Inputs are lanes of 64 bits: of each comparison the bits of a, the highest first, the signs of all stops, and G of each word for all its numbers, each of
/// all keys; outputs its corrections in the same order, and its thresholds.
#[derive(Clone, Debug)]
pub(super) struct Corrections {
    pub(super) comparisons: Vec<Comparison>,
    /// Keys of each.
    pub(super) keys: usize,
}

/// `f(x) = (1, a)` for x below a threshold a, or `f(x) = 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Comparison {
    pub(super) shape: Shape,
    /// The ring of the value.
    to: u32,
    /// The ring that the threshold is shared in, no smaller.
    pub(super) threshold: u32,
}

impl Comparison {
    /// On so many bits, whose value has a second word if it has a in it.
    pub(super) fn new(bits: u32, to: u32, threshold: u32, with_threshold: bool) -> Result<Self, DpfError> {
        let shape = Shape::new(bits, if with_threshold { 2 } else { 1 }, to)?;
        if to < 2 || threshold < to.max(bits) || threshold > 62 {
            return Err(DpfError::Shape { what: "the rings of a comparison" });
        }
        Ok(Self { shape, to, threshold })
    }

    /// The ring of the value.
    pub(super) const fn to(self) -> u32 {
        self.to
    }

    /// Numbers of a key that are corrected.
    pub(super) const fn values(self) -> usize {
        self.shape.words() * self.shape.numbers()
    }

    /// Lanes of the inputs.
    pub(super) const fn inputs(self, keys: usize) -> usize {
        (self.shape.bits() as usize + self.shape.stops() + self.values()) * keys
    }

    /// Bytes of a party's keys and shares of thresholds.
    pub(super) fn held(self, keys: usize) -> usize {
        // One for the share that trees begin with.
        let blocks = (1 + self.shape.corrected()) * keys + 1;
        blocks * Block::BYTES + packed_len(keys, self.threshold) + self.values() * packed_len(keys, self.to)
    }

    /// The ring in which a bit of the threshold is needed as a value: it counts `2^weight` times, and in a tail once.
    fn ring_of_bit(self, weight: u32) -> u32 {
        let least = if weight < self.shape.tail() { self.to } else { 1 };
        (self.threshold - weight).max(least)
    }
}

/// What goes into the corrections of a comparison.
struct Inputs<V> {
    comparison: Comparison,
    /// Of each level.
    bits: Vec<V>,
    /// Of each stop.
    signs: Vec<V>,
    /// Of all numbers of all words.
    sums: V,
    /// Of each point of a tail whether it is below the threshold's low bits.
    below: Vec<V>,
    /// The products that these are made of.
    products: Vec<V>,
}

impl<V: Lanes> Inputs<V> {
    /// The bit of a weight.
    fn bit(&self, weight: usize) -> &V {
        &self.bits[self.bits.len() - 1 - weight]
    }
}

impl Program for Corrections {
    fn run<D: Driver>(&self, driver: &mut D, x: &D::Values) -> Result<D::Values> {
        let missing = || ProtocolError::WrongMaterial("corrections of other keys");
        let mut inputs = self.inputs(x);
        self.compare_tails(driver, &mut inputs)?;
        let mut values = driver.all_bits_to_values(bits(&inputs))?.into_iter();
        let (mut thresholds, mut below) = (Vec::new(), Vec::new());
        for of in &inputs {
            let bits: Vec<D::Values> = values.by_ref().take(of.bits.len()).collect();
            let products: Vec<D::Values> = values.by_ref().take(of.products.len()).collect();
            thresholds.push(threshold(of.comparison, &bits));
            below.push(below_values(of.comparison, bits, products));
        }
        // Whether points are below, times the threshold, where the value has it.
        let with = inputs.iter().zip(&thresholds).filter(|(of, _)| has_second(of));
        let products = with.map(|(of, threshold)| {
            let ring = Ring::Pow2(of.comparison.to);
            let values = repeated(threshold, of.below.len()).map(|a| ring.embed(a as i64));
            Task::Mux { choices: joined(&of.below).words(), values, bits: of.comparison.to }
        });
        let products: Vec<Task<D::Values>> = products.collect();
        let products = if products.is_empty() { Vec::new() } else { driver.turn(products)? };
        let mut products = products.into_iter().flatten();
        let (mut differences, mut tasks) = (Vec::new(), Vec::new());
        for ((of, threshold), below) in inputs.iter().zip(&thresholds).zip(&below) {
            let (ring, stops) = (Ring::Pow2(of.comparison.to), of.signs.len());
            let one = driver.public(1);
            let mut due = vec![repeated(&threshold.map(|_| one), stops)];
            due.extend(below.iter().cloned());
            if of.comparison.shape.words() == 2 {
                due.push(repeated(threshold, stops));
                if has_second(of) {
                    due.push(products.next().ok_or_else(missing)?);
                }
            }
            let mut signs: Vec<&D::Values> = of.signs.iter().collect();
            let last = signs.last().copied().ok_or_else(missing)?;
            signs.extend((0..of.below.len()).map(|_| last));
            let signs: Vec<&D::Values> =
                (0..of.comparison.shape.words()).flat_map(|_| signs.iter().copied()).collect();
            let minus = |value: u64, sum: u64| ring.sub(ring.embed(value as i64), ring.embed(sum as i64));
            let difference = joined(&due).zip_map(&of.sums, minus);
            // Twice the product counts: its top bit does not.
            let half = Ring::Pow2(of.comparison.to - 1);
            let values = difference.map(|difference| half.embed(difference as i64));
            let choices = D::Values::concat(&signs).words();
            tasks.push(Task::Mux { choices, values, bits: of.comparison.to - 1 });
            differences.push((ring, difference));
        }
        let negative = driver.turn(tasks)?.into_iter().flatten();
        let mut outputs = Vec::new();
        for ((negative, (ring, difference)), threshold) in negative.zip(differences).zip(thresholds) {
            let less = |value: u64, negative: u64| ring.sub(value, ring.embed((negative << 1) as i64));
            outputs.extend([difference.zip_map(&negative, less), threshold]);
        }
        Ok(joined(&outputs))
    }
}

impl Corrections {
    fn inputs<V: Lanes>(&self, x: &V) -> Vec<Inputs<V>> {
        let mut from = 0;
        let mut of = |comparison: &Comparison| {
            let mut next = |rows: usize| {
                let taken = x.range(from..from + rows * self.keys);
                from += rows * self.keys;
                taken
            };
            let bits = (0..comparison.shape.bits()).map(|_| next(1)).collect();
            let signs = (0..comparison.shape.stops()).map(|_| next(1)).collect();
            let sums = next(comparison.values());
            Inputs { comparison: *comparison, bits, signs, sums, below: Vec::new(), products: Vec::new() }
        };
        self.comparisons.iter().map(&mut of).collect()
    }

    /// Of each comparison whether each point of its tail is below the threshold's low bits, of one more bit in each turn: below with a higher bit 1
    /// of the threshold is what has a 0 there, and what has a 1 and is below the rest.
    fn compare_tails<D: Driver>(&self, driver: &mut D, inputs: &mut [Inputs<D::Values>]) -> Result<()> {
        for of in inputs.iter_mut().filter(|of| of.comparison.shape.tail() > 0) {
            of.below = vec![of.bit(0).clone()];
        }
        for weight in 1.. {
            let deep = |of: &&mut Inputs<D::Values>| of.comparison.shape.tail() as usize > weight;
            let task = |of: &mut Inputs<D::Values>| {
                Task::Bits(of.bit(weight).words(), of.below.iter().map(Lanes::words).collect())
            };
            let tasks: Vec<Task<D::Values>> = inputs.iter_mut().filter(deep).map(task).collect();
            if tasks.is_empty() {
                break;
            }
            let products = driver.turn(tasks)?;
            for (of, products) in inputs.iter_mut().filter(deep).zip(products) {
                let products: Vec<D::Values> = products.iter().map(|words| words.bits(self.keys)).collect();
                let top = of.bit(weight).clone();
                let either =
                    |(below, both): (&D::Values, &D::Values)| top.zip_map(below, xor).zip_map(both, xor);
                let either: Vec<D::Values> = of.below.iter().zip(&products).map(either).collect();
                of.below = [either, vec![top], products.clone()].concat();
                of.products.extend(products);
            }
        }
        Ok(())
    }
}

/// All bits that are needed as values, with their rings: of each comparison those of its threshold, and its tail's products.
fn bits<V: Lanes>(inputs: &[Inputs<V>]) -> Vec<(V, u32)> {
    let of_one = |of: &Inputs<V>| -> Vec<(V, u32)> {
        let weights = (0..of.comparison.shape.bits()).rev();
        let bits = of.bits.iter().zip(weights);
        let bits = bits.map(|(bits, weight)| (bits.clone(), of.comparison.ring_of_bit(weight)));
        bits.chain(of.products.iter().map(|products| (products.clone(), of.comparison.to))).collect()
    };
    inputs.iter().flat_map(of_one).collect()
}

/// The thresholds, of the values of their bits, the highest first.
fn threshold<V: Lanes>(of: Comparison, bits: &[V]) -> V {
    let ring = Ring::Pow2(of.threshold);
    let double_and_add =
        |sum: V, next: &V| sum.zip_map(next, |sum, bit| ring.embed((sum << 1).wrapping_add(bit) as i64));
    let zero = bits[0].map(|_| 0);
    bits.iter().fold(zero, double_and_add)
}

/// Whether points are below, as values, of the values of bits and of the products in order.
fn below_values<V: Lanes>(of: Comparison, mut bits: Vec<V>, mut products: Vec<V>) -> Vec<V> {
    let ring = Ring::Pow2(of.to);
    let mut bit = || bits.pop().map(|bit| bit.map(|bit| ring.embed(bit as i64)));
    let mut below = Vec::new();
    for _ in 0..of.shape.tail() {
        let both: Vec<V> = products.drain(..below.len()).collect();
        let top = bit();
        let either = |(below, both): (&V, &V)| {
            let sum = top.as_ref().map(|top| top.zip_map(below, |top, below| ring.add(top, below)));
            sum.map(|sum| sum.zip_map(both, |sum, both| ring.sub(sum, both)))
        };
        let either: Vec<V> = below.iter().zip(&both).filter_map(either).collect();
        below = either.into_iter().chain(top).chain(both).collect();
    }
    below
}

/// Whether a comparison's points have a second word.
fn has_second<V>(of: &Inputs<V>) -> bool {
    of.comparison.shape.words() == 2 && !of.below.is_empty()
}

fn joined<V: Lanes>(rows: &[V]) -> V {
    V::concat(&rows.iter().collect::<Vec<_>>())
}

fn repeated<V: Lanes>(row: &V, times: usize) -> V {
    V::concat(&vec![row; times])
}
