//! Any function of a rescaled value as a table over the bits that are kept, by point keys.
//!
//! ```text
//! e = u + t mod 2^k of the rescaled u, opened as an activation's is
//! y = sum over all j of T[e - j mod 2^k] o_j,    o the unit vector of t, of which each party's keys have shares
//! ```
//!
//! Keys are expanded when e is known, or ahead, into the vectors themselves: faster online, and some kilobytes a value.

use lanner_dpf::{MAX_BITS, PointShape, Salts};
use lanner_primitives::{Block, Ring, Share, parallel};
use lanner_step::{
    Built, Cost, CotSupply, Known, OfflineCost, Party, ProtocolError, Result, Sets, Spec, ValueType, Work,
};
use lanner_transfers::Polynomials;
use lanner_wire::{Channel, DecodeError, Reader, Writer, packed_len};
use rand_core::CryptoRng;
use serde::{Deserialize, Serialize};
use zeroize::{ZeroizeOnDrop, Zeroizing};

use super::corrections::Comparison;
use super::keyed::{ByKeys, Keyed, Maker};
use super::keys::{Made, Making};
use super::opening::Opening;
use super::points::{PointMaking, Points};

/// A function of each rescaled element, from `Z_2^from` to `Z_2^to`. Elements must be below a quarter of the former, unless the domain is all that is left of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// Number of values.
    pub values: usize,
    /// Bits of the ring of the input.
    pub from: u32,
    /// Bits that are dropped, rounded.
    pub shift: u32,
    /// What is computed of what is left.
    pub function: Polynomials,
    /// Bits of the ring of the output.
    pub to: u32,
    /// Whether keys are expanded ahead.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub expanded: bool,
}

/// The most bits of a table: every value of it is read.
const MAX_TABLE_BITS: u32 = 12;

/// A table with how its keys are made.
#[derive(Clone, Debug)]
pub struct TableLookup {
    kept: u32,
    dropped: u32,
    to: u32,
    /// The function of all numbers of `kept` bits, those with a sign last, modulo `2^to`.
    table: Vec<u64>,
    making: Making,
    points: PointMaking,
    expanded: bool,
}

/// One party's one-time masks and keys.
pub struct TableMaterial {
    salt: Block,
    masks: Zeroizing<Vec<u64>>,
    borrows: Made,
    points: Vectors,
}

/// What a party has of unit vectors.
enum Vectors {
    Keys(Points),
    /// Shares of the vectors, one after the other, and of the places of their ones.
    Expanded(Zeroizing<Vec<u64>>, Zeroizing<Vec<u64>>),
}

impl ZeroizeOnDrop for TableMaterial {}

impl Spec for Table {
    fn infer(&self, inputs: &[ValueType]) -> Result<ValueType> {
        ValueType::only(inputs, Ring::Pow2(self.from), self.values)?;
        Ok(ValueType::shared(Ring::Pow2(self.to), self.values, Known::NOBODY))
    }

    fn work(&self) -> Work {
        // As of a lookup, for half of the nodes, which both parties grow twice.
        let left = self.from.saturating_sub(self.shift).min(MAX_BITS);
        let nodes = (1_u64 << left) / 2 + (1 << self.shift.min(MAX_BITS)) / 4;
        Work { window_elements: (self.values as u64).saturating_mul(15 + nodes / 700), ..Work::default() }
    }

    fn build(&self, _: &Sets) -> Result<Box<dyn Built>> {
        Ok(Box::new(ByKeys(TableLookup::new(self)?)))
    }
}

impl TableLookup {
    /// Of values below a quarter of their ring.
    ///
    /// # Errors
    /// [`ProtocolError::Parameters`] unless there are values, of 3 to 12 bits with their sign and 1 to 16 that are dropped, results modulo 2^2 to 2^62, and the
    /// function is one.
    pub fn new(spec: &Table) -> Result<Self> {
        let &Table { values, from, shift: dropped, to, expanded, .. } = spec;
        let left = from.saturating_sub(dropped);
        // A domain that is the whole ring has no room for a sign above.
        let kept = if spec.function.bits == left { left } else { left.saturating_sub(1) };
        ProtocolError::refuse_if(
            kept > MAX_TABLE_BITS || !(1..=MAX_BITS).contains(&dropped),
            "the bits of a table",
        )?;
        let shape = PointShape::new(kept, to)?;
        let borrow = Comparison::new(dropped, kept, kept + dropped, false)?;
        let (making, points) = (Making::new(vec![borrow], values)?, PointMaking::new(shape, values)?);
        let ring = Ring::Pow2(to);
        let signed = |number: i64| number - if number >> (kept - 1) == 1 { 1 << kept } else { 0 };
        let value = |number: i64| spec.function.at(signed(number)).map(|value| ring.embed(value));
        let table = (0..1 << kept).map(value).collect::<Result<_, _>>()?;
        Ok(Self { kept, dropped, to, table, making, points, expanded })
    }

    /// The vectors of keys.
    fn expand(&self, salts: &Salts, points: Points) -> Result<Vectors> {
        let mut vectors = Zeroizing::new(vec![0; self.values() << self.kept]);
        let mut items: Vec<&mut [u64]> = vectors.chunks_mut(1 << self.kept).collect();
        points.keys.expand(salts, &mut items, |_, shares, item| item.copy_from_slice(shares))?;
        Ok(Vectors::Expanded(vectors, points.places))
    }

    /// The sum of `T[e - j] o_j`: places follow from e, which is public.
    fn read(&self, e: u64, shares: &[u64]) -> u64 {
        let (up, down) = shares.split_at(e as usize + 1);
        let (low, high) = self.table.split_at(e as usize + 1);
        let product = |sum: u64, (value, share): (&u64, &u64)| sum.wrapping_add(value.wrapping_mul(*share));
        let sum = low.iter().rev().zip(up).fold(0, product);
        Ring::Pow2(self.to).embed(high.iter().rev().zip(down).fold(sum, product) as i64)
    }
}

impl Keyed for TableLookup {
    type Material = TableMaterial;

    fn values(&self) -> usize {
        self.points.keys()
    }

    fn transfers(&self, sender: Party) -> usize {
        self.making.transfers(sender) + self.points.transfers(sender)
    }

    fn offline_cost(&self, supply: &mut CotSupply) -> OfflineCost {
        let OfflineCost { request, answer } = self.making.cost(supply);
        OfflineCost { request, answer: answer.then(self.points.cost(supply)) }
    }

    fn online_cost(&self) -> Cost {
        let [masked, high] =
            [self.kept + self.dropped, self.kept].map(|bits| packed_len(self.values(), bits));
        Cost::NONE.client(masked).server(masked + high).client(high)
    }

    fn held(&self) -> u64 {
        let count = self.values();
        let vectors = if self.expanded {
            (packed_len(count << self.kept, self.to) + packed_len(count, self.kept)) as u64
        } else {
            self.points.held()
        };
        self.making.held() + packed_len(count, self.kept + self.dropped) as u64 + vectors
    }

    fn nodes(&self) -> u64 {
        self.making.nodes() + self.points.nodes()
    }

    fn working(&self) -> u64 {
        let expanded = if self.expanded { (8 * self.values() as u64) << self.kept } else { 0 };
        (self.making.working() as u64).max(self.points.working()).max(expanded)
    }

    fn prepare(&self, maker: &mut Maker<'_, impl CryptoRng>, salt: Block) -> Result<TableMaterial> {
        let made = self.making.make(maker, salt)?.pop();
        let borrows = made.ok_or(ProtocolError::WrongMaterial("no keys of a table"))?;
        let salts = Salts::new(salt, 1);
        let points = self.points.make(maker, &salts)?;
        let ring = Ring::Pow2(self.kept + self.dropped);
        // The high bits need no keys: each party draws its share.
        let high = std::iter::repeat_with(|| ring.embed((maker.rng.next_u64() << self.dropped) as i64));
        let masks = high.zip(borrows.thresholds.iter()).map(|(high, low)| ring.add(high, *low)).collect();
        let points = if self.expanded { self.expand(&salts, points)? } else { Vectors::Keys(points) };
        Ok(TableMaterial { salt, masks: Zeroizing::new(masks), borrows, points })
    }

    fn online(
        &self,
        channel: &mut dyn Channel,
        party: Party,
        material: TableMaterial,
        share: &Share,
    ) -> Result<Share> {
        let (kept, dropped, count) = (self.kept, self.dropped, self.values());
        let narrow = matches!(share.ring(), Ring::Pow2(bits) if bits >= kept + dropped);
        if !narrow {
            return Err(ProtocolError::WrongInput("the ring of a table has too few bits"));
        }
        ProtocolError::check_length("input share of a table", count, share.len())?;
        let TableMaterial { salt, masks, borrows, points } = material;
        let salts = [0, 1].map(|number| Salts::new(salt, number));
        let t = match &points {
            Vectors::Keys(points) => &points.places,
            Vectors::Expanded(_, places) => places,
        };
        let (masks, borrows) = (&masks, Some(&borrows));
        let opening = Opening { party, salts: &salts[0], kept, dropped, masks, borrows, t };
        let e = opening.rescale(channel, share.values())?;
        let mut results = vec![0; count];
        match &points {
            Vectors::Keys(points) => {
                points.keys.expand(&salts[1], &mut results, |key, shares, result| {
                    *result = self.read(e[key], shares);
                })?;
            }
            Vectors::Expanded(vectors, _) => {
                let items = results.iter_mut().zip(vectors.chunks(1 << kept)).zip(&e);
                parallel::for_each(items, |((result, shares), e)| *result = self.read(*e, shares));
            }
        }
        Ok(Share::new(Ring::Pow2(self.to), results)?)
    }

    fn encode(&self, material: &TableMaterial, writer: &mut Writer) {
        writer.u128(material.salt.0);
        writer.packed(&material.masks, self.kept + self.dropped);
        self.making.comparisons().iter().for_each(|of| material.borrows.encode(*of, writer));
        match &material.points {
            Vectors::Keys(points) => points.encode(self.points.shape(), writer),
            Vectors::Expanded(vectors, places) => {
                writer.packed(places, self.kept);
                writer.packed(vectors, self.to);
            }
        }
    }

    fn decode(&self, reader: &mut Reader<'_>, party: Party) -> Result<TableMaterial, DecodeError> {
        let count = self.values();
        let salt = Block(reader.u128()?);
        let masks = Zeroizing::new(reader.packed(count, self.kept + self.dropped)?);
        let [of] = self.making.comparisons() else { return Err(DecodeError::Invalid { what: "keys" }) };
        let borrows = Made::decode(*of, count, party, reader)?;
        let points = if self.expanded {
            let places = Zeroizing::new(reader.packed(count, self.kept)?);
            Vectors::Expanded(Zeroizing::new(reader.packed(count << self.kept, self.to)?), places)
        } else {
            Vectors::Keys(Points::decode(self.points.shape(), count, party, reader)?)
        };
        Ok(TableMaterial { salt, masks, borrows, points })
    }
}
