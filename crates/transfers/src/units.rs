//! Entries of public tables by unit vectors: a table of many rows is never sent.
//!
//! ```text
//! places l + 2^k h of two digits, shared by sums       one lookup each: [l = j] and [h = i] for all j and i, shared bit by bit
//! products of both                                     [l + 2^k h = j] for every place j
//! sums of those at which bit b of a column is one      bit b, on each party's share: the table is public
//! bits as values                                       the entry modulo a power of two
//! ```
//!
//! A lookup of `2^m` rows of `w` bits sends `2^m w` bits, this way about `2^(m+1)` and `w^2 / 2`. Which of both is less follows from the table's
//! size alone. A table of few rows has one digit.

use std::sync::Arc;

use lanner_primitives::Ring;
use lanner_step::{ProtocolError, Result};

use super::driver::{Driver, Task, only, xor};
use super::lanes::{Lanes, mask};
use super::lookup::{MAX_UNIT_BITS, Table, TableShape};
use super::moves::OPERANDS;

/// How the entries of a table are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// All are sent, masked.
    Entries,
    /// By the unit vectors of the place's low and high digit, of so many bits; the high one may have none.
    Units([u32; 2]),
}

/// Bits, more or less, that a transfer takes offline.
const TRANSFER: u32 = 1;

/// The bits of a place up to which it has one digit.
const ONE_DIGIT: u32 = 3;

/// Bits, more or less, that the carry between two digits takes.
const CARRY: u32 = 24;

impl Way {
    /// That which sends less.
    pub(super) fn of(shape: TableShape) -> Self {
        let place = shape.place_bits;
        let low = if place <= ONE_DIGIT { place } else { place.div_ceil(2) };
        let digits = [low, place - low];
        let entries = place * (1 + TRANSFER) + (shape.columns().sum::<u32>() << place);
        let found = digits.map(|bits| bits * (1 + TRANSFER) + (1 << bits) * ((1 << bits) - 1));
        let [others, ones] = digits.map(|bits| (1_u32 << bits) - 1);
        let together = if ones > 0 { CARRY } else { 0 }
            + 2 * ones * (others + (1 + TRANSFER) * others.div_ceil(OPERANDS as u32));
        let values: u32 =
            shape.columns().map(|bits| (bits - 1) * (1 + TRANSFER) + bits * (bits - 1) / 2).sum();
        if low <= MAX_UNIT_BITS && found.iter().sum::<u32>() + together + values < entries {
            Self::Units(digits)
        } else {
            Self::Entries
        }
    }

    /// The bits of the digits in which places of so many bits are wanted.
    pub(super) const fn digits(self, place_bits: u32) -> [u32; 2] {
        match self {
            Self::Entries => [place_bits, 0],
            Self::Units(digits) => digits,
        }
    }
}

/// The entries of a table by unit vectors, column by column, at places whose digits are shared modulo their own sizes.
///
/// # Errors
/// As [`Driver::turn`].
pub(super) fn entries<D: Driver>(
    driver: &mut D,
    digits: &[D::Values; 2],
    bits: [u32; 2],
    table: &Table,
) -> Result<Vec<D::Values>> {
    let count = digits[0].count();
    let units = unit_vectors(driver, digits, bits)?;
    let columns: Vec<Vec<D::Values>> =
        table.columns().map(|(bits, entries)| column_bits(&units, bits, entries)).collect();
    // The top bit is the sum of both parties' as it is.
    let below_top = |bits: &Vec<D::Values>| {
        let to = bits.len() as u32;
        bits[..bits.len() - 1]
            .iter()
            .zip(0..)
            .map(|(bit, place)| (bit.bits(count), to - place))
            .collect::<Vec<_>>()
    };
    let mut values = driver.all_bits_to_values(columns.iter().flat_map(below_top).collect())?.into_iter();
    let missing = || ProtocolError::Missing("the bits of a table's entries");
    let entry = |bits: &Vec<D::Values>| {
        let (top, ring) = (bits.len() - 1, Ring::Pow2(bits.len() as u32));
        let mut sum = bits[top].bits(count).map(|bit| bit << top);
        for place in 0..top {
            let value = values.next().ok_or_else(missing)?;
            sum = sum.zip_map(&value, |sum, value| ring.add(sum, value << place & mask(top as u32 + 1)));
        }
        Ok(sum)
    };
    columns.iter().map(entry).collect()
}

/// For every place, the lowest first, whether it is the shared one: in words.
fn unit_vectors<D: Driver>(
    driver: &mut D,
    digits: &[D::Values; 2],
    bits: [u32; 2],
) -> Result<Vec<D::Values>> {
    let mut tasks = Vec::new();
    for (digit, bits) in digits.iter().zip(bits).filter(|(_, bits)| *bits > 0) {
        let places = digit.map(|place| place & mask(bits));
        tasks.push(Task::Lookup { places, table: Arc::new(Table::units(bits)?) });
    }
    let mut vectors = Vec::new();
    for (found, bits) in driver.turn(tasks)?.into_iter().zip(bits) {
        let found = only(found)?;
        let others: Vec<D::Values> =
            (0..(1_u32 << bits) - 1).map(|place| found.map(|bits| bits >> place).words()).collect();
        let one = driver.complement(&others[0].map(|_| 0));
        vectors.push(begun(one, others));
    }
    let missing = || ProtocolError::Missing("the digits of a place");
    let last = vectors.pop().ok_or_else(missing)?;
    let Some(low) = vectors.pop() else { return Ok(last) };
    let (ones, others, words) = (&last[1..], &low[1..], low[0].count());
    let joined = D::Values::concat(&ones.iter().collect::<Vec<_>>());
    let repeated = |bits: &D::Values| D::Values::concat(&vec![bits; ones.len()]);
    let of_some = |others: &[D::Values]| Task::Bits(joined.clone(), others.iter().map(repeated).collect());
    let products = driver.turn(others.chunks(OPERANDS).map(of_some).collect())?.concat();
    let of_one = |(number, one): (usize, &D::Values)| {
        let of_one = products.iter().map(|all| all.range(number * words..(number + 1) * words));
        begun(one.clone(), of_one.collect())
    };
    let rows: Vec<Vec<D::Values>> = ones.iter().enumerate().map(of_one).collect();
    let of_zero = low
        .iter()
        .enumerate()
        .map(|(place, whole)| rows.iter().fold(whole.clone(), |left, row| left.zip_map(&row[place], xor)));
    Ok(of_zero.chain(rows.iter().flatten().cloned()).collect())
}

/// A vector, all but whose first entry are given, and its sum.
fn begun<V: Lanes>(sum: V, others: Vec<V>) -> Vec<V> {
    let first = others.iter().fold(sum, |left, other| left.zip_map(other, xor));
    [first].into_iter().chain(others).collect()
}

/// The bits of a column's entries at the place whose unit vector it is, the lowest first, in words.
fn column_bits<V: Lanes>(units: &[V], bits: u32, entries: &[u64]) -> Vec<V> {
    let none = units[0].map(|_| 0);
    let of = |bit: u32| {
        let ones = units.iter().zip(entries).filter(|(_, entry)| *entry >> bit & 1 == 1);
        ones.fold(none.clone(), |sum, (unit, _)| sum.zip_map(unit, xor))
    };
    (0..bits).map(of).collect()
}
