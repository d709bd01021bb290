//! The largest element of each window, by masked openings and comparison keys: `max(a, b) = b + relu(a - b)`, a tree of these.
//!
//! ```text
//! C, S: a - b + t mod 2^k, its own part  <------------------>  the other's: e
//! relu(e - t) of the keys of t, as in an activation
//! ```
//!
//! One round for each level of the tree, and 2 k bits for each comparison. Threat model: semi-honest; t is uniform, nobody knows it, and it serves once.

use lanner_dpf::Salts;
use lanner_primitives::{Block, Ring, Share};
use lanner_step::{
    Built, Cost, CotSupply, Known, OfflineCost, Party, ProtocolError, Result, Sets, Spec, ValueType, Windows,
    Work, kind,
};
use lanner_wire::{Channel, ChannelError, DecodeError, Reader, Writer, pack_bits, packed_len};
use rand_core::CryptoRng;
use serde::{Deserialize, Serialize};
use zeroize::ZeroizeOnDrop;

use super::corrections::Comparison;
use super::keyed::{ByKeys, Keyed, Maker};
use super::keys::{MAX_KEYS, Made, Making, swap};
use super::signs::Signs;

/// The largest element of each window, over `Z_2^ring`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Maxima {
    /// The windows.
    pub windows: Windows,
    /// Bits that any difference of two elements has with its sign.
    pub kept: u32,
    /// Bits of the ring.
    pub ring: u32,
}

/// The maxima with the places that windows read, and how their keys are made.
#[derive(Clone, Debug)]
pub struct Tournament {
    spec: Maxima,
    /// The first elements of all windows, then their second ones and so on.
    elements: Vec<usize>,
    /// Number of windows.
    count: usize,
    /// A comparison of each window for each of its elements but one.
    making: Making,
}

/// One party's one-time keys, those of the first comparisons first.
pub struct MaximaMaterial {
    salt: Block,
    signs: Vec<Made>,
}

impl ZeroizeOnDrop for MaximaMaterial {}

impl Spec for Maxima {
    fn infer(&self, inputs: &[ValueType]) -> Result<ValueType> {
        let ring = Ring::Pow2(self.ring);
        ValueType::only(inputs, ring, self.windows.inputs())?;
        Ok(ValueType::shared(ring, self.windows.count()?, Known::NOBODY))
    }

    fn work(&self) -> Work {
        // As for a lookup of as many bits, for each element of a window.
        let work = self.windows.work().without_circuits();
        let nodes = 1_u64 << self.kept.min(lanner_dpf::MAX_BITS);
        Work { window_elements: work.window_elements.saturating_mul(15 + nodes / 700), ..work }
    }

    fn build(&self, _: &Sets) -> Result<Box<dyn Built>> {
        Ok(Box::new(ByKeys(Tournament::new(*self)?)))
    }
}

impl Tournament {
    /// Of windows of more than one element.
    ///
    /// # Errors
    /// [`ProtocolError::Parameters`] unless the windows fit, differences have 2 to 16 bits, and the ring as many or up to 62.
    pub fn new(spec: Maxima) -> Result<Self> {
        let refuse = |what| Err(ProtocolError::Parameters(what));
        let Maxima { windows, kept, ring } = spec;
        let (count, area) = (windows.count()?, windows.area());
        if area < 2 {
            return refuse("windows of an element each");
        }
        if !(2..=lanner_dpf::MAX_BITS).contains(&kept) || !(kept..=62).contains(&ring) {
            return refuse("the bits of maxima");
        }
        if count.checked_mul(area).is_none_or(|keys| keys > MAX_KEYS) {
            return refuse("the keys of maxima");
        }
        let sign = Comparison::new(kept, ring, ring, true)?;
        let making = Making::new(vec![sign; area - 1], count)?;
        Ok(Self { spec, elements: windows.place_by_place()?, count, making })
    }

    /// How many pairs are compared for each window, level by level.
    fn levels(&self) -> impl Iterator<Item = usize> {
        let rows = std::iter::successors(Some(self.spec.windows.area()), |rows| Some(rows.div_ceil(2)));
        rows.take_while(|rows| *rows > 1).map(|rows| rows / 2)
    }
}

impl Keyed for Tournament {
    type Material = MaximaMaterial;

    fn values(&self) -> usize {
        self.count
    }

    fn transfers(&self, sender: Party) -> usize {
        self.making.transfers(sender)
    }

    fn offline_cost(&self, supply: &mut CotSupply) -> OfflineCost {
        self.making.cost(supply)
    }

    fn nodes(&self) -> u64 {
        self.making.nodes()
    }

    fn working(&self) -> u64 {
        self.making.working() as u64 + 4 * (self.elements.len() * size_of::<u64>()) as u64
    }

    fn layouts(&self) -> u64 {
        (self.elements.len() * size_of::<usize>()) as u64
    }

    fn held(&self) -> u64 {
        self.making.held()
    }

    fn online_cost(&self) -> Cost {
        self.levels().fold(Cost::NONE, |cost, pairs| {
            let bytes = packed_len(pairs * self.count, self.spec.kept);
            cost.client(bytes).server(bytes)
        })
    }

    fn prepare(&self, maker: &mut Maker<'_, impl CryptoRng>, salt: Block) -> Result<MaximaMaterial> {
        Ok(MaximaMaterial { salt, signs: self.making.make(maker, salt)? })
    }

    fn online(
        &self,
        channel: &mut dyn Channel,
        party: Party,
        material: MaximaMaterial,
        share: &Share,
    ) -> Result<Share> {
        let Maxima { windows, kept, ring: to } = self.spec;
        let (ring, narrow, count) = (Ring::Pow2(to), Ring::Pow2(kept), self.count);
        ProtocolError::check_share("input share of maxima", share, ring, windows.inputs())?;
        let MaximaMaterial { salt, signs } = material;
        let mut values: Vec<u64> = self.elements.iter().map(|element| share.values()[*element]).collect();
        let salts = (0..).map(|number| Salts::new(salt, number));
        let mut keys = signs.iter().zip(salts);
        for pairs in self.levels() {
            let made: Vec<(&Made, Salts)> = keys.by_ref().take(pairs).collect();
            let (a, rest) = values.split_at(pairs * count);
            let (b, left) = rest.split_at(pairs * count);
            let masks = made.iter().flat_map(|(made, _)| made.thresholds.iter());
            let masked = a.iter().zip(b).zip(masks);
            let masked: Vec<u64> =
                masked.map(|((a, b), t)| narrow.embed(a.wrapping_sub(*b).wrapping_add(*t) as i64)).collect();
            let e = open(channel, party, &masked, kept)?;
            let mut maxima = Vec::with_capacity(b.len() + left.len());
            for (((made, salts), e), b) in made.into_iter().zip(e.chunks(count)).zip(b.chunks(count)) {
                let above = Signs { party, salts: &salts, made, kept, to }.positive(e)?;
                maxima.extend(b.iter().zip(above).map(|(b, above)| ring.add(*b, above)));
            }
            maxima.extend_from_slice(left);
            values = maxima;
        }
        Ok(Share::new(ring, values)?)
    }

    fn encode(&self, material: &MaximaMaterial, writer: &mut Writer) {
        writer.u128(material.salt.0);
        for (made, of) in material.signs.iter().zip(self.making.comparisons()) {
            made.encode(*of, writer);
        }
    }

    fn decode(&self, reader: &mut Reader<'_>, party: Party) -> Result<MaximaMaterial, DecodeError> {
        let salt = Block(reader.u128()?);
        let comparisons = self.making.comparisons().iter();
        let signs = comparisons.map(|of| Made::decode(*of, self.count, party, reader));
        Ok(MaximaMaterial { salt, signs: signs.collect::<Result<_, _>>()? })
    }
}

/// The sums of both parties' parts.
fn open(channel: &mut dyn Channel, party: Party, mine: &[u64], bits: u32) -> Result<Vec<u64>> {
    let theirs = swap(channel, party, kind::MASKED_VALUES, &pack_bits(mine, bits))?;
    let theirs = Reader::new(&theirs).packed(mine.len(), bits).map_err(ChannelError::from)?;
    let ring = Ring::Pow2(bits);
    Ok(mine.iter().zip(theirs).map(|(a, b)| ring.add(*a, b)).collect())
}
