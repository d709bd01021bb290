//! What a function takes the parties to send, by the protocol of `docs/protocols/functions.md`: bits of one value, the clipping to the domain left
//! out, which is the same for all, and what depends on the ring that the result enters.

use super::FixedFunction;
use crate::accumulator::rounding_constant;

/// Bits, more or less, that a transfer takes offline.
const TRANSFER: u64 = 1;

/// Bits of a leaf of a comparison: as few as send least, and the most.
const LEAF_BITS: [u32; 2] = [3, 4];

impl FixedFunction {
    /// Bits that both parties send online for one value, and about as many as they do offline: those of clipping it to the domain, and those
    /// that depend on the ring of the result, left out. Of all polynomials that are close enough, those that send least are chosen.
    #[must_use]
    pub fn sent_bits(&self) -> u64 {
        let half = i128::from(rounding_constant(self.shift));
        let sum = self.sum_ranges()[0].map(|end| end + half);
        let Some(factors) = &self.factors else {
            return sums(self, room(sum, self.shift)) + rounding(self.shift);
        };
        let ends = sum.map(|end| end >> self.shift);
        let products = || factors.values.iter().flat_map(|a| ends.map(|end| i128::from(*a) * end));
        let half = i128::from(rounding_constant(factors.shift));
        let product = [products().min(), products().max()].map(|end| end.unwrap_or(0) + half);
        let bits = room(product, factors.shift);
        let needed = room(sum, self.shift).min(bits + self.shift);
        let mut sent = sums(self, needed) + rounding(self.shift);
        if self.shift > 0 {
            sent += u64::from(if self.shift == 1 { bits } else { (bits - 1).max(1) });
        }
        if bits + self.shift > needed {
            sent += widening(bits + self.shift - needed);
        }
        let factor = self.factor_bits();
        sent += 2 * (u64::from(factor) * (1 + TRANSFER) + (u64::from(bits) << factor));
        sent + rounding(factors.shift)
    }
}

/// Where a place lies, its coefficients and the sums, modulo `2^bits` in the end.
fn sums(function: &FixedFunction, bits: u32) -> u64 {
    let (place, segment, factor) = (function.place_bits(), function.segment_bits(), function.factor_bits());
    let columns = columns(function, bits);
    let found = Found::of(segment, columns.iter().map(|column| column.lookup).filter(|bits| *bits > 0));
    let mut sent = digits(&[place, found.digits[0], found.digits[1], factor]) + found.sent;
    sent += columns.iter().map(|column| widening(column.widened)).sum::<u64>();
    for column in &columns[1..] {
        sent += widening(column.sum_widened) + product(column.wide, place);
    }
    sent
}

/// The digits of a place as shared numbers, given the bits of each from the lowest on, which is never one by itself.
fn digits(bits: &[u32]) -> u64 {
    let above = |digit: usize| bits[digit + 1..].iter().sum::<u32>();
    let carrying = || (0..bits.len()).filter(|digit| bits[*digit] > 0 && (*digit == 0 || above(*digit) > 0));
    let parts: Vec<(u32, bool)> =
        carrying().enumerate().map(|(number, digit)| (bits[digit], number > 0)).collect();
    let through = parts.len().saturating_sub(1) as u64 * (4 + 2 * TRANSFER);
    let has_carry = |digit: usize| bits[..digit].iter().any(|bits| *bits > 0);
    let values = (1..bits.len()).filter(|digit| bits[*digit] > 0 && has_carry(*digit));
    comparison(&parts) + through + values.map(|digit| bit_as_value(bits[digit])).sum::<u64>()
}

/// How coefficients are found, and what that sends.
struct Found {
    /// Bits of the digits of a segment's number; the second may have none.
    digits: [u32; 2],
    sent: u64,
}

impl Found {
    /// Of tables of `2^segment` rows, with columns of so many bits: all entries are sent, or unit vectors of the digits are found.
    fn of(segment: u32, columns: impl Iterator<Item = u32> + Clone) -> Self {
        /// A digit alone, and what is sent of an entry at once.
        const ONE_DIGIT: u32 = 3;
        const AT_ONCE: u64 = 4;
        /// More or less, for the carry between two digits.
        const CARRY: u64 = 24;
        let all = Self { digits: [segment, 0], sent: 0 };
        let row: u64 = columns.clone().map(u64::from).sum();
        if row == 0 {
            return all;
        }
        let entries = u64::from(segment) * (1 + TRANSFER) + (row << segment);
        let low = if segment <= ONE_DIGIT { segment } else { segment.div_ceil(2) };
        let digits = [low, segment - low];
        let vectors = digits.map(|bits| u64::from(bits) * (1 + TRANSFER) + (1 << bits) * ((1 << bits) - 1));
        let [others, ones] = digits.map(|bits| (1_u64 << bits) - 1);
        let together = 2 * ones * (others + (1 + TRANSFER) * others.div_ceil(AT_ONCE));
        let values = columns.map(|bits| (2..=bits).map(bit_as_value).sum::<u64>());
        let sent = vectors.iter().sum::<u64>() + together + values.sum::<u64>();
        let carry = if ones > 0 { CARRY } else { 0 };
        if sent + carry < entries { Self { digits, sent } } else { Self { sent: entries, ..all } }
    }
}

/// The coefficients of a power.
struct Column {
    /// Bits that are looked up, none where all are the same.
    lookup: u32,
    /// Bits by which what was found is widened.
    widened: u32,
    /// Bits by which the sum from this power on is.
    sum_widened: u32,
    /// Bits of the ring in which it is multiplied.
    wide: u32,
}

/// Those of all powers.
fn columns(function: &FixedFunction, bits: u32) -> Vec<Column> {
    let ranges = function.sum_ranges();
    let powers = ranges.len();
    let of = |power: usize| function.polynomials.iter().map(move |polynomial| polynomial[power]);
    let zeros: Vec<u32> =
        (0..powers).map(|p| of(p).fold(1_i64 << (bits - 1), |all, c| all | c).trailing_zeros()).collect();
    let mut units = zeros.clone();
    for power in (1..powers).rev() {
        units[power - 1] = units[power - 1].min(units[power]);
    }
    let mut columns = Vec::new();
    let mut below: Option<u32> = None;
    for power in 0..powers {
        let unit = units[power];
        let wide = below.map_or(bits - unit, |ring| ring.saturating_sub(unit - units[power - 1]).max(1));
        let known = room(ranges[power].map(|end| end >> unit), 0);
        let ring = if power > 0 && power + 1 < powers { known.min(wide) } else { wide };
        let zeros = zeros[power].min(unit + ring - 1);
        let needed = ring - (zeros - unit);
        let ends = of(power).fold([i64::MAX, i64::MIN], |[low, high], c| [low.min(c), high.max(c)]);
        let narrow = room(ends.map(|end| i128::from(end >> zeros)), 0);
        let is_constant = ends[0] == ends[1];
        let saved = needed.saturating_sub(narrow);
        let is_narrow = !is_constant && u64::from(saved) << function.segment_bits() > widening(saved);
        columns.push(Column {
            lookup: match () {
                () if is_constant => 0,
                () if is_narrow => narrow,
                () => needed,
            },
            widened: if is_narrow { saved } else { 0 },
            sum_widened: wide - ring,
            wide,
        });
        below = Some(ring);
    }
    columns
}

/// Bits of a ring twice as large as a range, whose lower end is rounded down to a multiple of `2^unit`.
fn room([low, high]: [i128; 2], unit: u32) -> u32 {
    let bits = u128::BITS - (high - (low >> unit << unit)).unsigned_abs().leading_zeros() + 1;
    bits.max(unit + 1)
}

/// A product of a bit that takes values to a ring of so many bits more.
fn widening(bits: u32) -> u64 {
    if bits == 0 { 0 } else { 1 + u64::from(bits) + TRANSFER }
}

/// A shared bit modulo `2^bits`.
fn bit_as_value(bits: u32) -> u64 {
    1 + u64::from(bits.saturating_sub(1).max(1)) + TRANSFER
}

/// A sum modulo `2^bits` times a place of so many bits of either party's, and times the carry.
fn product(bits: u32, place: u32) -> u64 {
    if place == 0 {
        return 0;
    }
    let (bits, place) = (u64::from(bits), u64::from(place));
    let factor = place.min(bits);
    let carry = if bits > place { 2 * (1 + TRANSFER + bits - place) } else { 0 };
    2 * factor * (1 + TRANSFER) + factor * (2 * bits + 1 - factor) + carry
}

/// The carry of so many dropped bits; what it is as a value depends on where that goes.
fn rounding(bits: u32) -> u64 {
    match bits {
        0 => 0,
        1 => 1 + TRANSFER,
        _ => comparison(&[(bits, false)]) + 1 + TRANSFER,
    }
}

/// A comparison of numbers of so many bits, one part above the other, of which it is asked if they are less or equal.
fn comparison(parts: &[(u32, bool)]) -> u64 {
    let mut sent = 0;
    let mut trees = Vec::new();
    for (bits, equality) in parts {
        let deepest = bits.div_ceil(LEAF_BITS[1]).next_power_of_two();
        let count = bits.div_ceil(LEAF_BITS[0]).min(deepest);
        let mut left = *bits;
        for leaf in 0..count {
            let width = left.div_ceil(count - leaf);
            left -= width;
            let told = if leaf == 0 && !equality { 1 } else { 2 };
            sent += u64::from(width) * (1 + TRANSFER) + (told << width);
        }
        trees.push((count, *equality));
    }
    while trees.iter().any(|(blocks, _)| *blocks > 1) {
        for (blocks, equality) in &mut trees {
            let pairs = u64::from(*blocks / 2);
            let both = if *equality { pairs } else { pairs.saturating_sub(1) };
            // What is opened of each is a bit and one or two others, by both parties.
            sent += 2 * (2 * pairs + both) + 2 * pairs * TRANSFER;
            *blocks = blocks.div_ceil(2);
        }
    }
    sent
}
