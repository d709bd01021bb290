//! Comparisons of blocks of at most four bits by 1-of-16 transfers.
//!
//! Four correlated transfers `t_b = q_b xor x_b delta` combine over `GF(2^128)`, with `g` the polynomial `X`, to
//! `sum g^b t_b = sum g^b q_b + x delta` for the number `x` of the choices: one of 16 keys, of which the sender knows all.

use lanner_primitives::{bit_of_words, parallel};
use lanner_step::Result;
use lanner_wire::{
    ChannelError, DecodeError, Reader, Writer, pack_bits, pack_bits_to, packed_len, unpack_bits,
};
use rand_core::CryptoRng;
use zeroize::{ZeroizeOnDrop, Zeroizing};

use super::driver;
use super::lanes::{Lanes, Values, decode, mask, words};
use super::moves::{Compared, LEAF_BITS, Leaf, PARTS, leaves};
use super::role::{Role, packed};
use super::source::{self, PART, Source, multiples};

/// The parts of the numbers that are compared.
type Parts = [Compared; PARTS];

/// The choosing party's material.
pub(super) struct LeafChoices {
    /// The random choice of each value, all its blocks together.
    random: Values,
    /// For each row of each leaf, the bit of the key that each value chose.
    rows: Vec<Values>,
}

/// The replying party's material.
pub(super) struct LeafKeys {
    /// For each leaf, and each value and row, a bit of all 16 keys.
    keys: Vec<Zeroizing<Vec<u16>>>,
    /// For each row of each leaf, this party's shares of what will be told.
    shares: Vec<Values>,
}

impl ZeroizeOnDrop for LeafChoices {}

impl ZeroizeOnDrop for LeafKeys {}

impl LeafChoices {
    pub(super) fn new(source: &mut Source<'_>, values: usize, parts: Parts) -> Result<Self> {
        let mut random = Zeroizing::new(vec![0; values]);
        let mut rows: Vec<Values> = Vec::new();
        for leaf in leaves(parts) {
            let width = leaf.width as usize;
            let first_row = rows.len();
            rows.extend((0..leaf.rows()).map(|_| Zeroizing::new(vec![0; words(values)])));
            for (random, start) in random.chunks_mut(PART).zip((0..).step_by(PART / 64)) {
                let part = source.draw(random.len() * width)?;
                let keys = part.joint_keys(width);
                for (bit, row) in (0..).zip(&mut rows[first_row..]) {
                    row[start..].iter_mut().zip(keys.chunks(64)).for_each(|(row, keys)| {
                        *row = bit_of_words(keys, bit);
                    });
                }
                // The choices of the lowest bit, then those of the next.
                let count = random.len();
                for (bit, shift) in (0..width).zip(leaf.shift[1]..) {
                    add_choices(&part, bit * count, shift, random);
                }
            }
        }
        Ok(Self { random, rows })
    }

    pub(super) fn encode(&self, parts: Parts, writer: &mut Writer) {
        writer.packed(&self.random, joint_bits(parts));
        encode_rows(&self.rows, writer);
    }

    pub(super) fn decode(reader: &mut Reader, values: usize, parts: Parts) -> Result<Self, DecodeError> {
        Ok(Self {
            random: decode(reader, values, joint_bits(parts))?,
            rows: decode_rows(reader, values, parts)?,
        })
    }

    /// The first party's role.
    pub(super) fn role(self, numbers: &[driver::Part<Values>], parts: Parts) -> ChoosingLeaves {
        // The complement of what a carry adds up.
        let mut x = numbers[0].numbers[0].map(|a| !a & mask(parts[0].bits));
        let mut start = parts[0].bits;
        for part in &numbers[1..] {
            x = x.zip_map(&part.numbers[0], |x, a| x | (!a & mask(part.bits)) << start);
            start += part.bits;
        }
        ChoosingLeaves { choices: self, x, parts }
    }
}

/// Adds the choices from `first` on to bit `shift` of values.
pub(super) fn add_choices(part: &source::Part<'_>, first: usize, shift: u32, values: &mut [u64]) {
    for (values, first) in values.chunks_mut(64).zip((first..).step_by(64)) {
        let choices = part.choices(first);
        values.iter_mut().enumerate().for_each(|(i, value)| *value |= (choices >> i & 1) << shift);
    }
}

impl LeafKeys {
    pub(super) fn new(source: &mut Source<'_>, values: usize, parts: Parts) -> Result<Self> {
        let multiples = multiples(source.delta(), LEAF_BITS);
        let mut keys = Vec::new();
        for leaf in leaves(parts) {
            let (width, rows) = (leaf.width as usize, leaf.rows());
            let mut of_leaf = Zeroizing::new(vec![0; values * rows]);
            for of_part in of_leaf.chunks_mut(PART * rows) {
                let part = source.draw(of_part.len() / rows * width)?;
                let multiples = &multiples[..1 << width];
                match rows {
                    1 => part.all_joint_keys::<1>(width, multiples, of_part),
                    2 => part.all_joint_keys::<2>(width, multiples, of_part),
                    _ => part.all_joint_keys::<4>(width, multiples, of_part),
                }
            }
            keys.push(of_leaf);
        }
        Ok(Self { keys, shares: Vec::new() })
    }

    /// With random shares of what will be told of so many values.
    pub(super) fn with_shares(mut self, values: usize, parts: Parts, rng: &mut impl CryptoRng) -> Self {
        let mut random = || {
            let mut row = Zeroizing::new(vec![0; words(values)]);
            row.fill_with(|| rng.next_u64());
            row
        };
        self.shares = leaves(parts).flat_map(|leaf| 0..leaf.rows()).map(|_| random()).collect();
        self
    }

    pub(super) fn encode(&self, parts: Parts, writer: &mut Writer) {
        for (leaf, keys) in leaves(parts).zip(&self.keys) {
            let joined: Values =
                Zeroizing::new(keys.chunks(leaf.rows()).map(|rows| join(rows, leaf)).collect());
            writer.packed(&joined, leaf.reply_bits());
        }
        encode_rows(&self.shares, writer);
    }

    pub(super) fn decode(reader: &mut Reader, values: usize, parts: Parts) -> Result<Self, DecodeError> {
        let keys = leaves(parts).map(|leaf| {
            let joined = decode(reader, values, leaf.reply_bits())?;
            let row =
                |joined: u64, row: usize| (joined >> (row << leaf.width) & mask(1 << leaf.width)) as u16;
            let mut rows = Zeroizing::new(Vec::with_capacity(values * leaf.rows()));
            joined.iter().for_each(|joined| rows.extend((0..leaf.rows()).map(|number| row(*joined, number))));
            Ok(rows)
        });
        Ok(Self { keys: keys.collect::<Result<_, _>>()?, shares: decode_rows(reader, values, parts)? })
    }

    /// The second party's role.
    pub(super) fn role(self, numbers: Vec<driver::Part<Values>>, parts: Parts) -> ReplyingLeaves {
        ReplyingLeaves { keys: self, numbers, parts, choices: Vec::new() }
    }
}

/// The first party's role: it learns a row of the second's for each leaf, at the place of its own number.
pub(super) struct ChoosingLeaves {
    choices: LeafChoices,
    /// All parts in one.
    x: Values,
    parts: Parts,
}

impl Role for ChoosingLeaves {
    fn say(&mut self) -> Vec<u8> {
        let masked = self.x.zip_map(&self.choices.random, |x, r| x ^ r);
        pack_bits(&masked, joint_bits(self.parts))
    }

    fn hear(&mut self, message: &mut Reader<'_>) -> Result<()> {
        let mut rows = self.choices.rows.iter_mut();
        for leaf in leaves(self.parts) {
            let bits = leaf.reply_bits();
            let replies = message.bytes(packed_len(self.x.len(), bits)).map_err(ChannelError::from)?;
            let mut columns: Vec<_> =
                rows.by_ref().take(leaf.rows()).map(|row| row.chunks_mut(PART / 64)).collect();
            let parts =
                replies.chunks(packed_len(PART, bits)).zip(self.x.chunks(PART)).map(|(replies, x)| {
                    (replies, x, columns.iter_mut().filter_map(Iterator::next).collect::<Vec<_>>())
                });
            let opened = parallel::map(parts, |(replies, x, rows)| {
                unpack_bits(replies, x.len(), bits).map(|replies| open(leaf, &replies, x, rows))
            });
            opened.into_iter().collect::<Result<(), _>>().map_err(ChannelError::from)?;
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Vec<Values> {
        self.choices.rows
    }
}

/// Adds what is told at each value's own number to the bits of the keys, row by row.
fn open(leaf: Leaf, replies: &[u64], x: &[u64], mut rows: Vec<&mut [u64]>) {
    for (word, (replies, x)) in replies.chunks(64).zip(x.chunks(64)).enumerate() {
        let mut told = [0; MAX_ROWS];
        for (i, (reply, x)) in replies.iter().zip(x).enumerate() {
            let at_own = reply >> (x >> leaf.shift[1] & mask(leaf.width));
            for (row, told) in told.iter_mut().enumerate().take(leaf.rows()) {
                *told |= (at_own >> (row << leaf.width) & 1) << i;
            }
        }
        rows.iter_mut().zip(told).for_each(|(row, told)| row[word] ^= told);
    }
}

/// The second party's role: it tells of every number that the first's may be whether it is less than its own, or equal.
pub(super) struct ReplyingLeaves {
    keys: LeafKeys,
    numbers: Vec<driver::Part<Values>>,
    parts: Parts,
    /// What the first party said.
    choices: Vec<u64>,
}

impl Role for ReplyingLeaves {
    fn say(&mut self) -> Vec<u8> {
        let values = self.choices.len();
        let lengths: Vec<usize> =
            leaves(self.parts).map(|leaf| packed_len(values, leaf.reply_bits())).collect();
        let mut message = vec![0; lengths.iter().sum()];
        let (mut rest, mut rows, mut items) =
            (message.as_mut_slice(), self.keys.shares.as_slice(), Vec::new());
        for ((leaf, length), keys) in leaves(self.parts).zip(lengths).zip(&self.keys.keys) {
            let (of_leaf, behind) = rest.split_at_mut(length);
            let (shares, others) = rows.split_at(leaf.rows());
            (rest, rows) = (behind, others);
            let operands = self.choices.chunks(PART).zip(keys.chunks(PART * leaf.rows()));
            let parts = of_leaf.chunks_mut(packed_len(PART, leaf.reply_bits()));
            items.extend(parts.zip(operands).zip((0..).step_by(PART)).map(
                |((bytes, (choices, keys)), first)| {
                    let numbers = &self.numbers[leaf.part].numbers;
                    OfLeaf { leaf, first, choices, keys, numbers, shares, bytes }
                },
            ));
        }
        parallel::for_each(items, |item| match (item.leaf.ways, item.leaf.told) {
            (1, 1) => item.reply::<1, 1>(),
            (1, _) => item.reply::<1, 2>(),
            (_, 1) => item.reply::<2, 1>(),
            _ => item.reply::<2, 2>(),
        });
        message
    }

    fn hear(&mut self, message: &mut Reader<'_>) -> Result<()> {
        let values = self.numbers[0].numbers[0].len();
        self.choices = packed(message, values, joint_bits(self.parts))?;
        Ok(())
    }

    fn finish(self: Box<Self>) -> Vec<Values> {
        self.keys.shares
    }
}

/// The replies of a leaf for some values.
struct OfLeaf<'r> {
    leaf: Leaf,
    /// The first value, the beginning of a word of bits.
    first: usize,
    choices: &'r [u64],
    keys: &'r [u16],
    /// What is compared in each way, and this party's shares of what is told, of all values.
    numbers: &'r [Values],
    shares: &'r [Values],
    bytes: &'r mut [u8],
}

impl OfLeaf<'_> {
    fn reply<const WAYS: usize, const TOLD: usize>(self) {
        let Self { leaf, first, choices, keys, numbers, shares, bytes } = self;
        let (low, whole, rows) = (mask(leaf.width), mask(1 << leaf.width), WAYS * TOLD);
        let mut replies = [0; 64];
        let parts = choices.chunks(64).zip(keys.chunks(64 * rows));
        for ((bytes, (choices, keys)), first) in
            bytes.chunks_mut(8 * leaf.reply_bits() as usize).zip(parts).zip((first..).step_by(64))
        {
            let mut of_word = [0; MAX_ROWS];
            of_word.iter_mut().zip(shares).for_each(|(word, row)| *word = row[first / 64]);
            let values = choices.iter().zip(keys.chunks_exact(rows)).zip(&mut replies);
            for (i, ((choice, keys), reply)) in values.enumerate() {
                let (mut told, mut joint) = (0, 0);
                for (way, numbers) in numbers.iter().enumerate().take(WAYS) {
                    let y = numbers[first + i] >> leaf.shift[0] & low;
                    for equal in 0..TOLD {
                        let row = way * TOLD + equal;
                        let answers = if equal == 0 { (1 << y) - 1 } else { 1 << y };
                        let share = (of_word[row] >> i & 1).wrapping_neg();
                        told |= ((answers ^ share) & whole) << (row << leaf.width);
                        joint |= (u64::from(keys[row]) & whole) << (row << leaf.width);
                    }
                }
                *reply = told ^ permute(joint, choice >> leaf.shift[1] & low, leaf.width);
            }
            pack_bits_to(&replies[..choices.len()], leaf.reply_bits(), bytes);
        }
    }
}

/// The most rows of a leaf.
const MAX_ROWS: usize = 4;

fn joint_bits(parts: Parts) -> u32 {
    parts.iter().map(|part| part.bits).sum()
}

fn encode_rows(rows: &[Values], writer: &mut Writer) {
    for row in rows {
        writer.packed(row, 64);
    }
}

fn decode_rows(reader: &mut Reader, values: usize, parts: Parts) -> Result<Vec<Values>, DecodeError> {
    leaves(parts).flat_map(|leaf| 0..leaf.rows()).map(|_| decode(reader, words(values), 64)).collect()
}

/// The rows of a value's keys, one behind the other.
fn join(rows: &[u16], leaf: Leaf) -> u64 {
    let row =
        |(number, keys): (usize, &u16)| (u64::from(*keys) & mask(1 << leaf.width)) << (number << leaf.width);
    rows.iter().enumerate().map(row).sum()
}

/// Bit `j` of each run of `2^width` bits of the result is bit `j xor c` of the run, for `c` of `width` bits.
fn permute(mut runs: u64, c: u64, width: u32) -> u64 {
    const LOW: [u64; 4] =
        [0x5555_5555_5555_5555, 0x3333_3333_3333_3333, 0x0f0f_0f0f_0f0f_0f0f, 0x00ff_00ff_00ff_00ff];
    for (bit, low) in LOW.into_iter().enumerate().take(width as usize) {
        let swapped = (runs & low) << (1 << bit) | runs >> (1 << bit) & low;
        let mask = (c >> bit & 1).wrapping_neg();
        runs ^= (runs ^ swapped) & mask;
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permutations_move_every_bit_of_a_run_by_its_number() {
        for width in 1..=4 {
            for c in 0..1 << width {
                for j in 0..64_u64 {
                    assert_eq!(permute(1 << j, c, width), 1 << (j ^ c));
                }
            }
        }
    }

    #[test]
    fn leaves_of_all_parts_follow_each_other_without_gaps() {
        for bits in [[0, 5, 0], [1, 1, 0], [9, 13, 0], [30, 31, 0], [61, 0, 0], [11, 9, 3], [0, 9, 4]] {
            let part = |bits| Compared { bits, ways: 1, equality: false };
            let (mut at, mut of_part) = (0, [0; PARTS]);
            for leaf in leaves(bits.map(part)) {
                assert_eq!(leaf.shift, [of_part[leaf.part], at]);
                assert!((1..=4).contains(&leaf.width));
                at += leaf.width;
                of_part[leaf.part] += leaf.width;
            }
            assert_eq!((of_part, at), (bits, bits.iter().sum()));
        }
    }
}
