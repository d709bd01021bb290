//! Comparison keys that both parties make together, from transfers.
//!
//! ```text
//! bits of thresholds a: the choices of random transfers of both directions, a = a_C xor a_S
//! a_i Delta, Delta = Delta_C xor Delta_S: each party's own product, and what a transfer of either direction has
//! for each level, of all keys:
//!   sum of H over all nodes xor its part of not(a_i) Delta  ------>  <------  the same: CW, opened
//! V of all levels: products of shared signs and values, opened likewise
//! ```

use std::ops::Range;

use lanner_dpf::{Growth, Keys, Level, POINTS, Sums, Tail, TailSums, WORDS};
use lanner_primitives::{Block, CorrelationRobustHash, Ring};
use lanner_share::Share;
use lanner_wire::{Channel, ChannelError, DecodeError, Reader, Writer, pack_bits, packed_len};
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use super::corrections::{Comparison, Corrections};
use crate::nonlinear::ot_nonlinear::{Correlations, CotSupply, Layer, Transfers};
use crate::{Cost, OfflineCost, Party, ProtocolError, kind};

/// Nodes that are grown at a time, of all keys.
const NODES: usize = 1 << 21;

/// Lanes of the corrections' program.
const LANES: u32 = 64;

/// Keys of comparisons, of as many of each, as both parties make them.
#[derive(Clone, Debug)]
pub(super) struct Making {
    layer: Layer<Corrections>,
}

/// What a party has of one comparison.
pub(super) struct Made {
    pub(super) keys: Keys,
    /// Its share of the thresholds.
    pub(super) thresholds: Zeroizing<Vec<u64>>,
}

/// What trees of a comparison have in sum, level by level, and its bits.
struct Grown {
    sums: Vec<Sums>,
    tail: Option<TailSums>,
    nodes: Vec<Vec<Block>>,
    bits: Zeroizing<Vec<u64>>,
}

impl Making {
    pub(super) fn new(comparisons: Vec<Comparison>, keys: usize) -> Result<Self, ProtocolError> {
        let fits = |of: &Comparison| {
            (1..=lanner_dpf::MAX_BITS).contains(&of.bits)
                && of.to >= 2
                && of.threshold >= of.to
                && of.threshold <= 62
        };
        if !(1..=lanner_dpf::MAX_KEYS / 2).contains(&keys) || !comparisons.iter().all(fits) {
            return Err(ProtocolError::Shape { what: "the keys of a comparison" });
        }
        let inputs = comparisons.iter().map(|of| of.inputs(keys)).sum();
        let layer = Layer::of(Corrections { comparisons, keys }, inputs, LANES, LANES)?;
        Ok(Self { layer })
    }

    pub(super) fn comparisons(&self) -> &[Comparison] {
        &self.layer.program().comparisons
    }

    pub(super) fn keys(&self) -> usize {
        self.layer.program().keys
    }

    /// Transfers of each direction besides those of the products.
    fn bits(&self) -> usize {
        self.comparisons().iter().map(|of| of.bits as usize * self.keys()).sum()
    }

    /// Transfers that a party sends.
    pub(super) fn transfers(&self, sender: Party) -> usize {
        self.bits() + self.layer.transfers(sender)
    }

    /// Levels whose nodes are corrected of the deepest trees.
    fn opened_levels(&self) -> usize {
        self.comparisons().iter().map(|of| of.opened()).max().unwrap_or(0)
    }

    /// Keys whose trees are grown at a time.
    fn chunk(&self) -> usize {
        self.keys().min(NODES >> self.opened_levels()).max(1)
    }

    /// The keys whose trees are grown together, part by part.
    fn chunks(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let (keys, chunk) = (self.keys(), self.chunk());
        (0..keys).step_by(chunk).map(move |start| start..keys.min(start + chunk))
    }

    /// The comparisons whose nodes are corrected at a level, and their numbers.
    fn growing(&self, level: usize) -> impl Iterator<Item = usize> + '_ {
        let of_level = move |(number, of): (usize, &Comparison)| (of.opened() > level).then_some(number);
        self.comparisons().iter().enumerate().filter_map(of_level)
    }

    /// The bytes that each party sends of some keys at each level.
    fn exchanges(&self) -> impl Iterator<Item = usize> + '_ {
        let bytes = |keys: usize, level: usize| self.growing(level).count() * keys * Block::BYTES;
        self.chunks()
            .flat_map(move |keys| (0..self.opened_levels()).map(move |level| bytes(keys.len(), level)))
    }

    /// Bytes that are held while keys are made: nodes and their children of some keys, and of all keys transfers, sums and lanes.
    pub(super) fn working(&self) -> usize {
        let of = |of: &Comparison| 3 * Block::BYTES * (self.chunk() << of.opened());
        let nodes: usize = self.comparisons().iter().map(of).sum();
        let products =
            [Party::Client, Party::Server].map(|party| self.layer.held(party)).into_iter().sum::<u64>();
        nodes + self.bits() * 5 * Block::BYTES + 4 * 8 * self.layer.inputs() + products as usize
    }

    /// Bytes that each party opens of the values' corrections.
    fn opened(&self) -> usize {
        let of = |of: &Comparison| packed_len(of.values() * self.keys(), of.to);
        self.comparisons().iter().map(of).sum()
    }

    /// What all of it sends.
    pub(super) fn cost(&self, supply: &mut CotSupply) -> OfflineCost {
        let drawn = supply.both_ways(self.bits());
        let grown = self.exchanges().fold(Cost::NONE, |cost, bytes| cost.client(bytes).server(bytes));
        let OfflineCost { request, answer } = self.layer.offline_cost(supply);
        let opened = Cost::NONE.client(self.opened()).server(self.opened());
        let products = request.then(answer).then(self.layer.online_cost());
        OfflineCost { request: Cost::NONE, answer: drawn.then(grown).then(products).then(opened) }
    }

    /// Makes keys under a public salt that is used once.
    pub(super) fn make(
        &self,
        channel: &mut dyn Channel,
        transfers: &mut Transfers,
        salt: Block,
        rng: &mut impl CryptoRng,
    ) -> Result<Vec<Made>, ProtocolError> {
        let party = transfers.party();
        let correlations = transfers.both_ways(channel, self.bits())?;
        let hash = CorrelationRobustHash::new(salt);
        let root = root(party, &correlations);
        let grown = self.grow(channel, party, &hash, root, &correlations)?;
        let inputs = self.inputs(party, &grown)?;
        let request = self.layer.request(channel, transfers)?;
        let material = self.layer.prepare(channel, transfers, request, rng)?;
        let outputs = self.layer.online(channel, party, material, &[&inputs])?;
        self.open(channel, party, root, outputs.values(), grown)
    }

    /// Grows all trees, some keys at a time, those of all comparisons together.
    fn grow(
        &self,
        channel: &mut dyn Channel,
        party: Party,
        hash: &CorrelationRobustHash,
        root: Block,
        correlations: &Correlations,
    ) -> Result<Vec<Grown>, ProtocolError> {
        let (keys, mut firsts, mut grown) = (self.keys(), vec![0], Vec::new());
        for (of, number) in self.comparisons().iter().zip(0..) {
            let first: usize = firsts[number];
            let bits = first..first + of.bits as usize * keys;
            firsts.push(bits.end);
            let bits = bits.map(|index| u64::from(correlations.choices.get(index)));
            let nodes = vec![Vec::with_capacity(keys); of.opened()];
            grown.push(Grown { sums: Vec::new(), tail: None, nodes, bits: Zeroizing::new(bits.collect()) });
        }
        let tree = |_: &Comparison| Growth::new(hash, root, 0, 0);
        let mut trees: Vec<Growth<'_>> = self.comparisons().iter().map(tree).collect();
        for Range { start: from, end } in self.chunks() {
            let count = end - from;
            // A number for each key of each comparison.
            for (number, trees) in trees.iter_mut().enumerate() {
                trees.restart(count, (number * keys + from) as u64);
            }
            for level in 0..self.opened_levels() {
                let mut mine = Zeroizing::new(Vec::new());
                for number in self.growing(level) {
                    let sums = trees[number].grow()?;
                    let first = firsts[number] + level * keys + from;
                    let shares = sums.hashes.iter().zip(first..);
                    mine.extend(
                        shares.map(|(hashes, index)| {
                            *hashes ^ root ^ product(party, root, correlations, index)
                        }),
                    );
                    grown[number].add(level, sums);
                }
                let mut opened = exchange(channel, party, &mine)?.into_iter();
                for number in self.growing(level) {
                    let corrections: Vec<Block> = opened.by_ref().take(count).collect();
                    trees[number].correct(&corrections)?;
                    grown[number].nodes[level].extend(corrections);
                }
            }
            for ((of, trees), grown) in self.comparisons().iter().zip(&mut trees).zip(&mut grown) {
                if of.has_tail() {
                    grown.add_tail(trees.finish_tail());
                } else {
                    grown.add(of.opened(), trees.finish());
                }
            }
        }
        Ok(grown)
    }

    /// This party's shares of what corrections are made of.
    fn inputs(&self, party: Party, grown: &[Grown]) -> Result<Share, ProtocolError> {
        let mut lanes = Vec::with_capacity(self.layer.inputs());
        // The control bits' difference is 1 or -1: the second bit of it modulo four.
        let borrow = |controls: &u64| if party == Party::Server { controls & 1 } else { 0 };
        let is_negative = |controls: &u64| (controls >> 1 & 1) ^ borrow(controls);
        let sign = |value: u64| if party == Party::Server { value.wrapping_neg() } else { value };
        for (of, Grown { sums, tail, bits, .. }) in self.comparisons().iter().zip(grown) {
            lanes.extend_from_slice(bits);
            let controls =
                sums.iter().map(|sums| &sums.controls).chain(tail.iter().map(|tail| &tail.controls));
            lanes.extend(controls.flatten().map(is_negative));
            for word in 0..of.words() {
                lanes.extend(sums.iter().flat_map(|sums| &sums.values[word]).map(|value| sign(*value)));
            }
            for (point, tail) in (0..of.points()).zip(tail.iter().cycle()) {
                lanes.extend(tail.values.iter().map(|values| sign(u64::from(values[point]))));
            }
        }
        Ok(Share::new(Ring::Pow2(LANES), lanes)?)
    }

    /// Opens the values' corrections.
    fn open(
        &self,
        channel: &mut dyn Channel,
        party: Party,
        root: Block,
        mut outputs: &[u64],
        grown: Vec<Grown>,
    ) -> Result<Vec<Made>, ProtocolError> {
        let keys = self.keys();
        let (mut mine, mut thresholds) = (Vec::new(), Vec::new());
        for of in self.comparisons() {
            let (values, rest) = outputs.split_at(of.values() * keys);
            let (threshold, rest) = rest.split_at(keys);
            mine.push(values);
            thresholds.push(Zeroizing::new(threshold.to_vec()));
            outputs = rest;
        }
        let message: Vec<u8> =
            self.comparisons().iter().zip(&mine).flat_map(|(of, values)| pack_bits(values, of.to)).collect();
        let theirs = swap(channel, party, kind::KEY_VALUES, &message)?;
        let mut theirs = Reader::new(&theirs);
        let mut made = Vec::new();
        let parts = self.comparisons().iter().zip(mine).zip(grown).zip(thresholds).enumerate();
        for (number, (((of, mine), grown), thresholds)) in parts {
            let ring = Ring::Pow2(of.to);
            let theirs = theirs.packed(mine.len(), of.to).map_err(ChannelError::from)?;
            let opened: Vec<u64> = mine.iter().zip(theirs).map(|(a, b)| ring.add(*a, b)).collect();
            let (of_words, points) = opened.split_at(of.words() * of.levels() * keys);
            let mut words = of_words.chunks(keys);
            let mut all: [Vec<Vec<u64>>; WORDS] = Default::default();
            for word in all.iter_mut().take(of.words()) {
                word.extend(words.by_ref().take(of.levels()).map(<[u64]>::to_vec));
            }
            let (first, levels, tail) =
                ((number * keys) as u64, levels(grown.nodes, all), tail(*of, points, keys));
            let keys = Keys::new(root, first, party == Party::Server, levels, tail)?;
            made.push(Made { keys, thresholds });
        }
        Ok(made)
    }
}

impl Made {
    /// Appends all of it, which takes [`Comparison::held`] bytes.
    pub(super) fn encode(&self, of: Comparison, writer: &mut Writer) {
        writer.packed(&self.thresholds, of.threshold);
        writer.u128(self.keys.root().0);
        for level in self.keys.levels() {
            writer.bytes(Block::slice_as_bytes(&level.nodes));
            level.values[..of.words()].iter().for_each(|words| writer.packed(words, of.to));
        }
        if let Some(Tail(values)) = self.keys.tail() {
            let points =
                (0..of.points()).flat_map(|point| values.iter().map(move |values| u64::from(values[point])));
            writer.packed(&points.collect::<Vec<_>>(), of.to);
        }
    }

    /// Reads what [`Self::encode`] wrote of `count` keys of a comparison, of which the first has number `first`.
    pub(super) fn decode(
        of: Comparison,
        first: u64,
        count: usize,
        party: Party,
        reader: &mut Reader<'_>,
    ) -> Result<Self, DecodeError> {
        let thresholds = Zeroizing::new(reader.packed(count, of.threshold)?);
        let root = Block(reader.u128()?);
        let (mut nodes, mut values): (Vec<Vec<Block>>, [Vec<Vec<u64>>; WORDS]) = Default::default();
        for level in 0..of.levels() {
            if level < of.opened() {
                let bytes = reader.bytes(count * Block::BYTES)?;
                nodes.push(bytes.as_chunks().0.iter().map(|bytes| Block::from_bytes(*bytes)).collect());
            }
            for words in &mut values[..of.words()] {
                words.push(reader.packed(count, of.to)?);
            }
        }
        let points = reader.packed(of.points() * count, of.to)?;
        let tail = tail(of, &points, count);
        let keys = Keys::new(root, first, party == Party::Server, levels(nodes, values), tail);
        let keys = keys.map_err(|_| DecodeError::Invalid { what: "keys" })?;
        Ok(Self { keys, thresholds })
    }
}

impl Grown {
    /// Adds the sums of further keys at a level.
    fn add(&mut self, level: usize, sums: Sums) {
        match self.sums.get_mut(level) {
            Some(before) => before.append(&sums),
            None => self.sums.push(sums),
        }
    }

    fn add_tail(&mut self, sums: TailSums) {
        match &mut self.tail {
            Some(before) => before.append(&sums),
            None => self.tail = Some(sums),
        }
    }
}

/// The levels of keys, of the nodes' corrections and those of each word of the values.
fn levels(nodes: Vec<Vec<Block>>, values: [Vec<Vec<u64>>; WORDS]) -> Vec<Level> {
    let [low, high] = values;
    let mut nodes = nodes.into_iter();
    let mut high = high.into_iter();
    let level = |low| {
        let (nodes, high) = (nodes.next().unwrap_or_default(), high.next().unwrap_or_default());
        Level { nodes, values: [low, high] }
    };
    low.into_iter().map(level).collect()
}

/// The tail of keys, if they have one, of values that lie point by point.
fn tail(of: Comparison, points: &[u64], keys: usize) -> Option<Tail> {
    let value = |key: usize, point: usize| points.get(point * keys + key).map_or(0, |value| *value as u16);
    let values = |key: usize| -> [u16; POINTS] { std::array::from_fn(|point| value(key, point)) };
    of.has_tail().then(|| Tail((0..keys).map(values).collect()))
}

/// A party's part of Delta: the low bit of the client's is 1, that of the server's 0.
fn root(party: Party, correlations: &Correlations) -> Block {
    match party {
        Party::Client => correlations.delta,
        Party::Server => doubled(correlations.delta),
    }
}

const fn doubled(block: Block) -> Block {
    Block(block.0 << 1)
}

/// This party's share of a threshold's bit times Delta, of a transfer of either direction.
fn product(party: Party, root: Block, correlations: &Correlations, index: usize) -> Block {
    let own = Block::mask(correlations.choices.get(index)) & root;
    // The server's part of Delta is doubled, and so is all that belongs to it.
    let [sent, received] = [correlations.sent[index], correlations.received[index]];
    let [sent, received] = match party {
        Party::Client => [sent, doubled(received)],
        Party::Server => [doubled(sent), received],
    };
    own ^ sent ^ received
}

/// The sums of both parties' blocks.
fn exchange(channel: &mut dyn Channel, party: Party, mine: &[Block]) -> Result<Vec<Block>, ProtocolError> {
    let theirs = swap(channel, party, kind::KEY_NODES, Block::slice_as_bytes(mine))?;
    let theirs = theirs.as_chunks().0.iter().map(|bytes| Block::from_bytes(*bytes));
    Ok(mine.iter().zip(theirs).map(|(mine, theirs)| *mine ^ theirs).collect())
}

/// Sends a message and receives one as long: the client first.
fn swap(
    channel: &mut dyn Channel,
    party: Party,
    kind: lanner_wire::Kind,
    mine: &[u8],
) -> Result<Vec<u8>, ProtocolError> {
    if party == Party::Client {
        channel.send(kind, mine)?;
        channel.flush()?;
        return Ok(channel.receive(kind, mine.len())?);
    }
    let theirs = channel.receive(kind, mine.len())?;
    channel.send(kind, mine)?;
    channel.flush()?;
    Ok(theirs)
}
