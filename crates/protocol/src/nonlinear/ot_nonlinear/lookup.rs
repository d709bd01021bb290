//! Entries of public tables at shared places, by 1-of-`2^k` transfers.
//!
//! After [KK13](https://eprint.iacr.org/2013/491) and SIRNN's lookup tables ([RRGRKC21](https://eprint.iacr.org/2021/459), section 3.1), over the
//! combined correlated transfers of [`leaf`](super::leaf). The places are shared by sums: the second party turns the table by its share, the
//! first chooses by its own, and the entry is left shared by sums, column by column:
//!
//! ```text
//! F: i_F, random choice c, its keys                       G: i_G, all 2^k keys, its shares r
//!   f = i_F xor c  ------------------------------------>
//!        <--------------------------------------------    T[j + i_G] - r + key[j xor f] for every place j
//! F has T[i_F + i_G] - r: the reply at i_F less its key.  G has r.
//! ```
//!
//! Turning and choosing touch every entry, whatever the places are.

use std::ops::Range;
use std::sync::Arc;

use lanner_primitives::{Block, Ring, parallel};
use lanner_wire::{
    ChannelError, DecodeError, Reader, Writer, pack_bits, pack_bits_to, packed_len, unpack_bits,
};
use rand_core::CryptoRng;
use zeroize::{ZeroizeOnDrop, Zeroizing};

use super::lanes::{Lanes, Values, decode, mask};
use super::leaf::add_choices;
use super::run::{Role, packed};
use super::source::{PART, Part, Source, multiples};
use crate::ProtocolError;

/// The most bits of a place.
pub(super) const MAX_PLACE_BITS: u32 = 8;

/// The most columns of a table.
pub(super) const MAX_COLUMNS: usize = 4;

/// Bits of a hash: columns that do not fit one have the next.
const HASH_BITS: u32 = 128;

/// Values of one item of work: whole bytes of every column.
const ITEM: usize = 64;

/// The size of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableShape {
    /// Bits of a place: it has `2^place_bits` rows.
    pub place_bits: u32,
    /// Bits of an entry of each column; none behind the last.
    pub column_bits: [u32; MAX_COLUMNS],
}

impl TableShape {
    /// Bits of each column.
    pub(super) fn columns(self) -> impl Iterator<Item = u32> {
        self.column_bits.into_iter().take_while(|bits| *bits > 0)
    }

    const fn rows(self) -> usize {
        1 << self.place_bits
    }

    /// Bytes of the reply to so many places.
    pub(super) fn reply_bytes(self, values: usize) -> usize {
        self.columns().map(|bits| packed_len(values * self.rows(), bits)).sum()
    }
}

/// A public table: columns of numbers modulo powers of two.
#[derive(Debug)]
pub struct Table {
    shape: TableShape,
    columns: Vec<Vec<u64>>,
}

impl Table {
    /// Of columns of as many entries, `2^place_bits`, each with the bits of its entries.
    ///
    /// # Errors
    /// [`ProtocolError::Shape`] if there is none or too many of something.
    pub fn new(place_bits: u32, columns: Vec<(u32, Vec<u64>)>) -> Result<Self, ProtocolError> {
        let refuse = Err(ProtocolError::Shape { what: "the table of a lookup" });
        let fits =
            |(bits, entries): &(u32, Vec<u64>)| (1..=62).contains(bits) && entries.len() == 1 << place_bits;
        if !(1..=MAX_PLACE_BITS).contains(&place_bits)
            || !(1..=MAX_COLUMNS).contains(&columns.len())
            || !columns.iter().all(fits)
        {
            return refuse;
        }
        let mut column_bits = [0; MAX_COLUMNS];
        column_bits.iter_mut().zip(&columns).for_each(|(slot, (bits, _))| *slot = *bits);
        let reduced =
            |(bits, entries): (u32, Vec<u64>)| entries.into_iter().map(|entry| entry & mask(bits)).collect();
        let shape = TableShape { place_bits, column_bits };
        Ok(Self { shape, columns: columns.into_iter().map(reduced).collect() })
    }

    pub(super) const fn shape(&self) -> TableShape {
        self.shape
    }
}

/// The choosing party's material.
pub(super) struct LookupPlaces {
    shape: TableShape,
    /// The random choice of each value.
    random: Values,
    /// For each column, the key that each value chose.
    keys: Vec<Values>,
}

/// The replying party's material.
pub(super) struct LookupKeys {
    shape: TableShape,
    /// For each column, all keys of every value, packed.
    keys: Vec<Zeroizing<Vec<u8>>>,
    /// For each column, this party's shares of the entries.
    shares: Vec<Values>,
}

impl ZeroizeOnDrop for LookupPlaces {}

impl ZeroizeOnDrop for LookupKeys {}

/// The part of a row's hashes that masks a column.
#[derive(Clone, Copy)]
struct Column {
    /// The number of the hash.
    hash: u64,
    /// Where it starts there.
    start: u32,
    bits: u32,
}

impl Column {
    /// Those of a table.
    fn all(shape: TableShape) -> impl Iterator<Item = Self> {
        let next = Self { hash: 0, start: 0, bits: 0 };
        shape.columns().scan(next, |column, bits| {
            column.start += column.bits;
            column.bits = bits;
            if column.start + bits > HASH_BITS {
                *column = Self { hash: column.hash + 1, start: 0, bits };
            }
            Some(*column)
        })
    }

    /// Of a hash with this number.
    const fn of(self, hash: Block) -> u64 {
        (hash.0 >> self.start) as u64 & mask(self.bits)
    }
}

/// Numbers of the hashes of a row.
fn hashes(shape: TableShape) -> impl Iterator<Item = u64> {
    0..=Column::all(shape).map(|column| column.hash).max().unwrap_or_default()
}

/// For each column, a key for each of a part's values and, value by value, each of the offsets.
fn column_keys(part: &Part, shape: TableShape, offsets: &[Block], values: Range<usize>) -> Vec<Values> {
    let (width, rows, first) = (shape.place_bits as usize, offsets.len(), values.start);
    let empty = |_| Zeroizing::new(vec![0; values.len() * rows]);
    let mut keys: Vec<Values> = shape.columns().map(empty).collect();
    for number in hashes(shape) {
        part.joint_hashes(width, offsets, number, values.clone(), |value, row, hashes| {
            let columns = keys.iter_mut().zip(Column::all(shape));
            for (keys, column) in columns.filter(|(_, column)| column.hash == number) {
                let keys = keys[(value - first) * rows + row..].iter_mut().step_by(rows).zip(hashes);
                keys.for_each(|(key, hash)| *key = column.of(*hash));
            }
        });
    }
    keys
}

impl LookupPlaces {
    pub(super) fn new(
        source: &mut Source<'_>,
        values: usize,
        shape: TableShape,
    ) -> Result<Self, ProtocolError> {
        let width = shape.place_bits as usize;
        let mut random = Zeroizing::new(vec![0; values]);
        let empty = |_| Zeroizing::new(Vec::with_capacity(values));
        let mut keys: Vec<Values> = shape.columns().map(empty).collect();
        for random in random.chunks_mut(PART) {
            let part = source.draw(random.len() * width)?;
            let of_part = column_keys(&part, shape, &[Block::ZERO], 0..random.len());
            keys.iter_mut().zip(&of_part).for_each(|(keys, of_part)| keys.extend_from_slice(of_part));
            let count = random.len();
            for (bit, shift) in (0..width).zip(0..) {
                add_choices(&part, bit * count, shift, random);
            }
        }
        Ok(Self { shape, random, keys })
    }

    pub(super) fn encode(&self, writer: &mut Writer) {
        writer.packed(&self.random, self.shape.place_bits);
        self.keys.iter().zip(self.shape.columns()).for_each(|(keys, bits)| writer.packed(keys, bits));
    }

    pub(super) fn decode(reader: &mut Reader, values: usize, shape: TableShape) -> Result<Self, DecodeError> {
        let random = decode(reader, values, shape.place_bits)?;
        let keys = shape.columns().map(|bits| decode(reader, values, bits)).collect::<Result<_, _>>()?;
        Ok(Self { shape, random, keys })
    }

    /// The first party's role, with its shares of the places.
    pub(super) fn role(self, places: &Values) -> ChoosingPlaces {
        let places = places.map(|place| place & mask(self.shape.place_bits));
        ChoosingPlaces { own: self, places }
    }
}

impl LookupKeys {
    pub(super) fn new(
        source: &mut Source<'_>,
        values: usize,
        shape: TableShape,
    ) -> Result<Self, ProtocolError> {
        let (width, rows) = (shape.place_bits as usize, shape.rows());
        let multiples = multiples(source.delta(), shape.place_bits);
        let empty = |bits| Zeroizing::new(vec![0; packed_len(values * rows, bits)]);
        let mut keys: Vec<Zeroizing<Vec<u8>>> = shape.columns().map(empty).collect();
        for start in (0..values).step_by(PART) {
            let count = PART.min(values - start);
            let part = source.draw(count * width)?;
            let mut columns: Vec<_> = keys
                .iter_mut()
                .zip(shape.columns())
                .map(|(keys, bits)| {
                    let first = packed_len(start * rows, bits);
                    keys[first..].chunks_mut(packed_len(ITEM * rows, bits))
                })
                .collect();
            let items = (0..count).step_by(ITEM).map(|first| {
                let columns: Vec<&mut [u8]> = columns.iter_mut().filter_map(Iterator::next).collect();
                (first..count.min(first + ITEM), columns)
            });
            parallel::for_each(items, |(values, packed)| {
                let unpacked = column_keys(&part, shape, &multiples, values);
                for ((packed, keys), bits) in packed.into_iter().zip(&unpacked).zip(shape.columns()) {
                    pack_bits_to(keys, bits, packed);
                }
            });
        }
        Ok(Self { shape, keys, shares: Vec::new() })
    }

    /// With random shares of so many values' entries.
    pub(super) fn with_shares(mut self, values: usize, shape: TableShape, rng: &mut impl CryptoRng) -> Self {
        let mut random = |bits| {
            let mut shares = Zeroizing::new(vec![0; values]);
            shares.fill_with(|| rng.next_u64() & mask(bits));
            shares
        };
        self.shares = shape.columns().map(&mut random).collect();
        self
    }

    pub(super) fn encode(&self, writer: &mut Writer) {
        self.keys.iter().for_each(|keys| writer.bytes(keys));
        self.shares.iter().zip(self.shape.columns()).for_each(|(shares, bits)| writer.packed(shares, bits));
    }

    pub(super) fn decode(reader: &mut Reader, values: usize, shape: TableShape) -> Result<Self, DecodeError> {
        let keys = shape.columns().map(|bits| {
            let count = values * shape.rows();
            let bytes = reader.bytes(packed_len(count, bits))?;
            // Values from the last multiple of 8 on, whose padding must be zero.
            unpack_bits(&bytes[packed_len(count / 8 * 8, bits)..], count % 8, bits)?;
            Ok(Zeroizing::new(bytes.to_vec()))
        });
        let keys = keys.collect::<Result<_, DecodeError>>()?;
        let shares = shape.columns().map(|bits| decode(reader, values, bits)).collect::<Result<_, _>>()?;
        Ok(Self { shape, keys, shares })
    }

    /// The second party's role, with its shares of the places.
    pub(super) fn role(self, places: Values, table: Arc<Table>) -> ReplyingPlaces {
        ReplyingPlaces { keys: self, places, table, flips: Vec::new() }
    }
}

/// The first party's role: it learns the entry at its own place of what the second made of the table.
pub(super) struct ChoosingPlaces {
    own: LookupPlaces,
    places: Values,
}

impl Role for ChoosingPlaces {
    fn say(&mut self) -> Vec<u8> {
        let flips = self.places.zip_map(&self.own.random, |place, random| place ^ random);
        pack_bits(&flips, self.own.shape.place_bits)
    }

    fn hear(&mut self, message: &mut Reader<'_>) -> Result<(), ProtocolError> {
        let (shape, rows) = (self.own.shape, self.own.shape.rows());
        for (keys, bits) in self.own.keys.iter_mut().zip(shape.columns()) {
            let replies = message.bytes(packed_len(self.places.len() * rows, bits));
            let replies = replies.map_err(ChannelError::from)?.chunks(packed_len(ITEM * rows, bits));
            let items = replies.zip(self.places.chunks(ITEM)).zip(keys.chunks_mut(ITEM));
            let opened = parallel::map(items, |((replies, places), keys)| {
                let replies = unpack_bits(replies, places.len() * rows, bits)?;
                for ((replies, place), key) in replies.chunks(rows).zip(places).zip(keys) {
                    let chosen = choose(replies, *place);
                    *key = Ring::Pow2(bits).sub(chosen, *key);
                }
                Ok::<(), DecodeError>(())
            });
            opened.into_iter().collect::<Result<(), _>>().map_err(ChannelError::from)?;
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Vec<Values> {
        self.own.keys
    }
}

/// The second party's role: it replies with the table as its share of the place turns it, masked entry by entry.
pub(super) struct ReplyingPlaces {
    keys: LookupKeys,
    places: Values,
    table: Arc<Table>,
    /// What the first party said.
    flips: Vec<u64>,
}

impl Role for ReplyingPlaces {
    fn say(&mut self) -> Vec<u8> {
        let (shape, rows) = (self.keys.shape, self.keys.shape.rows());
        let mut message = vec![0; shape.reply_bytes(self.places.len())];
        let mut rest = message.as_mut_slice();
        let columns = shape.columns().zip(&self.keys.keys).zip(&self.keys.shares).zip(&self.table.columns);
        for (((bits, keys), shares), entries) in columns {
            let (of_column, behind) = rest.split_at_mut(keys.len());
            rest = behind;
            let (size, ring) = (packed_len(ITEM * rows, bits), Ring::Pow2(bits));
            let made = of_column.chunks_mut(size).zip(keys.chunks(size)).zip(shares.chunks(ITEM));
            let items = made.zip(self.places.chunks(ITEM).zip(self.flips.chunks(ITEM)));
            parallel::for_each(items, |(((bytes, keys), shares), (places, flips))| {
                let Ok(keys) = unpack_bits(keys, places.len() * rows, bits).map(Zeroizing::new) else {
                    return;
                };
                let mut replies = Zeroizing::new(Vec::with_capacity(keys.len()));
                let mut turning = Turning::new(entries);
                let values = keys.chunks(rows).zip(shares).zip(places.iter().zip(flips));
                for ((keys, share), (place, flip)) in values {
                    let turned = turning.by(entries, *place).iter().enumerate();
                    replies.extend(turned.map(|(row, entry)| {
                        ring.sub(entry.wrapping_add(keys[row ^ *flip as usize]), *share)
                    }));
                }
                pack_bits_to(&replies, bits, bytes);
            });
        }
        message
    }

    fn hear(&mut self, message: &mut Reader<'_>) -> Result<(), ProtocolError> {
        self.flips = packed(message, self.places.len(), self.keys.shape.place_bits)?;
        Ok(())
    }

    fn finish(self: Box<Self>) -> Vec<Values> {
        self.keys.shares
    }
}

/// Room to turn a column: twice as many entries as it has, and as many again.
struct Turning([Values; 2]);

impl Turning {
    fn new(entries: &[u64]) -> Self {
        Self([(); 2].map(|()| Zeroizing::new(vec![0; 2 * entries.len()])))
    }

    /// Entry `j + place` at every `j`, places modulo the length, which is a power of two.
    fn by(&mut self, entries: &[u64], place: u64) -> &[u64] {
        let Self([turned, next]) = self;
        let rows = entries.len();
        turned[..rows].copy_from_slice(entries);
        turned[rows..].copy_from_slice(entries);
        let mut step = rows / 2;
        while step > 0 {
            // Later steps look so much further ahead.
            let used = rows + step - 1;
            let turns = ((place / step as u64) & 1).wrapping_neg();
            let (here, there) = (&turned[..used], &turned[step..step + used]);
            for (next, (here, there)) in next[..used].iter_mut().zip(here.iter().zip(there)) {
                *next = here ^ ((here ^ there) & turns);
            }
            std::mem::swap(turned, next);
            step /= 2;
        }
        &turned[..rows]
    }
}

/// The entry at a place, of which no memory access tells.
fn choose(entries: &[u64], place: u64) -> u64 {
    let take = |(at, entry): (u64, &u64)| {
        // All ones where both are equal.
        let other = at ^ place;
        entry & ((other | other.wrapping_neg()) >> 63).wrapping_sub(1)
    };
    (0..).zip(entries).map(take).fold(0, |chosen, entry| chosen | entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turning_and_choosing_are_indexing() {
        for bits in 1..=8 {
            let entries: Vec<u64> = (0..1 << bits).map(|i| (i * 0x9e37_79b9) & 0xffff).collect();
            let mut turning = Turning::new(&entries);
            for place in 0..entries.len() {
                let turned = turning.by(&entries, place as u64);
                let at = |j: usize| entries[(j + place) % entries.len()];
                assert!((0..entries.len()).all(|j| turned[j] == at(j)));
                assert_eq!(choose(&entries, place as u64), entries[place]);
            }
        }
    }

    #[test]
    fn columns_have_bits_of_their_own() {
        for bits in [[62, 62, 4, 0], [62, 62, 5, 0], [62; 4], [1, 0, 0, 0], [40, 50, 60, 62]] {
            let shape = TableShape { place_bits: 2, column_bits: bits };
            let columns: Vec<Column> = Column::all(shape).collect();
            assert_eq!(columns.iter().map(|column| column.bits).collect::<Vec<_>>(), bits[..columns.len()]);
            let taken = |column: &Column| (u128::from(mask(column.bits)) << column.start, column.hash);
            for (number, column) in columns.iter().enumerate() {
                assert!(
                    column.start + column.bits <= HASH_BITS && hashes(shape).any(|hash| hash == column.hash)
                );
                let (bits, hash) = taken(column);
                assert!(
                    columns[..number].iter().map(taken).all(|(other, of)| of != hash || other & bits == 0)
                );
            }
        }
    }

    #[test]
    fn tables_of_other_sizes_are_refused() {
        let column = |bits| (bits, vec![0; 4]);
        assert!(Table::new(2, vec![column(62); 4]).is_ok() && Table::new(2, vec![column(63)]).is_err());
        assert!(Table::new(2, vec![]).is_err() && Table::new(9, vec![(3, vec![0; 512])]).is_err());
        assert!(Table::new(2, vec![(3, vec![0; 3])]).is_err() && Table::new(2, vec![column(0)]).is_err());
    }
}
