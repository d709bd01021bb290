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
//! Where the entries are to be multiplied with a value that is shared by sums, too, either party turns the table multiplied with its own share of
//! that: the sum of both entries is the product, and no entry is ever shared by itself.
//!
//! ```text
//! F: i_F  -------------------------------------------->
//!        <--------------------------------------------    i_G; v_G T[j + i_G] - r_G + key for every place j
//!    v_F T[j + i_F] - r_F + key  --------------------->
//! ```
//!
//! Entries that are bits side by side may be left shared bit by bit instead: then `-` and `+` above are sums modulo two.
//!
//! Turning and choosing touch every entry, whatever the places are.

mod material;
mod roles;
mod turning;

use lanner_wire::packed_len;

pub(super) use material::{LookupKeys, LookupPlaces};
pub(super) use roles::ScaledPlaces;
pub(super) use turning::choose;

use lanner_primitives::Ring;
use lanner_step::{ProtocolError, Result};

use super::lanes::mask;

/// The most bits of a place.
pub(super) const MAX_PLACE_BITS: u32 = 8;

/// The most columns of a table.
pub(super) const MAX_COLUMNS: usize = 4;

/// The most bits of a place whose unit vector is looked up.
pub(super) const MAX_UNIT_BITS: u32 = 4;

/// Values of one item of work: whole bytes of every column.
const ITEM: usize = 64;

/// How what is found is left shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// By sums modulo the power of two that a column has.
    Sums,
    /// Bit by bit.
    Bits,
}

impl Sharing {
    /// What two shares of so many bits are together.
    const fn add(self, bits: u32, x: u64, y: u64) -> u64 {
        match self {
            Self::Sums => Ring::Pow2(bits).add(x, y),
            Self::Bits => x ^ y,
        }
    }

    /// The other share where one is `y`.
    const fn sub(self, bits: u32, x: u64, y: u64) -> u64 {
        match self {
            Self::Sums => Ring::Pow2(bits).sub(x, y),
            Self::Bits => x ^ y,
        }
    }
}

/// The size of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableShape {
    /// Bits of a place: it has `2^place_bits` rows.
    pub place_bits: u32,
    /// Bits of an entry of each column; none behind the last.
    pub column_bits: [u32; MAX_COLUMNS],
    /// How entries are left shared.
    pub sharing: Sharing,
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
    /// [`ProtocolError::Parameters`] if there is none or too many of something.
    pub fn new(place_bits: u32, columns: Vec<(u32, Vec<u64>)>) -> Result<Self> {
        let refuse = Err(ProtocolError::Parameters("the table of a lookup"));
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
        let shape = TableShape { place_bits, column_bits, sharing: Sharing::Sums };
        Ok(Self { shape, columns: columns.into_iter().map(reduced).collect() })
    }

    /// Of each place the unit vector with a one there, its first entry left out, which the others tell: the next is bit 0, and bits are shared.
    ///
    /// # Errors
    /// [`ProtocolError::Parameters`] unless places have 1 to [`MAX_UNIT_BITS`] bits.
    pub(super) fn units(place_bits: u32) -> Result<Self> {
        if !(1..=MAX_UNIT_BITS).contains(&place_bits) {
            return Err(ProtocolError::Parameters("the bits of a unit vector's place"));
        }
        let entries = (0..1_u32 << place_bits).map(|place| (1 << place) >> 1).collect();
        let mut table = Self::new(place_bits, vec![((1 << place_bits) - 1, entries)])?;
        table.shape.sharing = Sharing::Bits;
        Ok(table)
    }

    /// The entries of each column, with their bits.
    pub(super) fn columns(&self) -> impl Iterator<Item = (u32, &[u64])> {
        self.shape.columns().zip(self.columns.iter().map(Vec::as_slice))
    }

    pub(super) const fn shape(&self) -> TableShape {
        self.shape
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_other_sizes_are_refused() {
        let column = |bits| (bits, vec![0; 4]);
        assert!(Table::new(2, vec![column(62); 4]).is_ok() && Table::new(2, vec![column(63)]).is_err());
        assert!(Table::new(2, vec![]).is_err() && Table::new(9, vec![(3, vec![0; 512])]).is_err());
        assert!(Table::new(2, vec![(3, vec![0; 3])]).is_err() && Table::new(2, vec![column(0)]).is_err());
    }
}
