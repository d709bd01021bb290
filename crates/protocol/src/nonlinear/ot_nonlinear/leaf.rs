//! Comparisons of blocks of at most four bits by 1-of-16 transfers.
//!
//! Four correlated transfers `t_b = q_b xor x_b delta` combine over `GF(2^128)`, with `g` the polynomial `X`, to
//! `sum g^b t_b = sum g^b q_b + x delta` for the number `x` of the choices: one of 16 keys, of which the sender knows all.

use lanner_primitives::parallel;
use lanner_wire::{DecodeError, Reader, Writer, pack_bits};
use rand_core::CryptoRng;
use zeroize::{ZeroizeOnDrop, Zeroizing};

use super::driver;
use super::lanes::{Lanes, Values, decode, gather_bits, mask, words};
use super::moves::{Compared, Leaf, leaves};
use super::run::{Role, packed};
use super::source::{PART, Source, multiples};
use crate::ProtocolError;

/// The parts of the numbers that are compared.
type Parts = [Compared; 2];

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
    pub(super) fn new(source: &mut Source<'_>, values: usize, parts: Parts) -> Result<Self, ProtocolError> {
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
                        *row = gather_bits(keys, bit);
                    });
                }
                for (i, choice) in random.iter_mut().enumerate() {
                    *choice |= (part.choices(i * width) & mask(leaf.width)) << leaf.shift[1];
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
        if let [low, high] = numbers {
            x = x.zip_map(&high.numbers[0], |x, a| x | (!a & mask(high.bits)) << low.bits);
        }
        ChoosingLeaves { choices: self, x, parts }
    }
}

impl LeafKeys {
    pub(super) fn new(source: &mut Source<'_>, values: usize, parts: Parts) -> Result<Self, ProtocolError> {
        let multiples = multiples(source.delta());
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

    /// The reply of a leaf to choices, for the numbers that each way compares; `rows` are this party's shares of what is told.
    fn reply(
        &self,
        number: usize,
        leaf: Leaf,
        choices: &[u64],
        ways: &[&Values],
        rows: &[Values],
    ) -> Vec<u64> {
        let keys = &self.keys[number];
        let (low, whole) = (mask(leaf.width), mask(1 << leaf.width));
        let mut replies = vec![0; choices.len()];
        let operands = choices.chunks(PART).zip(keys.chunks(PART * leaf.rows()));
        let parts = replies.chunks_mut(PART).zip(operands).zip((0..).step_by(PART));
        parallel::for_each(parts, |((replies, (choices, keys)), first)| {
            let values = choices.iter().zip(keys.chunks_exact(leaf.rows())).enumerate();
            for (reply, (i, (choice, keys))) in replies.iter_mut().zip(values) {
                let place = first + i;
                let choice = choice >> leaf.shift[1] & low;
                let mut row = 0;
                for way in ways {
                    let y = way[place] >> leaf.shift[0] & low;
                    for told in [(1 << y) - 1, 1 << y].into_iter().take(leaf.told) {
                        let share = (rows[row][place / 64] >> (place % 64) & 1).wrapping_neg();
                        let bits = (told ^ share ^ u64::from(permute(keys[row], choice))) & whole;
                        *reply |= bits << (row << leaf.width);
                        row += 1;
                    }
                }
            }
        });
        replies
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

    fn hear(&mut self, message: &mut Reader<'_>) -> Result<(), ProtocolError> {
        let mut rows = self.choices.rows.as_mut_slice();
        for leaf in leaves(self.parts) {
            let replies = packed(message, self.x.len(), leaf.reply_bits())?;
            let (of_leaf, behind) = rows.split_at_mut(leaf.rows());
            rows = behind;
            let mut columns: Vec<_> = of_leaf.iter_mut().map(|row| row.chunks_mut(PART / 64)).collect();
            let parts = replies.chunks(PART).zip(self.x.chunks(PART)).map(|(replies, x)| {
                (replies, x, columns.iter_mut().filter_map(Iterator::next).collect::<Vec<_>>())
            });
            parallel::for_each(parts, |(replies, x, mut rows)| {
                for (i, (reply, x)) in replies.iter().zip(x).enumerate() {
                    let at_own = reply >> (x >> leaf.shift[1] & mask(leaf.width));
                    for (number, row) in rows.iter_mut().enumerate() {
                        row[i / 64] ^= (at_own >> (number << leaf.width) & 1) << (i % 64);
                    }
                }
            });
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Vec<Values> {
        self.choices.rows
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
        let (mut message, mut rows) = (Vec::new(), self.keys.shares.as_slice());
        for (number, leaf) in leaves(self.parts).enumerate() {
            let ways: Vec<&Values> = self.numbers[leaf.part].numbers.iter().collect();
            let replies = self.keys.reply(number, leaf, &self.choices, &ways, rows);
            message.extend(pack_bits(&replies, leaf.reply_bits()));
            rows = &rows[leaf.rows()..];
        }
        message
    }

    fn hear(&mut self, message: &mut Reader<'_>) -> Result<(), ProtocolError> {
        let values = self.numbers[0].numbers[0].len();
        self.choices = packed(message, values, joint_bits(self.parts))?;
        Ok(())
    }

    fn finish(self: Box<Self>) -> Vec<Values> {
        self.keys.shares
    }
}

fn joint_bits(parts: Parts) -> u32 {
    parts.iter().map(|part| part.bits).sum()
}

fn encode_rows(rows: &[Values], writer: &mut Writer) {
    rows.iter().for_each(|row| writer.packed(row, 64));
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

/// Bit `j` of the result is bit `j xor c`.
fn permute(mut keys: u16, c: u64) -> u16 {
    for (bit, low) in [0x5555, 0x3333, 0x0f0f, 0x00ff].into_iter().enumerate() {
        let swapped = (keys & low) << (1 << bit) | keys >> (1 << bit) & low;
        let mask = ((c >> bit & 1) as u16).wrapping_neg();
        keys ^= (keys ^ swapped) & mask;
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permutations_move_every_bit_by_its_number() {
        for c in 0..16 {
            for j in 0..16 {
                assert_eq!(permute(1 << j, c), 1 << (j ^ c));
            }
        }
    }

    #[test]
    fn leaves_of_all_parts_follow_each_other_without_gaps() {
        for (low, high) in [(0, 5), (1, 1), (9, 13), (30, 31), (61, 0)] {
            let part = |bits| Compared { bits, ways: 1, equality: false };
            let (mut at, mut of_part) = (0, [0, 0]);
            for leaf in leaves([part(low), part(high)]) {
                assert_eq!(leaf.shift, [of_part[leaf.part], at]);
                assert!((1..=4).contains(&leaf.width));
                at += leaf.width;
                of_part[leaf.part] += leaf.width;
            }
            assert_eq!((of_part, at), ([low, high], low + high));
        }
    }
}
