//! Keys, and their evaluation.

use lanner_primitives::{Block, CorrelationRobustHash, parallel};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::growth::points as values_of;
use crate::{DpfError, MAX_BITS, POINTS, TAIL_BITS, VALUES, WORDS};

/// The opened corrections of a level, of each key.
#[derive(Clone, Debug)]
pub struct Level {
    /// Of children; none of the last level, if there is no tail behind it.
    pub nodes: Vec<Block>,
    /// Of values, word by word; of a word that is not there, none.
    pub values: [Vec<u64>; WORDS],
}

/// The opened corrections of the last three levels, which are one: of each key those of the values of all points but the last one, modulo `2^16`.
#[derive(Clone, Debug)]
pub struct Tail(pub Vec<[u16; POINTS]>);

/// One party's keys of a number of comparison functions on so many bits, with the root that all have.
///
/// They have no more than what is opened, but for the root, which is this party's secret.
pub struct Keys {
    root: Block,
    first: u64,
    is_second: bool,
    levels: Vec<Level>,
    tail: Option<Tail>,
    count: usize,
}

impl ZeroizeOnDrop for Keys {}

impl Drop for Keys {
    fn drop(&mut self) {
        self.root.zeroize();
    }
}

/// Keys that are evaluated side by side.
const BATCH: usize = 256;

impl Keys {
    /// The keys of a party, the first or the second, with the root and the number that their trees were grown with; the level of the highest bit comes
    /// first.
    ///
    /// # Errors
    /// [`DpfError::Shape`] unless there are corrections for 1 to [`MAX_BITS`] bits of as many keys, with as many words of values in all levels.
    pub fn new(
        root: Block,
        first: u64,
        is_second: bool,
        levels: Vec<Level>,
        tail: Option<Tail>,
    ) -> Result<Self, DpfError> {
        let refuse = |what| Err(DpfError::Shape { what });
        let bits = levels.len() + if tail.is_some() { TAIL_BITS as usize } else { 0 };
        if bits == 0 || bits > MAX_BITS as usize {
            return refuse("the levels of keys");
        }
        let of_levels = levels.first().map(|level| level.values[0].len());
        let of_tail = tail.as_ref().map(|tail| tail.0.len());
        let count = of_levels.or(of_tail).unwrap_or(0);
        let words = levels
            .first()
            .map_or([true; WORDS], |level| level.values.each_ref().map(|word| !word.is_empty()));
        let last = if of_tail.is_some() { levels.len() } else { levels.len() - 1 };
        let is_like = |(number, level): (usize, &Level)| {
            let lengths = level.values.iter().zip(words);
            level.nodes.len() == if number == last { 0 } else { count }
                && lengths.into_iter().all(|(word, there)| word.len() == if there { count } else { 0 })
        };
        if !levels.iter().enumerate().all(is_like) || of_tail.is_some_and(|keys| keys != count) {
            return refuse("the corrections of keys");
        }
        Ok(Self { root, first, is_second, levels, tail, count })
    }

    /// How many there are.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Bits of an `x`.
    #[must_use]
    pub const fn bits(&self) -> u32 {
        self.levels.len() as u32 + if self.tail.is_some() { TAIL_BITS } else { 0 }
    }

    /// The party's root: its secret.
    #[must_use]
    pub const fn root(&self) -> Block {
        self.root
    }

    /// The corrections, the level of the highest bit first.
    #[must_use]
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// The corrections of the tail, if there is one.
    #[must_use]
    pub const fn tail(&self) -> Option<&Tail> {
        self.tail.as_ref()
    }

    /// This party's parts of `f(x)` for each key at an `x` of its own, word by word modulo `2^64`. Each `x` is public.
    ///
    /// # Errors
    /// [`DpfError::Shape`] unless there is one for each key.
    pub fn evaluate(
        &self,
        hash: &CorrelationRobustHash,
        points: &[u64],
    ) -> Result<[Zeroizing<Vec<u64>>; WORDS], DpfError> {
        if points.len() != self.count {
            return Err(DpfError::Shape { what: "the points of keys" });
        }
        let mut sums = [0; WORDS].map(|_| Zeroizing::new(vec![0; self.count]));
        let [low, high] = &mut sums;
        let batches = points.chunks(BATCH).zip(low.chunks_mut(BATCH).zip(high.chunks_mut(BATCH)));
        parallel::for_each((0..).step_by(BATCH).zip(batches), |(start, (points, sums))| {
            self.evaluate_batch(hash, start, points, sums);
        });
        Ok(sums)
    }

    fn evaluate_batch(
        &self,
        hash: &CorrelationRobustHash,
        start: usize,
        points: &[u64],
        (low, high): (&mut [u64], &mut [u64]),
    ) {
        let (count, tweak) = (points.len(), self.first + start as u64);
        let mut nodes = Zeroizing::new([self.root; BATCH]);
        let mut hashed = Zeroizing::new([Block::ZERO; BATCH]);
        let (nodes, hashed) = (&mut nodes[..count], &mut hashed[..count]);
        let bits = self.bits();
        for (level, corrections) in self.levels.iter().enumerate() {
            let bit = |point: u64| point >> (bits - 1 - level as u32) & 1;
            let of_batch = |words: &[u64], key: usize| words.get(start + key).copied().unwrap_or(0);
            hashed.copy_from_slice(nodes);
            hash.hash_in_place(hashed, tweak + VALUES);
            for (key, (node, value)) in nodes.iter().zip(&*hashed).enumerate() {
                let [counts, control] =
                    [bit(points[key]).wrapping_sub(1), (node.0 as u64 & 1).wrapping_neg()];
                let part =
                    |value: u64, words: &[u64]| value.wrapping_add(of_batch(words, key) & control) & counts;
                low[key] = low[key].wrapping_add(part(value.0 as u64, &corrections.values[0]));
                high[key] = high[key].wrapping_add(part((value.0 >> 64) as u64, &corrections.values[1]));
            }
            if corrections.nodes.is_empty() {
                continue;
            }
            hashed.copy_from_slice(nodes);
            hash.hash_in_place(hashed, tweak);
            for (key, (node, hashed)) in nodes.iter_mut().zip(&*hashed).enumerate() {
                let right = Block::mask(bit(points[key]) == 1) & *node;
                let corrected = Block::mask(node.lsb()) & corrections.nodes[start + key];
                *node = *hashed ^ right ^ corrected;
            }
        }
        if let Some(Tail(corrections)) = &self.tail {
            hashed.copy_from_slice(nodes);
            hash.hash_in_place(hashed, tweak + VALUES);
            for (key, (node, value)) in nodes.iter().zip(&*hashed).enumerate() {
                let point = points[key] as usize % POINTS;
                let control = (node.0 as u16 & 1).wrapping_neg();
                let part = values_of(*value)[point].wrapping_add(corrections[start + key][point] & control);
                // The last point is below no threshold.
                low[key] = low[key].wrapping_add(if point + 1 < POINTS { u64::from(part) } else { 0 });
            }
        }
        if self.is_second {
            low.iter_mut().chain(high).for_each(|sum| *sum = sum.wrapping_neg());
        }
    }
}
