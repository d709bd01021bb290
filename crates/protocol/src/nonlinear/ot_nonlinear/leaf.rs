//! Comparisons of blocks of at most four bits by 1-of-16 transfers.
//!
//! Four correlated transfers `t_b = q_b xor x_b delta` combine over `GF(2^128)`, with `g` the polynomial `X`, to
//! `sum g^b t_b = sum g^b q_b + x delta` for the number `x` of the choices: one of 16 keys, of which the sender knows all.

use lanner_ot::{CorrelatedSender, SilentSender};
use lanner_primitives::{Block, CorrelationRobustHash, parallel};
use lanner_wire::{DecodeError, Reader, Writer, pack_bits};
use rand_core::CryptoRng;
use zeroize::{ZeroizeOnDrop, Zeroizing};

use super::driver;
use super::lanes::{Lanes, Values, decode, mask, words};
use super::material::{PART, Part, gather_bits};
use super::moves::{Compared, Leaf, leaves};
use super::run::{Role, packed};
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
    pub(super) fn new(hash: &CorrelationRobustHash, part: &Part, values: usize, parts: Parts) -> Self {
        let mut random = Zeroizing::new(vec![0; values]);
        let mut rows = Vec::new();
        let mut start = 0;
        for leaf in leaves(parts) {
            let (width, shift) = (leaf.width as usize, leaf.shift[1]);
            let blocks = &part.blocks[start..start + values * width];
            let mut made = vec![Zeroizing::new(vec![0; words(values)]); leaf.rows()];
            let mut columns: Vec<_> = made.iter_mut().map(|row| row.chunks_mut(PART / 64)).collect();
            let of_part = blocks.chunks(PART * width).zip(random.chunks_mut(PART)).map(|(blocks, random)| {
                (blocks, random, columns.iter_mut().filter_map(Iterator::next).collect::<Vec<_>>())
            });
            parallel::for_each(of_part.enumerate(), |(number, (blocks, random, mut rows))| {
                let first = part.first + (start + number * PART) as u64;
                chosen_bits(hash, blocks, width, first, &mut rows);
                let of_part = start + number * PART * width;
                for (i, choice) in random.iter_mut().enumerate() {
                    let chosen = part.choices(of_part + i * width) & mask(leaf.width);
                    *choice |= chosen << shift;
                }
            });
            rows.append(&mut made);
            start += blocks.len();
        }
        Self { random, rows }
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
    pub(super) fn new(
        sender: &SilentSender,
        part: &Part,
        values: usize,
        parts: Parts,
        rng: &mut impl CryptoRng,
    ) -> Self {
        let multiples = multiples(sender.delta());
        let (mut keys, mut rows) = (Vec::new(), 0);
        let mut start = 0;
        for leaf in leaves(parts) {
            let of_leaf = &part.blocks[start..start + values * leaf.width as usize];
            let first = part.first + start as u64;
            keys.push(all_keys(sender.hash(), of_leaf, leaf, &multiples, first));
            rows += leaf.rows();
            start += of_leaf.len();
        }
        let mut random = || {
            let mut row = Zeroizing::new(vec![0; words(values)]);
            row.fill_with(|| rng.next_u64());
            row
        };
        Self { keys, shares: (0..rows).map(|_| random()).collect() }
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
            let rows =
                joined.iter().flat_map(|joined| (0..leaf.rows()).map(move |number| row(*joined, number)));
            Ok(Zeroizing::new(rows.collect()))
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

/// As many low bits of the key that each value chose as there are rows, into words.
fn chosen_bits(
    hash: &CorrelationRobustHash,
    blocks: &[Block],
    width: usize,
    first: u64,
    rows: &mut [&mut [u64]],
) {
    let mut keys = Zeroizing::new([Block::ZERO; 64]);
    let mut hashed = Zeroizing::new([0; 64]);
    for (number, values) in blocks.chunks(64 * width).enumerate() {
        let count = values.len() / width;
        keys.iter_mut().zip(values.chunks(width)).for_each(|(key, value)| *key = combine(value));
        hash.hash_to_words(&keys[..count], Block::ZERO, first + 64 * number as u64, &mut *hashed);
        for (bit, row) in (0..).zip(rows.iter_mut()) {
            row[number] = gather_bits(&hashed[..count], bit);
        }
    }
}

/// Of all keys of each value as many low bits as there are rows.
fn all_keys(
    hash: &CorrelationRobustHash,
    blocks: &[Block],
    leaf: Leaf,
    multiples: &[Block; 16],
    first: u64,
) -> Zeroizing<Vec<u16>> {
    let (width, rows) = (leaf.width as usize, leaf.rows());
    let multiples = &multiples[..1 << width];
    let mut keys = Zeroizing::new(vec![0; blocks.len() / width * rows]);
    let parts = keys.chunks_mut(PART * rows).zip(blocks.chunks(PART * width)).zip((first..).step_by(PART));
    parallel::for_each(parts, |((keys, blocks), first)| match rows {
        1 => part_of_keys::<1>(hash, blocks, width, multiples, first, keys),
        2 => part_of_keys::<2>(hash, blocks, width, multiples, first, keys),
        _ => part_of_keys::<4>(hash, blocks, width, multiples, first, keys),
    });
    keys
}

fn part_of_keys<const ROWS: usize>(
    hash: &CorrelationRobustHash,
    blocks: &[Block],
    width: usize,
    multiples: &[Block],
    first: u64,
    keys: &mut [u16],
) {
    let mut bases = Zeroizing::new([Block::ZERO; 64]);
    let values = blocks.chunks(64 * width).zip(keys.as_chunks_mut::<ROWS>().0.chunks_mut(64));
    for ((blocks, keys), first) in values.zip((first..).step_by(64)) {
        bases.iter_mut().zip(blocks.chunks(width)).for_each(|(base, value)| *base = combine(value));
        hash.hash_runs_to_bits(&bases[..keys.len()], multiples, first, keys);
    }
}

/// `sum_b g^b blocks[b]`.
fn combine(blocks: &[Block]) -> Block {
    blocks.iter().rev().fold(Block::ZERO, |sum, block| double(sum) ^ *block)
}

/// `j delta` for all numbers `j` of four bits.
fn multiples(delta: Block) -> [Block; 16] {
    let mut powers = [delta; 4];
    for bit in 1..4 {
        powers[bit] = double(powers[bit - 1]);
    }
    std::array::from_fn(|j| {
        let of_bit = |bit: usize| powers[bit] & Block::mask(j >> bit & 1 == 1);
        (0..4).fold(Block::ZERO, |sum, bit| sum ^ of_bit(bit))
    })
}

/// The product with `X` modulo `X^128 + X^7 + X^2 + X + 1`.
const fn double(block: Block) -> Block {
    Block(block.0 << 1 ^ (0x87 & (block.0 >> 127).wrapping_neg()))
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
    fn multiples_are_linear_and_distinct() {
        let delta = Block(0xfedc_ba98_7654_3210_0123_4567_89ab_cdef);
        let all = multiples(delta);
        for j in 0..16 {
            for k in 0..16 {
                assert!(all[j] ^ all[k] == all[j ^ k]);
                assert!(j == k || all[j] != all[k]);
            }
        }
        assert!(combine(&[Block::ZERO, delta, Block::ZERO, delta]) == all[10]);
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
