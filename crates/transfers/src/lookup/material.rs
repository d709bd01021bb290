//! What transfers give for lookups: the keys of all rows of a table, and the one that was chosen.

use std::ops::Range;

use lanner_primitives::{Block, parallel};
use lanner_step::Result;
use lanner_wire::{DecodeError, Reader, Writer, pack_bits_to, packed_len, unpack_bits};
use rand_core::CryptoRng;
use zeroize::{ZeroizeOnDrop, Zeroizing};

use super::super::lanes::{Values, decode, mask};
use super::super::leaf::add_choices;
use super::super::source::{PART, Part, Source, multiples};
use super::{ITEM, TableShape};

/// Bits of a hash: columns that do not fit one have the next.
const HASH_BITS: u32 = 128;

/// The choosing party's material.
pub(crate) struct LookupPlaces {
    pub(super) shape: TableShape,
    /// The random choice of each value.
    pub(super) random: Values,
    /// For each column, the key that each value chose.
    pub(super) keys: Vec<Values>,
}

/// The replying party's material.
pub(crate) struct LookupKeys {
    pub(super) shape: TableShape,
    /// For each column, all keys of every value, packed.
    pub(super) keys: Vec<Zeroizing<Vec<u8>>>,
    /// For each column, this party's shares of the entries.
    pub(super) shares: Vec<Values>,
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
    let width = shape.place_bits as usize;
    let empty = |_| Zeroizing::new(vec![0; values.len() * offsets.len()]);
    let mut keys: Vec<Values> = shape.columns().map(empty).collect();
    for number in hashes(shape) {
        part.joint_hashes(width, offsets, number, values.clone(), |place, hashes| {
            let columns = keys.iter_mut().zip(Column::all(shape));
            for (keys, column) in columns.filter(|(_, column)| column.hash == number) {
                keys[place..].iter_mut().zip(hashes).for_each(|(key, hash)| *key = column.of(*hash));
            }
        });
    }
    keys
}

impl LookupPlaces {
    pub(crate) fn new(source: &mut Source<'_>, values: usize, shape: TableShape) -> Result<Self> {
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

    pub(crate) fn encode(&self, writer: &mut Writer) {
        writer.packed(&self.random, self.shape.place_bits);
        self.keys.iter().zip(self.shape.columns()).for_each(|(keys, bits)| writer.packed(keys, bits));
    }

    pub(crate) fn decode(reader: &mut Reader, values: usize, shape: TableShape) -> Result<Self, DecodeError> {
        let random = decode(reader, values, shape.place_bits)?;
        let keys = shape.columns().map(|bits| decode(reader, values, bits)).collect::<Result<_, _>>()?;
        Ok(Self { shape, random, keys })
    }
}

impl LookupKeys {
    pub(crate) fn new(source: &mut Source<'_>, values: usize, shape: TableShape) -> Result<Self> {
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
    pub(crate) fn with_shares(mut self, values: usize, shape: TableShape, rng: &mut impl CryptoRng) -> Self {
        let mut random = |bits| {
            let mut shares = Zeroizing::new(vec![0; values]);
            shares.fill_with(|| rng.next_u64() & mask(bits));
            shares
        };
        self.shares = shape.columns().map(&mut random).collect();
        self
    }

    pub(crate) fn encode(&self, writer: &mut Writer) {
        self.keys.iter().for_each(|keys| writer.bytes(keys));
        self.shares.iter().zip(self.shape.columns()).for_each(|(shares, bits)| writer.packed(shares, bits));
    }

    pub(crate) fn decode(reader: &mut Reader, values: usize, shape: TableShape) -> Result<Self, DecodeError> {
        let keys = shape.columns().map(|bits| {
            let count = values * shape.rows();
            let bytes = reader.bytes(packed_len(count, bits))?;
            // Values from the last multiple of 8 on, whose padding must be zero.
            Zeroizing::new(unpack_bits(&bytes[packed_len(count / 8 * 8, bits)..], count % 8, bits)?);
            Ok(Zeroizing::new(bytes.to_vec()))
        });
        let keys = keys.collect::<Result<_, DecodeError>>()?;
        let shares = shape.columns().map(|bits| decode(reader, values, bits)).collect::<Result<_, _>>()?;
        Ok(Self { shape, keys, shares })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Sharing;
    use super::*;

    #[test]
    fn columns_have_bits_of_their_own() {
        for bits in [[62, 62, 4, 0], [62, 62, 5, 0], [62; 4], [1, 0, 0, 0], [40, 50, 60, 62]] {
            let shape = TableShape { place_bits: 2, column_bits: bits, sharing: Sharing::Sums };
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
}
