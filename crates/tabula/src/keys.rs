//! Comparison keys that both parties make together, from transfers.
//!
//! ```text
//! bits of thresholds a: the choices of random transfers of both directions, a = a_C xor a_S
//! a_i Delta, Delta = Delta_C xor Delta_S: each party's own product, and what a transfer of either direction has
//! for each level but the first, of many keys:
//!   sum of H over all nodes xor its part of not(a_i) Delta  ------>  <------  the same: CW, opened
//! V of all stops and points: products of shared signs and values, opened likewise
//! ```

use std::ops::Range;

use lanner_dpf::{Corrections as Opened, GROUP, Growth, Keys, Salts, Sums};
use lanner_primitives::{Block, Ring, Share};
use lanner_step::{Correlations, Cost, CotSupply, OfflineCost, Party, ProtocolError, Result, kind};
use lanner_transfers::Layer;
use lanner_wire::{Channel, ChannelError, DecodeError, Reader, Writer, pack_bits, packed_len};
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use super::corrections::{Comparison, Corrections};
use super::keyed::Maker;

/// Nodes that are stored of the trees of one comparison.
const NODES: usize = 1 << 22;

/// The most keys, which are numbered.
pub(super) const MAX_KEYS: usize = 1 << 30;

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

/// What a party has of trees of a comparison, of all keys.
struct Grown {
    /// Its shares of the thresholds' bits, the highest first.
    bits: Zeroizing<Vec<u64>>,
    /// Of the highest times Delta.
    shares: Zeroizing<Vec<Block>>,
    /// Of each stop its share of the sign.
    signs: Vec<Zeroizing<Vec<u64>>>,
    /// Its part of the sums of values, number by number.
    values: Vec<Zeroizing<Vec<u64>>>,
    opened: Opened,
}

impl Making {
    pub(super) fn new(comparisons: Vec<Comparison>, keys: usize) -> Result<Self> {
        ProtocolError::refuse_if(!(1..=MAX_KEYS).contains(&keys), "the keys of a comparison")?;
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

    /// Transfers of each direction besides those of the products: for the bits that trees are grown for.
    fn bits(&self) -> usize {
        self.comparisons().iter().map(|of| of.shape.depth() * self.keys()).sum()
    }

    /// Transfers that a party sends.
    pub(super) fn transfers(&self, sender: Party) -> usize {
        self.bits() + self.layer.transfers(sender)
    }

    /// The depth of the deepest trees.
    fn depth(&self) -> usize {
        self.comparisons().iter().map(|of| of.shape.depth()).max().unwrap_or(0)
    }

    /// Keys whose trees are grown at a time: whole groups.
    fn chunk(&self) -> usize {
        let stored = self.comparisons().iter().map(|of| Growth::stored(of.shape)).max().unwrap_or(1);
        (NODES / stored).min(self.keys().next_multiple_of(GROUP))
    }

    /// The keys whose trees are grown together, part by part.
    fn chunks(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let (keys, chunk) = (self.keys(), self.chunk());
        (0..keys).step_by(chunk).map(move |start| start..keys.min(start + chunk))
    }

    /// The bytes that each party sends of some keys at each depth.
    fn exchanges(&self) -> impl Iterator<Item = usize> + '_ {
        let growing = |depth: usize| self.comparisons().iter().filter(move |of| of.shape.depth() > depth);
        self.chunks().flat_map(move |keys| {
            (1..self.depth()).map(move |depth| growing(depth).count() * keys.len() * Block::BYTES)
        })
    }

    /// Bytes that are held while keys are made: stored nodes of some keys, and of all keys transfers, sums and lanes.
    pub(super) fn working(&self) -> usize {
        let of =
            |of: &Comparison| Block::BYTES * self.chunk() * (Growth::stored(of.shape) + of.shape.depth());
        let nodes: usize = self.comparisons().iter().map(of).sum();
        let products =
            [Party::Client, Party::Server].map(|party| self.layer.held(party)).into_iter().sum::<u64>();
        nodes + self.bits() * 5 * Block::BYTES + 4 * 8 * self.layer.inputs() + products as usize
    }

    /// Nodes of all trees, down to the last level that is stored.
    pub(super) fn nodes(&self) -> u64 {
        let of = |of: &Comparison| Growth::stored(of.shape) as u64;
        self.keys() as u64 * self.comparisons().iter().map(of).sum::<u64>()
    }

    /// Bytes that each party opens of the values' corrections.
    fn opened(&self) -> usize {
        let of = |of: &Comparison| packed_len(of.values() * self.keys(), of.to());
        self.comparisons().iter().map(of).sum()
    }

    /// Bytes of a party's keys and of their salt.
    pub(super) fn held(&self) -> u64 {
        let keys: usize = self.comparisons().iter().map(|of| of.held(self.keys())).sum();
        (Block::BYTES + keys) as u64
    }

    /// What all of it sends, the salt included.
    pub(super) fn cost(&self, supply: &mut CotSupply) -> OfflineCost {
        let drawn = supply.both_ways(self.bits());
        let grown = self.exchanges().fold(Cost::NONE, |cost, bytes| cost.client(bytes).server(bytes));
        let OfflineCost { request, answer } = self.layer.offline_cost(supply);
        let opened = Cost::NONE.client(self.opened()).server(self.opened());
        let products = request.then(answer).then(self.layer.online_cost());
        OfflineCost {
            request: Cost::NONE.client(Block::BYTES),
            answer: drawn.then(grown).then(products).then(opened),
        }
    }

    /// Makes keys under a public salt that is used once.
    pub(super) fn make(
        &self,
        Maker { channel, transfers, rng }: &mut Maker<'_, impl CryptoRng>,
        salt: Block,
    ) -> Result<Vec<Made>> {
        let (channel, party) = (&mut **channel, transfers.party);
        let correlations = transfers.both_ways(channel, self.bits())?;
        let root = root(party, &correlations);
        let mut grown = self.begin(party, root, &correlations, rng);
        self.grow(channel, party, salt, root, &correlations, &mut grown)?;
        drop(correlations);
        let inputs = self.inputs(&grown)?;
        let request = self.layer.request(channel, transfers)?;
        let material = self.layer.prepare(channel, transfers, request, rng)?;
        let outputs = self.layer.online(channel, party, material, &[&inputs])?;
        self.open(channel, party, root, outputs.values(), grown)
    }

    /// Draws thresholds: choices of transfers for the bits that trees are grown for, and others.
    fn begin(
        &self,
        party: Party,
        root: Block,
        correlations: &Correlations,
        rng: &mut impl CryptoRng,
    ) -> Vec<Grown> {
        let keys = self.keys();
        let mut grown = Vec::new();
        for (of, first) in self.comparisons().iter().zip(self.firsts()) {
            let chosen = first..first + of.shape.depth() * keys;
            let mut bits = Zeroizing::new(Vec::with_capacity(of.shape.bits() as usize * keys));
            bits.extend(chosen.map(|index| u64::from(correlations.choices.get(index))));
            bits.extend((0..of.shape.tail() as usize * keys).map(|_| rng.next_u64() & 1));
            let shares = (first..first + keys).map(|index| product(party, root, correlations, index));
            let room = |rows: usize| (0..rows).map(|_| Zeroizing::new(Vec::with_capacity(keys))).collect();
            let nodes = vec![Vec::with_capacity(keys); of.shape.corrected()];
            grown.push(Grown {
                bits,
                shares: Zeroizing::new(shares.collect()),
                signs: room(of.shape.stops()),
                values: room(of.values()),
                opened: Opened { nodes, values: Vec::new() },
            });
        }
        grown
    }

    /// The numbers of each comparison's first transfers.
    fn firsts(&self) -> impl Iterator<Item = usize> + '_ {
        let lengths = self.comparisons().iter().map(|of| of.shape.depth() * self.keys());
        lengths.scan(0, |first, length| Some(std::mem::replace(first, *first + length)))
    }

    /// Grows all trees, some keys at a time, those of all comparisons together.
    fn grow(
        &self,
        channel: &mut dyn Channel,
        party: Party,
        salt: Block,
        root: Block,
        correlations: &Correlations,
        grown: &mut [Grown],
    ) -> Result<()> {
        let salts: Vec<Salts> = (0..).take(grown.len()).map(|number| Salts::new(salt, number)).collect();
        let of_each = self.comparisons().iter().zip(&salts);
        let mut trees: Vec<Growth<'_>> =
            of_each.map(|(of, salts)| Growth::new(of.shape, salts, root)).collect();
        for keys in self.chunks() {
            for (trees, grown) in trees.iter_mut().zip(&*grown) {
                trees.restart(keys.clone(), grown.shares[keys.clone()].iter().copied())?;
            }
            for depth in 1..=self.depth() {
                let mut mine = Zeroizing::new(Vec::new());
                for (number, first) in self.firsts().enumerate() {
                    let of = self.comparisons()[number];
                    if of.shape.depth() >= depth {
                        let sums = trees[number].sums()?;
                        // Of not(a_i) Delta for the bit of the next level.
                        let shares = (first + depth * self.keys() + keys.start..)
                            .map(|index| root ^ product(party, root, correlations, index));
                        mine.extend(sums.hashes.iter().zip(shares).map(|(hashes, share)| *hashes ^ share));
                        grown[number].add(of, depth, party, &sums);
                    }
                }
                if mine.is_empty() {
                    break;
                }
                let opened = exchange(channel, party, &mine)?;
                let mut opened = opened.chunks(keys.len());
                let growing = self.comparisons().iter().zip(&mut trees).zip(&mut *grown);
                for ((_, trees), grown) in growing.filter(|((of, _), _)| of.shape.depth() > depth) {
                    let corrections = opened.next().unwrap_or_default();
                    trees.correct(corrections.to_vec())?;
                    grown.opened.nodes[depth - 1].extend_from_slice(corrections);
                }
            }
        }
        Ok(())
    }

    /// This party's shares of what corrections are made of.
    fn inputs(&self, grown: &[Grown]) -> Result<Share> {
        let mut lanes = Vec::with_capacity(self.layer.inputs());
        for Grown { bits, signs, values, .. } in grown {
            std::iter::once(bits).chain(signs).chain(values).for_each(|row| lanes.extend_from_slice(row));
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
    ) -> Result<Vec<Made>> {
        let keys = self.keys();
        let (mut mine, mut thresholds) = (Vec::new(), Vec::new());
        for of in self.comparisons() {
            let (values, rest) = outputs.split_at(of.values() * keys);
            let (threshold, rest) = rest.split_at(keys);
            mine.push(values);
            thresholds.push(Zeroizing::new(threshold.to_vec()));
            outputs = rest;
        }
        let message: Vec<u8> = self
            .comparisons()
            .iter()
            .zip(&mine)
            .flat_map(|(of, values)| pack_bits(values, of.to()))
            .collect();
        let theirs = swap(channel, party, kind::KEY_VALUES, &message)?;
        let mut theirs = Reader::new(&theirs);
        let mut made = Vec::new();
        let parts = self.comparisons().iter().zip(mine).zip(grown).zip(thresholds);
        for (((of, mine), Grown { shares, mut opened, .. }), thresholds) in parts {
            let ring = Ring::Pow2(of.to());
            let theirs = theirs.packed(mine.len(), of.to()).map_err(ChannelError::from)?;
            let row = |(mine, theirs): (&[u64], &[u64])| -> Vec<u64> {
                mine.iter().zip(theirs).map(|(a, b)| ring.add(*a, *b)).collect()
            };
            opened.values = mine.chunks(keys).zip(theirs.chunks(keys)).map(row).collect();
            let keys = Keys::new(of.shape, root, shares, party == Party::Server, opened)?;
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
        let Opened { nodes, values } = self.keys.corrections();
        writer.bytes(Block::slice_as_bytes(self.keys.shares()));
        for nodes in nodes {
            writer.bytes(Block::slice_as_bytes(nodes));
        }
        for values in values {
            writer.packed(values, of.to());
        }
    }

    /// Reads what [`Self::encode`] wrote of `count` keys of a comparison.
    pub(super) fn decode(
        of: Comparison,
        count: usize,
        party: Party,
        reader: &mut Reader<'_>,
    ) -> Result<Self, DecodeError> {
        let thresholds = Zeroizing::new(reader.packed(count, of.threshold)?);
        let root = Block(reader.u128()?);
        let shares = Zeroizing::new(read_blocks(reader, count)?);
        let nodes =
            (0..of.shape.corrected()).map(|_| read_blocks(reader, count)).collect::<Result<_, _>>()?;
        let values = (0..of.values()).map(|_| reader.packed(count, of.to())).collect::<Result<_, _>>()?;
        let keys = Keys::new(of.shape, root, shares, party == Party::Server, Opened { nodes, values });
        Ok(Self { keys: keys.map_err(|_| DecodeError::Invalid { what: "keys" })?, thresholds })
    }
}

fn read_blocks(reader: &mut Reader<'_>, count: usize) -> Result<Vec<Block>, DecodeError> {
    let bytes = reader.bytes(count * Block::BYTES)?;
    Ok(bytes.as_chunks().0.iter().map(|bytes| Block::from_bytes(*bytes)).collect())
}

impl Grown {
    /// Adds the sums of further keys at a depth: at a stop this party's part of signs and values.
    fn add(&mut self, of: Comparison, depth: usize, party: Party, sums: &Sums) {
        let Some(stop) = of.shape.stop(depth) else { return };
        // The control bits' difference is 1 or -1: the second bit of it modulo four.
        let borrow = |controls: &u64| if party == Party::Server { controls & 1 } else { 0 };
        let is_negative = |controls: &u64| (controls >> 1 & 1) ^ borrow(controls);
        self.signs[stop].extend(sums.controls.iter().map(is_negative));
        let sign = |value: u64| if party == Party::Server { value.wrapping_neg() } else { value };
        let points = if depth == of.shape.depth() { of.shape.points() } else { 0 };
        for (word, values) in self.values.chunks_mut(of.shape.numbers()).enumerate() {
            let (stops, of_points) = values.split_at_mut(of.shape.stops());
            let of_points = of_points.iter_mut().zip((0..points).map(Some));
            for (values, point) in of_points.chain([(&mut stops[stop], None)]) {
                let (block, number) = of.shape.place(word, point);
                values.extend(sums.values[block].iter().map(|sum| sign(of.shape.number(*sum, number))));
            }
        }
    }
}

/// A party's part of Delta: the low bit of the client's is 1, that of the server's 0.
pub(super) fn root(party: Party, correlations: &Correlations) -> Block {
    match party {
        Party::Client => correlations.delta,
        Party::Server => doubled(correlations.delta),
    }
}

const fn doubled(block: Block) -> Block {
    Block(block.0 << 1)
}

/// This party's share of a threshold's bit times Delta, of a transfer of either direction.
pub(super) fn product(party: Party, root: Block, correlations: &Correlations, index: usize) -> Block {
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
pub(super) fn exchange(channel: &mut dyn Channel, party: Party, mine: &[Block]) -> Result<Vec<Block>> {
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
) -> Result<Vec<u8>> {
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
