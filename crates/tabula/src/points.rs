//! Point keys that both parties make together, from transfers, as those of comparisons are: shares of the unit vector of a number that nobody knows.
//!
//! ```text
//! bits of points a: the choices of random transfers of both directions, a = a_C xor a_S
//! for each level, of all keys:
//!   sum of H over all nodes xor its part of not(a_i) Delta  ------>  <------  the same: CW, opened
//! W: products of shared signs and values, opened likewise
//! ```

use std::ops::Range;

use lanner_dpf::{GROUP, POINT_WORDS, PointGrowth, PointKeys, PointShape, PointSums, Salts};
use lanner_primitives::{Block, Ring, Share};
use lanner_step::{Correlations, Cost, CotSupply, OfflineCost, Party, ProtocolError, Result, kind};
use lanner_transfers::Layer;
use lanner_transfers::blocks::{Driver, Lanes, Program, Task, xor};
use lanner_wire::{Channel, ChannelError, DecodeError, Reader, Writer, pack_bits, packed_len};
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use super::keyed::Maker;
use super::keys::{MAX_KEYS, exchange, product, root, swap};

/// Nodes that are grown at a time, of all keys.
const NODES: usize = 1 << 19;

/// Lanes of the corrections' program.
const LANES: u32 = 64;

/// Keys of points, as both parties make them.
#[derive(Clone, Debug)]
pub(super) struct PointMaking {
    layer: Layer<PointCorrections>,
}

/// What a party has of points.
pub(super) struct Points {
    pub(super) keys: PointKeys,
    /// Its shares of them, modulo as many as there are.
    pub(super) places: Zeroizing<Vec<u64>>,
}

/// The corrections of words, of shares of what both parties' trees have in sum:
///
/// ```text
/// W = (1 - 2 sign) ([i is the place of a] - G)
/// ```
///
/// Inputs are lanes of 64 bits: the bits of a, the highest first, of all keys each; the signs; and G, word by word. Outputs W likewise, and a.
#[derive(Clone, Debug)]
struct PointCorrections {
    shape: PointShape,
    keys: usize,
}

impl Program for PointCorrections {
    fn run<D: Driver>(&self, driver: &mut D, x: &D::Values) -> Result<D::Values> {
        let Self { shape, keys } = *self;
        let (bits, to) = (shape.bits() as usize, shape.to());
        let (ring, places) = (Ring::Pow2(to), Ring::Pow2(shape.bits()));
        let rows = |from: usize, count: usize| x.range(from * keys..(from + count) * keys);
        let (signs, sums) = (rows(bits, 1), rows(bits + 1, shape.words()));
        let ones = self.ones(driver, |level| rows(level, 1).words())?;
        let ones = ones.iter().map(|words| words.bits(keys)).collect::<Vec<_>>();
        let ones = D::Values::concat(&ones.iter().collect::<Vec<_>>());
        let given = vec![(rows(0, bits), shape.bits()), (ones, to)];
        let [a, ones] =
            <[D::Values; 2]>::try_from(driver.all_bits_to_values(given)?).map_err(|_| missing())?;
        let double_and_add = |sum: D::Values, next: D::Values| {
            sum.zip_map(&next, |sum, bit| places.add(places.add(sum, sum), bit))
        };
        let of_level = |level: usize| a.range(level * keys..(level + 1) * keys);
        let a = (1..bits).map(of_level).fold(of_level(0), double_and_add);
        let difference =
            ones.zip_map(&sums, |one, sum| ring.sub(ring.embed(one as i64), ring.embed(sum as i64)));
        // Twice the product counts: its top bit does not.
        let half = Ring::Pow2(to - 1);
        let lanes: Vec<usize> = (0..shape.words() * keys).map(|lane| lane % keys).collect();
        let task = Task::Mux {
            choices: signs.gather(&lanes).words(),
            values: difference.map(|difference| half.embed(difference as i64)),
            bits: to - 1,
        };
        let negative = driver.turn(vec![task])?.into_iter().flatten().next().ok_or_else(missing)?;
        let words = difference
            .zip_map(&negative, |value, negative| ring.sub(value, ring.embed((negative << 1) as i64)));
        Ok(D::Values::concat(&[&words, &a]))
    }
}

impl PointCorrections {
    /// For each word whether it is the place of a below its node, in words, of the levels of the bits of a.
    fn ones<D: Driver>(&self, driver: &mut D, level: impl Fn(usize) -> D::Values) -> Result<Vec<D::Values>> {
        let last = level(self.shape.bits() as usize - 1);
        if self.shape.below() == 1 {
            return Ok(vec![driver.complement(&last), last]);
        }
        let next = level(self.shape.bits() as usize - 2);
        let both = driver.bit_products(next.clone(), vec![last.clone()])?.pop().ok_or_else(missing)?;
        let either = next.zip_map(&last, xor).zip_map(&both, xor);
        Ok(vec![driver.complement(&either), last.zip_map(&both, xor), next.zip_map(&both, xor), both])
    }
}

impl PointMaking {
    pub(super) fn new(shape: PointShape, keys: usize) -> Result<Self> {
        ProtocolError::refuse_if(!(1..=MAX_KEYS).contains(&keys), "the keys of points")?;
        let inputs = (shape.bits() as usize + 1 + shape.words()) * keys;
        Ok(Self { layer: Layer::of(PointCorrections { shape, keys }, inputs, LANES, LANES)? })
    }

    pub(super) fn shape(&self) -> PointShape {
        self.layer.program().shape
    }

    pub(super) fn keys(&self) -> usize {
        self.layer.program().keys
    }

    /// Transfers of each direction besides those of the products.
    fn bits(&self) -> usize {
        self.shape().bits() as usize * self.keys()
    }

    /// Transfers that a party sends.
    pub(super) fn transfers(&self, sender: Party) -> usize {
        self.bits() + self.layer.transfers(sender)
    }

    /// The keys whose trees are grown together, part by part.
    fn chunks(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let chunk = (NODES >> self.shape().levels()).next_multiple_of(GROUP);
        let keys = self.keys();
        (0..keys).step_by(chunk).map(move |start| start..keys.min(start + chunk))
    }

    /// Nodes of all trees, the last level's.
    pub(super) fn nodes(&self) -> u64 {
        (self.keys() as u64) << self.shape().levels()
    }

    /// Bytes that are held while keys are made.
    pub(super) fn working(&self) -> u64 {
        let chunk = self.chunks().next().map_or(0, |keys| keys.len());
        let products: u64 =
            [Party::Client, Party::Server].map(|party| self.layer.held(party)).into_iter().sum();
        let nodes = 3 * Block::BYTES * (chunk << self.shape().levels());
        (nodes + self.bits() * 5 * Block::BYTES + 4 * 8 * self.layer.inputs()) as u64 + products
    }

    /// Bytes of a party's keys and shares.
    pub(super) fn held(&self) -> u64 {
        let (shape, keys) = (self.shape(), self.keys());
        let opened = shape.levels() * keys * Block::BYTES + packed_len(shape.words() * keys, shape.to());
        (Block::BYTES + packed_len(keys, shape.bits()) + opened) as u64
    }

    /// What all of it sends.
    pub(super) fn cost(&self, supply: &mut CotSupply) -> Cost {
        let shape = self.shape();
        let each = |cost: Cost, bytes: usize| cost.client(bytes).server(bytes);
        let levels =
            self.chunks().flat_map(|keys| std::iter::repeat_n(keys.len() * Block::BYTES, shape.levels()));
        let grown = levels.fold(supply.both_ways(self.bits()), each);
        let OfflineCost { request, answer } = self.layer.offline_cost(supply);
        let products = grown.then(request).then(answer).then(self.layer.online_cost());
        each(products, packed_len(shape.words() * self.keys(), shape.to()))
    }

    /// Makes keys under salts that are used once.
    pub(super) fn make(
        &self,
        Maker { channel, transfers, rng }: &mut Maker<'_, impl CryptoRng>,
        salts: &Salts,
    ) -> Result<Points> {
        let (channel, party) = (&mut **channel, transfers.party);
        let correlations = transfers.both_ways(channel, self.bits())?;
        let root = root(party, &correlations);
        let (nodes, sums) = self.grow(channel, party, salts, root, &correlations)?;
        let inputs = self.inputs(party, &correlations, &sums)?;
        let request = self.layer.request(channel, transfers)?;
        let material = self.layer.prepare(channel, transfers, request, rng)?;
        let outputs = self.layer.online(channel, party, material, &[&inputs])?;
        let (shape, keys) = (self.shape(), self.keys());
        let (mine, places) = outputs.values().split_at(shape.words() * keys);
        let theirs = swap(channel, party, kind::KEY_VALUES, &pack_bits(mine, shape.to()))?;
        let theirs = Reader::new(&theirs).packed(mine.len(), shape.to()).map_err(ChannelError::from)?;
        let ring = Ring::Pow2(shape.to());
        let opened: Vec<u64> = mine.iter().zip(theirs).map(|(a, b)| ring.add(*a, b)).collect();
        let keys = PointKeys::new(shape, root, party == Party::Server, nodes, words(&opened, keys))?;
        Ok(Points { keys, places: Zeroizing::new(places.to_vec()) })
    }

    /// Grows all trees, some keys at a time: the opened corrections of each level, and what the last nodes have in sum.
    fn grow(
        &self,
        channel: &mut dyn Channel,
        party: Party,
        salts: &Salts,
        root: Block,
        correlations: &Correlations,
    ) -> Result<(Vec<Vec<Block>>, PointSums)> {
        let (shape, keys) = (self.shape(), self.keys());
        let mut nodes = vec![Vec::with_capacity(keys); shape.levels()];
        let mut all = PointSums { values: Vec::with_capacity(keys), controls: Vec::with_capacity(keys) };
        for chunk in self.chunks() {
            let mut trees = PointGrowth::new(shape, salts, root, chunk.clone())?;
            for (level, nodes) in nodes.iter_mut().enumerate() {
                let first = level * keys + chunk.start;
                let shares = trees.grow().into_iter().zip(first..);
                let share = |(sum, index)| sum ^ root ^ product(party, root, correlations, index);
                let mine: Zeroizing<Vec<Block>> = Zeroizing::new(shares.map(share).collect());
                let corrections = exchange(channel, party, &mine)?;
                trees.correct(&corrections)?;
                nodes.extend(corrections);
            }
            let sums = trees.finish();
            all.values.extend_from_slice(&sums.values);
            all.controls.extend_from_slice(&sums.controls);
        }
        Ok((nodes, all))
    }

    /// This party's shares of what corrections are made of.
    fn inputs(&self, party: Party, correlations: &Correlations, sums: &PointSums) -> Result<Share> {
        let is_server = party == Party::Server;
        let mut lanes: Vec<u64> =
            (0..self.bits()).map(|index| u64::from(correlations.choices.get(index))).collect();
        // The control bits' difference is 1 or -1: the second bit of it modulo four.
        lanes.extend(sums.controls.iter().map(|of| (of >> 1 & 1) ^ if is_server { of & 1 } else { 0 }));
        for word in 0..self.shape().words() {
            let values = sums.values.iter().map(|values| values[word]);
            lanes.extend(values.map(|value| if is_server { value.wrapping_neg() } else { value }));
        }
        Ok(Share::new(Ring::Pow2(LANES), lanes)?)
    }
}

impl Points {
    /// Appends all of it, which takes [`PointMaking::held`] bytes.
    pub(super) fn encode(&self, shape: PointShape, writer: &mut Writer) {
        writer.packed(&self.places, shape.bits());
        writer.u128(self.keys.root().0);
        self.keys.nodes().iter().for_each(|nodes| writer.bytes(Block::slice_as_bytes(nodes)));
        let words = (0..shape.words()).flat_map(|word| self.keys.words().iter().map(move |of| of[word]));
        writer.packed(&words.collect::<Vec<_>>(), shape.to());
    }

    /// Reads what [`Self::encode`] wrote of so many keys.
    pub(super) fn decode(
        shape: PointShape,
        count: usize,
        party: Party,
        reader: &mut Reader<'_>,
    ) -> Result<Self, DecodeError> {
        let places = Zeroizing::new(reader.packed(count, shape.bits())?);
        let root = Block(reader.u128()?);
        let mut nodes = Vec::new();
        for _ in 0..shape.levels() {
            let bytes = reader.bytes(count * Block::BYTES)?;
            nodes.push(bytes.as_chunks().0.iter().map(|bytes| Block::from_bytes(*bytes)).collect());
        }
        let opened = reader.packed(shape.words() * count, shape.to())?;
        let keys = PointKeys::new(shape, root, party == Party::Server, nodes, words(&opened, count));
        Ok(Self { keys: keys.map_err(|_| DecodeError::Invalid { what: "keys" })?, places })
    }
}

/// The words of each key, of those that lie word by word.
fn words(opened: &[u64], keys: usize) -> Vec<[u64; POINT_WORDS]> {
    let word = |key: usize, word: usize| opened.get(word * keys + key).copied().unwrap_or(0);
    (0..keys).map(|key| std::array::from_fn(|of| word(key, of))).collect()
}

fn missing() -> ProtocolError {
    ProtocolError::WrongMaterial("corrections of other points")
}
