//! Comparison keys that both parties make together, from transfers.
//!
//! ```text
//! bits of thresholds a: the choices of random transfers of both directions, a = a_C xor a_S
//! a_i Delta, Delta = Delta_C xor Delta_S: each party's own product, and what a transfer of either direction has
//! for each level, of all keys:
//!   sum of H over all nodes xor its part of not(a_i) Delta  ------>  <------  the same: CW, opened
//! V of all levels: products of shared signs and values, opened likewise
//! ```

use lanner_dpf::{Growth, Keys, Level, Sums};
use lanner_primitives::{Block, CorrelationRobustHash, Ring};
use lanner_share::Share;
use lanner_wire::{Channel, ChannelError, DecodeError, Reader, Writer, pack_bits, packed_len};
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use super::corrections::{Comparison, Corrections};
use crate::nonlinear::ot_nonlinear::{Correlations, CotSupply, Layer, Transfers};
use crate::{Cost, OfflineCost, Party, ProtocolError, kind};

/// Nodes that are grown at a time, of all keys.
const NODES: usize = 1 << 22;

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
    nodes: Vec<Vec<Block>>,
    bits: Vec<Zeroizing<Vec<u64>>>,
}

impl Making {
    pub(super) fn new(comparisons: Vec<Comparison>, keys: usize) -> Result<Self, ProtocolError> {
        let fits = |of: &Comparison| {
            (1..=lanner_dpf::MAX_BITS).contains(&of.bits)
                && of.to >= 2
                && of.threshold >= of.to
                && of.threshold <= 62
        };
        if keys == 0 || !comparisons.iter().all(fits) {
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

    /// Levels of the deepest trees.
    fn deepest(&self) -> u32 {
        self.comparisons().iter().map(|of| of.bits).max().unwrap_or(1)
    }

    /// Keys whose trees are grown at a time.
    fn chunk(&self) -> usize {
        self.keys().min(NODES >> self.deepest()).max(1)
    }

    /// How many keys there are in each part, and the bytes that each party sends of them at each level.
    fn exchanges(&self) -> impl Iterator<Item = usize> + '_ {
        let levels = self.deepest() - 1;
        let chunks =
            (0..self.keys()).step_by(self.chunk()).map(|start| self.chunk().min(self.keys() - start));
        chunks.flat_map(move |keys| {
            (0..levels).map(move |level| {
                let growing = self.comparisons().iter().filter(|of| of.bits > level + 1).count();
                growing * keys * Block::BYTES
            })
        })
    }

    /// Bytes that are held while keys are made: nodes and their children of some keys, and of all keys transfers, sums and lanes.
    pub(super) fn working(&self) -> usize {
        let of = |of: &Comparison| 3 * Block::BYTES * (self.chunk() << (of.bits - 1));
        let nodes: usize = self.comparisons().iter().map(of).sum();
        let lanes: usize = self.comparisons().iter().map(|of| of.inputs(self.keys())).sum();
        let products =
            [Party::Client, Party::Server].map(|party| self.layer.held(party)).into_iter().sum::<u64>();
        nodes + self.bits() * 5 * Block::BYTES + 4 * 8 * lanes + products as usize
    }

    /// Bytes that each party opens of the values' corrections.
    fn opened(&self) -> usize {
        let of = |of: &Comparison| packed_len(of.bits as usize * self.keys() * of.words(), of.to);
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
        let (keys, mut start) = (self.keys(), 0);
        let firsts: Vec<usize> = self
            .comparisons()
            .iter()
            .map(|of| {
                start += of.bits as usize * keys;
                start - of.bits as usize * keys
            })
            .collect();
        let mut grown: Vec<Grown> = self
            .comparisons()
            .iter()
            .map(|of| Grown {
                sums: Vec::new(),
                nodes: vec![Vec::with_capacity(keys); of.bits as usize],
                bits: (0..of.bits).map(|_| Zeroizing::new(Vec::with_capacity(keys))).collect(),
            })
            .collect();
        for from in (0..keys).step_by(self.chunk()) {
            let count = self.chunk().min(keys - from);
            // A number for each key of each comparison.
            let tree = |number| Some(Growth::new(hash, root, count, (number * keys + from) as u64));
            let mut trees: Vec<Option<Growth<'_>>> = (0..self.comparisons().len()).map(tree).collect();
            for level in 0..self.deepest() {
                let at = level as usize;
                let growing = || self.comparisons().iter().enumerate().filter(|(_, of)| of.bits > level);
                let mut mine = Zeroizing::new(Vec::new());
                for (number, of) in growing() {
                    let is_last = of.bits == level + 1;
                    let missing = || ProtocolError::Shape { what: "the trees of a comparison" };
                    let sums = if is_last {
                        trees[number].take().ok_or_else(missing)?.finish()
                    } else {
                        trees[number].as_mut().ok_or_else(missing)?.grow()?
                    };
                    for (key, hashes) in sums.hashes.iter().enumerate() {
                        let index = firsts[number] + at * keys + from + key;
                        let (bit, product) = product(party, root, correlations, index);
                        grown[number].bits[at].push(bit);
                        if !is_last {
                            mine.push(*hashes ^ product ^ root);
                        }
                    }
                    match grown[number].sums.get_mut(at) {
                        Some(before) => before.append(&sums),
                        None => grown[number].sums.push(sums),
                    }
                }
                if mine.is_empty() {
                    continue;
                }
                let mut opened = exchange(channel, party, &mine)?.into_iter();
                for (number, _) in growing() {
                    let Some(trees) = &mut trees[number] else { continue };
                    let corrections: Vec<Block> = opened.by_ref().take(count).collect();
                    trees.correct(&corrections)?;
                    grown[number].nodes[at].extend(corrections);
                }
            }
        }
        Ok(grown)
    }

    /// This party's shares of what corrections are made of.
    fn inputs(&self, party: Party, grown: &[Grown]) -> Result<Share, ProtocolError> {
        let mut lanes = Vec::new();
        for (of, grown) in self.comparisons().iter().zip(grown) {
            grown.bits.iter().for_each(|bits| lanes.extend_from_slice(bits));
            for sums in &grown.sums {
                // The control bits' difference is 1 or -1: the second bit of it modulo four.
                let borrow = |controls: &u64| if party == Party::Server { controls & 1 } else { 0 };
                lanes.extend(sums.controls.iter().map(|controls| (controls >> 1 & 1) ^ borrow(controls)));
            }
            for word in 0..of.words() {
                let sign = |value: &u64| if party == Party::Server { value.wrapping_neg() } else { *value };
                lanes.extend(grown.sums.iter().flat_map(|sums| &sums.values[word]).map(sign));
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
            let (values, rest) = outputs.split_at(of.words() * of.bits as usize * keys);
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
            let bits = of.bits as usize;
            let level = |(level, nodes): (usize, Vec<Block>)| {
                let word = |word: usize| {
                    let there = if word < of.words() { keys } else { 0 };
                    opened.get((word * bits + level) * keys..).map_or(Vec::new(), |all| all[..there].to_vec())
                };
                Level { nodes, values: [word(0), word(1)] }
            };
            let levels = grown.nodes.into_iter().enumerate().map(level).collect();
            let keys = Keys::new(root, (number * keys) as u64, party == Party::Server, levels)?;
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
        let mut levels = Vec::new();
        for level in 0..of.bits {
            let nodes = if level + 1 < of.bits { count } else { 0 };
            let nodes = reader.bytes(nodes * Block::BYTES)?;
            let nodes = nodes.as_chunks().0.iter().map(|bytes| Block::from_bytes(*bytes)).collect();
            let mut values = [Vec::new(), Vec::new()];
            for words in &mut values[..of.words()] {
                *words = reader.packed(count, of.to)?;
            }
            levels.push(Level { nodes, values });
        }
        let keys = Keys::new(root, first, party == Party::Server, levels);
        let keys = keys.map_err(|_| DecodeError::Invalid { what: "keys" })?;
        Ok(Self { keys, thresholds })
    }
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

/// This party's share of a threshold's bit, and of the bit times Delta, of a transfer of either direction.
fn product(party: Party, root: Block, correlations: &Correlations, index: usize) -> (u64, Block) {
    let bit = correlations.choices.get(index);
    // The server's part of Delta is doubled, and so is all that belongs to it.
    let [sent, received] = [correlations.sent[index], correlations.received[index]];
    let [sent, received] = match party {
        Party::Client => [sent, doubled(received)],
        Party::Server => [doubled(sent), received],
    };
    (u64::from(bit), (Block::mask(bit) & root) ^ sent ^ received)
}

/// The sums of both parties' blocks.
fn exchange(channel: &mut dyn Channel, party: Party, mine: &[Block]) -> Result<Vec<Block>, ProtocolError> {
    let theirs = swap(channel, party, kind::KEY_NODES, Block::slice_as_bytes(mine))?;
    let theirs = theirs.as_chunks().0.iter().map(|bytes| Block::from_bytes(*bytes));
    Ok(mine.iter().zip(theirs).map(|(mine, theirs)| *mine ^ theirs).collect())
}

/// Sends a message and receives one as long: the client first.
pub(super) fn swap(
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
