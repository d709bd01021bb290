//! Comparisons of blocks of at most four bits by 1-of-16 transfers.
//!
//! Four correlated transfers `t_b = q_b xor x_b delta` combine over `GF(2^128)`, with `g` the polynomial `X`, to
//! `sum g^b t_b = sum g^b q_b + x delta` for the number `x` of the choices: one of 16 keys, of which the sender knows all.

use lanner_ot::{CorrelatedSender, SilentSender};
use lanner_primitives::{Block, CorrelationRobustHash, parallel};
use lanner_wire::{DecodeError, Reader, Writer, pack_bits};
use rand_core::CryptoRng;
use zeroize::{ZeroizeOnDrop, Zeroizing};

use super::lanes::{Values, decode, mask, words};
use super::material::{PART, Part, bits as bits_of};
use super::moves::{LEAF_BITS, leaf_reply_bits, leaf_widths};
use super::run::packed;
use crate::ProtocolError;

/// The choosing party's material.
pub(super) struct LeafChoices {
    /// The random choice of each value, all its blocks together.
    random: Values,
    /// For each block, the two bits of the key that each value chose.
    keys: Vec<[Values; 2]>,
}

/// The replying party's material.
pub(super) struct LeafKeys {
    /// For each block and value, both bits of all 16 keys.
    keys: Vec<Zeroizing<Vec<[u16; 2]>>>,
    /// For each block, this party's shares of what will be compared.
    shares: Vec<[Values; 2]>,
}

/// One party's shares, for each block: whether the first party's is less, and whether both are equal.
pub(super) type Leaves = Vec<[Values; 2]>;

impl ZeroizeOnDrop for LeafChoices {}

impl ZeroizeOnDrop for LeafKeys {}

impl LeafChoices {
    pub(super) fn new(hash: &CorrelationRobustHash, part: &Part, values: usize, bits: u32) -> Self {
        let mut random = Zeroizing::new(vec![0; values]);
        let mut keys = Vec::new();
        let mut start = 0;
        for (leaf, width) in leaf_widths(bits).enumerate() {
            let blocks = &part.blocks[start..start + values * width as usize];
            let [mut low, mut high] = [0, 1].map(|_| Zeroizing::new(vec![0; words(values)]));
            let rows = low.chunks_mut(PART / 64).zip(high.chunks_mut(PART / 64));
            let parts = blocks.chunks(PART * width as usize).zip(rows).zip(random.chunks_mut(PART));
            parallel::for_each(parts.enumerate(), |(number, ((blocks, (low, high)), random))| {
                let first = part.first + (start + number * PART) as u64;
                chosen_bits(hash, blocks, width as usize, first, low, high);
                let of_part = start + number * PART * width as usize;
                for (i, choice) in random.iter_mut().enumerate() {
                    let chosen = part.choices(of_part + i * width as usize) & ((1 << width) - 1);
                    *choice |= chosen << (leaf as u32 * LEAF_BITS);
                }
            });
            keys.push([low, high]);
            start += blocks.len();
        }
        Self { random, keys }
    }

    pub(super) fn encode(&self, bits: u32, writer: &mut Writer) {
        writer.packed(&self.random, bits);
        encode_rows(&self.keys, writer);
    }

    pub(super) fn decode(reader: &mut Reader, values: usize, bits: u32) -> Result<Self, DecodeError> {
        Ok(Self { random: decode(reader, values, bits)?, keys: decode_rows(reader, values, bits)? })
    }

    /// What is sent for the values `x`.
    pub(super) fn choose(&self, x: &[u64], bits: u32) -> Vec<u8> {
        let masked: Vec<u64> = x.iter().zip(self.random.iter()).map(|(x, r)| x ^ r).collect();
        pack_bits(&masked, bits)
    }

    /// Opens the reply.
    pub(super) fn open(self, x: &[u64], bits: u32, reply: &[u8]) -> Result<Leaves, ProtocolError> {
        let mut reply = Reader::new(reply);
        let mut leaves = self.keys;
        for (leaf, (width, keys)) in leaf_widths(bits).zip(&mut leaves).enumerate() {
            let replies = packed(&mut reply, x.len(), leaf_reply_bits(leaf, width))?;
            let shift = leaf as u32 * LEAF_BITS;
            let [less, equal] = keys;
            let rows = less.chunks_mut(PART / 64).zip(equal.chunks_mut(PART / 64));
            let parts = replies.chunks(PART).zip(x.chunks(PART)).zip(rows);
            parallel::for_each(parts, |((replies, x), (less, equal))| {
                for (i, (reply, x)) in replies.iter().zip(x).enumerate() {
                    let block = x >> shift & ((1 << width) - 1);
                    less[i / 64] ^= (reply >> block & 1) << (i % 64);
                    equal[i / 64] ^= (reply >> (1 << width) >> block & 1) << (i % 64);
                }
            });
        }
        Ok(leaves)
    }
}

impl LeafKeys {
    pub(super) fn new(
        sender: &SilentSender,
        part: &Part,
        values: usize,
        bits: u32,
        rng: &mut impl CryptoRng,
    ) -> Self {
        let multiples = multiples(sender.delta());
        let mut keys = Vec::new();
        let mut start = 0;
        for width in leaf_widths(bits) {
            let of_leaf = &part.blocks[start..start + values * width as usize];
            let first = part.first + start as u64;
            keys.push(all_keys(sender.hash(), of_leaf, width as usize, &multiples, first));
            start += of_leaf.len();
        }
        let mut random = || {
            let mut row = Zeroizing::new(vec![0; words(values)]);
            row.fill_with(|| rng.next_u64());
            row
        };
        let shares = keys.iter().map(|_| [random(), random()]).collect();
        Self { keys, shares }
    }

    pub(super) fn encode(&self, bits: u32, writer: &mut Writer) {
        for (width, keys) in leaf_widths(bits).zip(&self.keys) {
            let joined = |[less, equal]: &[u16; 2]| u64::from(*less) | u64::from(*equal) << (1 << width);
            let joined: Values = Zeroizing::new(keys.iter().map(joined).collect());
            writer.packed(&joined, 2 << width);
        }
        encode_rows(&self.shares, writer);
    }

    pub(super) fn decode(reader: &mut Reader, values: usize, bits: u32) -> Result<Self, DecodeError> {
        let keys = leaf_widths(bits).map(|width| {
            let (joined, low) = (decode(reader, values, 2 << width)?, mask(1 << width));
            let both = |keys: &u64| [(keys & low) as u16, (keys >> (1 << width)) as u16];
            Ok(Zeroizing::new(joined.iter().map(both).collect()))
        });
        Ok(Self { keys: keys.collect::<Result<_, _>>()?, shares: decode_rows(reader, values, bits)? })
    }

    /// The reply to the choices for the values `y`, and this party's shares.
    pub(super) fn reply(
        self,
        choices: &[u8],
        y: &[u64],
        bits: u32,
    ) -> Result<(Vec<u8>, Leaves), ProtocolError> {
        let choices = packed(&mut Reader::new(choices), y.len(), bits)?;
        let mut message = Vec::new();
        for (leaf, (width, keys)) in leaf_widths(bits).zip(&self.keys).enumerate() {
            let (shift, shares) = (leaf as u32 * LEAF_BITS, &self.shares[leaf]);
            let rows: u64 = (1 << (1 << width)) - 1;
            let reply = |i: usize, y: u64, c: u64, [less, equal]: [u16; 2]| {
                let (y, c) = (y >> shift & ((1 << width) - 1), c >> shift & ((1 << width) - 1));
                let share = |row: &Values| (row[i / 64] >> (i % 64) & 1).wrapping_neg() & rows;
                let less = ((1 << y) - 1) ^ share(&shares[0]) ^ u64::from(permute(less, c));
                let equal = (1 << y) ^ share(&shares[1]) ^ u64::from(permute(equal, c));
                less & rows | (equal & rows) << (1 << width)
            };
            let mut replies = vec![0; y.len()];
            let operands = y.chunks(PART).zip(choices.chunks(PART)).zip(keys.chunks(PART));
            let parts = replies.chunks_mut(PART).zip(operands).zip((0..).step_by(PART));
            parallel::for_each(parts, |((replies, ((y, choices), keys)), first)| {
                let values = y.iter().zip(choices).zip(keys).enumerate();
                for (made, (i, ((y, c), keys))) in replies.iter_mut().zip(values) {
                    *made = reply(first + i, *y, *c, *keys);
                }
            });
            message.extend(pack_bits(&replies, leaf_reply_bits(leaf, width)));
        }
        Ok((message, self.shares))
    }
}

fn encode_rows(rows: &Leaves, writer: &mut Writer) {
    rows.iter().flatten().for_each(|row| writer.packed(row, 64));
}

fn decode_rows(reader: &mut Reader, values: usize, bits: u32) -> Result<Leaves, DecodeError> {
    let mut row = || decode(reader, words(values), 64);
    leaf_widths(bits).map(|_| Ok([row()?, row()?])).collect()
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

/// Bits 0 and 1 of the key that each value chose, into words.
fn chosen_bits(
    hash: &CorrelationRobustHash,
    blocks: &[Block],
    width: usize,
    first: u64,
    low: &mut [u64],
    high: &mut [u64],
) {
    let mut keys = Zeroizing::new([Block::ZERO; 64]);
    for (number, values) in blocks.chunks(64 * width).enumerate() {
        let keys = &mut keys[..values.len() / width];
        keys.iter_mut().zip(values.chunks(width)).for_each(|(key, value)| *key = combine(value));
        hash.hash_in_place(keys, first + 64 * number as u64);
        [low[number], high[number]] = [bits_of(keys, 0), bits_of(keys, 1)];
    }
}

/// Both bits of all keys of each value.
fn all_keys(
    hash: &CorrelationRobustHash,
    blocks: &[Block],
    width: usize,
    multiples: &[Block; 16],
    first: u64,
) -> Zeroizing<Vec<[u16; 2]>> {
    let mut keys = Zeroizing::new(vec![[0; 2]; blocks.len() / width]);
    let parts = keys.chunks_mut(PART).zip(blocks.chunks(PART * width)).zip((first..).step_by(PART));
    parallel::for_each(parts, |((keys, blocks), first)| {
        part_of_keys(hash, blocks, width, &multiples[..1 << width], first, keys);
    });
    keys
}

fn part_of_keys(
    hash: &CorrelationRobustHash,
    blocks: &[Block],
    width: usize,
    multiples: &[Block],
    first: u64,
    keys: &mut [[u16; 2]],
) {
    const VALUES: usize = 64;
    let mut hashed = Zeroizing::new(Vec::with_capacity(VALUES * multiples.len()));
    let parts = keys.chunks_mut(VALUES).zip(blocks.chunks(VALUES * width)).zip((first..).step_by(VALUES));
    for ((keys, blocks), first) in parts {
        hashed.clear();
        for value in blocks.chunks(width) {
            let base = combine(value);
            hashed.extend(multiples.iter().map(|multiple| base ^ *multiple));
        }
        hash.hash_runs_in_place(&mut hashed, multiples.len(), first);
        for (keys, of_value) in keys.iter_mut().zip(hashed.chunks(multiples.len())) {
            *keys = [0, 1].map(|bit| bits_of(of_value, bit) as u16);
        }
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
}
