//! Comparisons of blocks of at most four bits by 1-of-16 transfers.
//!
//! Four correlated transfers `t_b = q_b xor x_b delta` combine over `GF(2^128)`, with `g` the polynomial `X`, to
//! `sum g^b t_b = sum g^b q_b + x delta` for the number `x` of the choices: one of 16 keys, of which the sender knows all.

use lanner_ot::{CorrelatedSender, SilentSender};
use lanner_primitives::{Block, CorrelationRobustHash};
use lanner_wire::{pack_bits, packed_len, unpack_bits};
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use super::material::{Part, Words};
use super::moves::{LEAF_BITS, leaf_reply_bits, leaf_widths, words};
use crate::ProtocolError;

/// The choosing party's material.
pub(super) struct LeafChoices {
    bits: u32,
    /// The random choice of each value, all its blocks together.
    random: Zeroizing<Vec<u64>>,
    /// For each block, the two bits of the key that each value chose.
    keys: Vec<[Words; 2]>,
}

/// The replying party's material.
pub(super) struct LeafKeys {
    bits: u32,
    /// For each block and value, both bits of all 16 keys.
    keys: Vec<Zeroizing<Vec<[u16; 2]>>>,
    /// For each block, this party's shares of what will be compared.
    shares: Vec<[Words; 2]>,
}

/// One party's shares, for each block: whether the first party's is less, and whether both are equal.
pub(super) type Leaves = Vec<[Words; 2]>;

impl LeafChoices {
    pub(super) fn new(hash: &CorrelationRobustHash, part: &Part, values: usize, bits: u32) -> Self {
        let mut random = Zeroizing::new(vec![0; values]);
        let mut keys = Vec::new();
        let mut start = 0;
        for (leaf, width) in leaf_widths(bits).enumerate() {
            let of_leaf = &part.blocks[start..start + values * width as usize];
            let mut hashed: Zeroizing<Vec<Block>> =
                Zeroizing::new(of_leaf.chunks(width as usize).map(combine).collect());
            hash.hash_runs_in_place(&mut hashed, 1, part.first + start as u64);
            keys.push([0, 1].map(|bit| {
                let mut row = Zeroizing::new(vec![0; words(values)]);
                for (i, key) in hashed.iter().enumerate() {
                    row[i / 64] |= (key.0 as u64 >> bit & 1) << (i % 64);
                }
                row
            }));
            for (i, choice) in random.iter_mut().enumerate() {
                for bit in 0..width {
                    let chosen = part.choice(start + i * width as usize + bit as usize);
                    *choice |= u64::from(chosen) << (leaf as u32 * LEAF_BITS + bit);
                }
            }
            start += of_leaf.len();
        }
        Self { bits, random, keys }
    }

    /// What is sent for the values `x`.
    pub(super) fn choose(&self, x: &[u64]) -> Vec<u8> {
        let masked: Vec<u64> = x.iter().zip(self.random.iter()).map(|(x, r)| x ^ r).collect();
        pack_bits(&masked, self.bits)
    }

    /// Opens the reply.
    pub(super) fn open(self, x: &[u64], reply: &[u8]) -> Result<Leaves, ProtocolError> {
        let mut rest = reply;
        let mut leaves = self.keys;
        for (leaf, (width, keys)) in leaf_widths(self.bits).zip(&mut leaves).enumerate() {
            let bits = leaf_reply_bits(leaf, width);
            let (now, later) = split(rest, packed_len(x.len(), bits))?;
            rest = later;
            let replies = unpack(now, x.len(), bits)?;
            let shift = leaf as u32 * LEAF_BITS;
            for (i, (reply, x)) in replies.iter().zip(x).enumerate() {
                let block = x >> shift & ((1 << width) - 1);
                keys[0][i / 64] ^= (reply >> block & 1) << (i % 64);
                keys[1][i / 64] ^= (reply >> (1 << width) >> block & 1) << (i % 64);
            }
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
        Self { bits, keys, shares }
    }

    /// The reply to the choices for the values `y`, and this party's shares.
    pub(super) fn reply(self, choices: &[u8], y: &[u64]) -> Result<(Vec<u8>, Leaves), ProtocolError> {
        let choices = unpack(choices, y.len(), self.bits)?;
        let mut message = Vec::new();
        for (leaf, (width, keys)) in leaf_widths(self.bits).zip(&self.keys).enumerate() {
            let (shift, shares) = (leaf as u32 * LEAF_BITS, &self.shares[leaf]);
            let rows: u64 = (1 << (1 << width)) - 1;
            let reply = |(i, ((y, c), [less, equal])): (usize, ((&u64, &u64), &[u16; 2]))| {
                let (y, c) = (y >> shift & ((1 << width) - 1), c >> shift & ((1 << width) - 1));
                let share = |row: &Words| (row[i / 64] >> (i % 64) & 1).wrapping_neg() & rows;
                let less = ((1 << y) - 1) ^ share(&shares[0]) ^ u64::from(permute(*less, c));
                let equal = (1 << y) ^ share(&shares[1]) ^ u64::from(permute(*equal, c));
                less & rows | (equal & rows) << (1 << width)
            };
            let replies: Vec<u64> = y.iter().zip(&choices).zip(keys.iter()).enumerate().map(reply).collect();
            message.extend(pack_bits(&replies, leaf_reply_bits(leaf, width)));
        }
        Ok((message, self.shares))
    }
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

/// Both bits of all keys of each value.
fn all_keys(
    hash: &CorrelationRobustHash,
    blocks: &[Block],
    width: usize,
    multiples: &[Block; 16],
    first: u64,
) -> Zeroizing<Vec<[u16; 2]>> {
    let count = 1 << width;
    let mut keys = Zeroizing::new(Vec::with_capacity(blocks.len() / width));
    let mut hashed = Zeroizing::new(Vec::with_capacity(PART * count));
    for (number, part) in blocks.chunks(PART * width).enumerate() {
        hashed.clear();
        for value in part.chunks(width) {
            let base = combine(value);
            hashed.extend(multiples[..count].iter().map(|multiple| base ^ *multiple));
        }
        hash.hash_runs_in_place(&mut hashed, count, first + (number * PART) as u64);
        keys.extend(hashed.chunks(count).map(|of_value| {
            let bit = |bit: u32| {
                let bits = of_value.iter().enumerate();
                bits.fold(0, |row, (j, key)| row | (key.0 as u16 >> bit & 1) << j)
            };
            [bit(0), bit(1)]
        }));
    }
    keys
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

/// Values whose keys are hashed at a time.
const PART: usize = 64;

pub(super) fn split(bytes: &[u8], length: usize) -> Result<(&[u8], &[u8]), ProtocolError> {
    bytes.split_at_checked(length).ok_or(ProtocolError::Shape { what: "a message of several parts" })
}

/// Unpacks a peer's values.
pub(super) fn unpack(bytes: &[u8], count: usize, bits: u32) -> Result<Vec<u64>, ProtocolError> {
    Ok(unpack_bits(bytes, count, bits).map_err(lanner_wire::ChannelError::from)?)
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
