//! What each party computes of the products.

use lanner_primitives::{Block, Ring, Share, parallel};
use lanner_step::encoding::{read_blocks, write_blocks};
use lanner_step::{ProtocolError, Result};
use lanner_wire::{
    ChannelError, DecodeError, Reader, Writer, pack_bits, pack_bits_to, packed_len, unpack_bits,
};
use zeroize::{ZeroizeOnDrop, Zeroizing};

use super::places::Places;
use crate::lanes::{Values, bit, mask};
use crate::matrices::{ChosenRows, OfferedRows, fill};

/// The client's keys, two for each transfer: that of a bit that is 0 first.
pub(super) struct Offers(Zeroizing<Vec<[Block; 2]>>);

/// The server's key of each transfer, that of its weight's bit.
pub(super) struct Choices(Zeroizing<Vec<Block>>);

impl ZeroizeOnDrop for Offers {}

impl ZeroizeOnDrop for Choices {}

/// A layer's weights.
pub(super) struct Matrices {
    weights: Zeroizing<Vec<i64>>,
    bias: Zeroizing<Vec<i64>>,
}

impl Matrices {
    /// From the weights, and a bias for each output element of one sample.
    ///
    /// # Errors
    /// [`ProtocolError::WrongModel`] if there are too few or many, or a weight is not below `2^(b-1)` or less than its negative.
    pub(super) fn new(places: &Places, weights: &[i64], bias: Vec<i64>) -> Result<Self> {
        let bound = 1_i64 << (places.weight_bits() - 1);
        let fits = weights.iter().all(|weight| (-bound..bound).contains(weight));
        if weights.len() != places.numbers() || bias.len() != places.outputs_of_one() || !fits {
            return Err(ProtocolError::WrongModel("weights of a layer of blocks"));
        }
        Ok(Self { weights: Zeroizing::new(weights.to_vec()), bias: Zeroizing::new(bias) })
    }

    /// Weights as numbers that are not negative.
    fn numbers(&self, places: &Places) -> Values {
        let bound = 1_i64 << (places.weight_bits() - 1);
        Zeroizing::new(self.weights.iter().map(|weight| (weight + bound) as u64).collect())
    }

    /// Offline: what the server says of its weights, and what it keeps.
    pub(super) fn choose(&self, places: &Places, chosen: ChosenRows) -> (Vec<u8>, Choices) {
        let (numbers, random) = (self.numbers(places), &chosen.random);
        let flip = |(number, value): (usize, &u64)| {
            let choice = |i: u32| bit(random, i as usize * places.numbers() + number) << i;
            value ^ (0..places.weight_bits()).map(choice).sum::<u64>()
        };
        let flips: Vec<u64> = numbers.iter().enumerate().map(flip).collect();
        (pack_bits(&flips, places.weight_bits()), Choices(chosen.keys))
    }

    /// Online: the server's share, from its share of the input and what the client sent.
    ///
    /// # Errors
    /// [`ProtocolError::Channel`] if there is padding that is not zero.
    pub(super) fn answer(
        &self,
        places: &Places,
        Choices(keys): &Choices,
        share: &Share,
        message: &[u8],
    ) -> Result<Share> {
        let (numbers, mut products) = (self.numbers(places), self.products(places, share));
        let width = places.width();
        let mut reader = Reader::new(message);
        for i in 0..places.weight_bits() {
            let bits = places.bits() - i;
            let bytes = reader.bytes(places.corrections_len(i)).map_err(ChannelError::from)?;
            let keys = &keys[i as usize * places.numbers()..][..places.numbers()];
            let tasks = keys.chunks(places.at_once()).zip(numbers.chunks(places.at_once()));
            let made = products.chunks_mut(places.at_once() * width);
            let made = made.zip(bytes.chunks(packed_len(places.at_once() * width, bits)));
            let added =
                parallel::map(tasks.zip(made), |((keys, numbers), (products, bytes))| -> Result<()> {
                    let corrections = unpack_bits(bytes, products.len(), bits).map_err(ChannelError::from)?;
                    let mut pads = pads(width);
                    let rows = products.chunks_exact_mut(width).zip(corrections.chunks_exact(width));
                    for ((products, corrections), (key, number)) in rows.zip(keys.iter().zip(numbers)) {
                        // Or a compiler that knows the mask for one of two would branch on it.
                        let choice = std::hint::black_box(number >> i & 1).wrapping_neg();
                        fill(*key, &mut pads);
                        for ((product, correction), pad) in
                            products.iter_mut().zip(corrections).zip(words(&pads))
                        {
                            *product = product.wrapping_add(pad.wrapping_add(correction & choice) << i);
                        }
                    }
                    Ok(())
                });
            added.into_iter().collect::<Result<()>>()?;
        }
        let sums = places.values(&summed(places, &products));
        let ring = Ring::Pow2(places.bits());
        let biased = sums.iter().zip(self.bias.iter().cycle());
        let biased = biased.map(|(sum, bias)| sum.wrapping_add(*bias as u64) & mask(places.bits()));
        Ok(Share::new(ring, biased.collect())?)
    }

    /// The layer on plain values, without its bias.
    ///
    /// # Errors
    /// None for a share of the layer's input.
    pub(super) fn apply(&self, places: &Places, values: &Share) -> Result<Share> {
        let sums = places.values(&summed(places, &self.products(places, values)));
        let reduced = sums.iter().map(|sum| sum & mask(places.bits())).collect();
        Ok(Share::new(Ring::Pow2(places.bits()), reduced)?)
    }

    /// The products of the weights and this party's elements, modulo `2^64`.
    fn products(&self, places: &Places, share: &Share) -> Values {
        let (rows, width) = (places.rows(share), places.width());
        let mut products = Zeroizing::new(vec![0; places.products()]);
        for (number, products) in products.chunks_exact_mut(width).enumerate() {
            let [input, _] = places.channels(number);
            let weight = self.weights[number] as u64;
            for (product, x) in products.iter_mut().zip(&rows[input * width..]) {
                *product = weight.wrapping_mul(*x);
            }
        }
        products
    }
}

/// Offline: what the client keeps, given what the server said.
///
/// # Errors
/// [`ProtocolError::Channel`] if that has padding that is not zero.
pub(super) fn offer(places: &Places, offered: OfferedRows, flips: &[u8]) -> Result<Offers> {
    let flips = unpack_bits(flips, places.numbers(), places.weight_bits()).map_err(ChannelError::from)?;
    let OfferedRows(mut keys) = offered;
    for (i, keys) in keys.chunks_exact_mut(places.numbers()).enumerate() {
        for ([k0, k1], flips) in keys.iter_mut().zip(&flips) {
            let swap = (*k0 ^ *k1) & Block::mask(flips >> i & 1 == 1);
            (*k0, *k1) = (*k0 ^ swap, *k1 ^ swap);
        }
    }
    Ok(Offers(keys))
}

impl Offers {
    /// Online: what the client sends, and its share, from its share of the input.
    ///
    /// # Errors
    /// None for a share of the layer's input.
    pub(super) fn correct(&self, places: &Places, share: &Share) -> Result<(Vec<u8>, Share)> {
        let (elements, width) = (places.rows(share), places.width());
        let row_of = |number: usize| &elements[places.channels(number)[0] * width..][..width];
        let mut products = Zeroizing::new(vec![0_u64; places.products()]);
        for (number, products) in products.chunks_exact_mut(width).enumerate() {
            for (product, x) in products.iter_mut().zip(row_of(number)) {
                *product = x.wrapping_neg() << (places.weight_bits() - 1);
            }
        }
        let mut message = vec![0; places.message_len()];
        let mut rest = message.as_mut_slice();
        for i in 0..places.weight_bits() {
            let bits = places.bits() - i;
            let (now, later) = rest.split_at_mut(places.corrections_len(i));
            rest = later;
            let keys = &self.0[i as usize * places.numbers()..][..places.numbers()];
            let tasks = keys.chunks(places.at_once()).zip((0..).step_by(places.at_once()));
            let made = products.chunks_mut(places.at_once() * width);
            let made = made.zip(now.chunks_mut(packed_len(places.at_once() * width, bits)));
            parallel::for_each(tasks.zip(made), |((keys, first), (products, bytes))| {
                let (mut zeros, mut ones) = (pads(width), pads(width));
                let mut corrections = Zeroizing::new(Vec::with_capacity(products.len()));
                for (([k0, k1], products), number) in keys.iter().zip(products.chunks_mut(width)).zip(first..)
                {
                    fill(*k0, &mut zeros);
                    fill(*k1, &mut ones);
                    let of_both = words(&zeros).zip(words(&ones)).zip(row_of(number));
                    for (product, ((zero, one), x)) in products.iter_mut().zip(of_both) {
                        corrections.push(x.wrapping_add(zero).wrapping_sub(one));
                        *product = product.wrapping_sub(zero << i);
                    }
                }
                pack_bits_to(&corrections, bits, bytes);
            });
        }
        let ring = Ring::Pow2(places.bits());
        let sums = places.values(&summed(places, &products));
        Ok((message, Share::new(ring, sums.iter().map(|sum| sum & mask(places.bits())).collect())?))
    }

    pub(super) fn encode(&self, writer: &mut Writer) {
        write_blocks(self.0.as_flattened(), writer);
    }

    pub(super) fn decode(places: &Places, reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let keys = read_blocks(reader, 2 * places.transfers())?;
        Ok(Self(Zeroizing::new(keys.as_chunks().0.to_vec())))
    }
}

impl Choices {
    pub(super) fn encode(&self, writer: &mut Writer) {
        write_blocks(&self.0, writer);
    }

    pub(super) fn decode(places: &Places, reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self(read_blocks(reader, places.transfers())?))
    }
}

/// The sums over what each output channel is made of, modulo `2^64`.
fn summed(places: &Places, products: &Values) -> Values {
    let width = places.width();
    let mut sums = Zeroizing::new(vec![0_u64; places.outputs()]);
    for (number, products) in products.chunks_exact(width).enumerate() {
        let [_, output] = places.channels(number);
        for (sum, product) in sums[output * width..][..width].iter_mut().zip(products) {
            *sum = sum.wrapping_add(*product);
        }
    }
    sums
}

/// Room for as many words of a key's.
fn pads(width: usize) -> Zeroizing<Vec<Block>> {
    Zeroizing::new(vec![Block::ZERO; width.div_ceil(2)])
}

fn words(pads: &[Block]) -> impl Iterator<Item = u64> {
    pads.iter().flat_map(|pad| [pad.0 as u64, (pad.0 >> 64) as u64])
}
