//! What each party computes of the products.

use lanner_primitives::{Block, Ring, Share, parallel};
use lanner_step::{ProtocolError, Result, Weights};
use lanner_wire::{ChannelError, pack_bits, pack_bits_to, packed_len, unpack_bits};
use zeroize::Zeroizing;

use super::places::Places;
use crate::lanes::{Values, bit, mask};
use crate::matrices::{ChosenRows, OfferedRows, fill, row, value};

/// A layer's weights, modulo the ring's power of two: comparison by comparison those that it chooses, and a bias for each output of one sample.
pub(super) struct Matrices {
    weights: Values,
    bias: Values,
}

impl Matrices {
    /// From the model's integers.
    ///
    /// # Errors
    /// [`ProtocolError::WrongModel`] if there are too few or many, or a bias has more than 64 bits.
    pub(super) fn new(places: &Places, weights: &Weights<'_>) -> Result<Self> {
        let bias = Zeroizing::new(weights.small_bias()?);
        if weights.weight.len() != places.weights() || bias.len() != places.outputs_of_one() {
            return Err(ProtocolError::WrongModel("weights of a layer that comparisons choose"));
        }
        let width = places.width();
        let of_place = |place: usize| weights.weight[places.weight(place / width, place % width)];
        let reduced = |x: i64| x as u64 & mask(places.bits());
        let weights = (0..places.weights()).map(|place| reduced(of_place(place))).collect();
        let bias = bias.iter().map(|bias| reduced(*bias)).collect();
        Ok(Self { weights: Zeroizing::new(weights), bias: Zeroizing::new(bias) })
    }

    /// Online: what the server says, and its share, from its shares of the comparisons and what the client said.
    ///
    /// # Errors
    /// [`ProtocolError::Channel`] if there is padding that is not zero.
    pub(super) fn correct(
        &self,
        places: &Places,
        OfferedRows(keys): &OfferedRows,
        bits: &Share,
        flips: &[u8],
    ) -> Result<(Vec<u8>, Share)> {
        let flips = unpack_bits(flips, places.choices(), 1).map_err(ChannelError::from)?;
        let (width, at_once) = (places.width(), places.at_once());
        let mut message = vec![0; places.message_len()];
        let mut products = Zeroizing::new(vec![0_u64; places.products()]);
        let operands = keys.chunks(at_once).zip(flips.chunks(at_once)).zip(bits.values().chunks(at_once));
        let bytes = message.chunks_mut(packed_len(at_once * width, places.bits()));
        let made = bytes.zip(products.chunks_mut(at_once * width)).zip((0..).step_by(at_once));
        parallel::for_each(made.zip(operands), |(((bytes, products), first), ((keys, flips), bits))| {
            let (mut zeros, mut ones) = (row(width), row(width));
            let mut corrections = Zeroizing::new(Vec::with_capacity(products.len()));
            let rows = products.chunks_exact_mut(width).zip((first..).map(|choice| self.row(places, choice)));
            for (((products, weights), bit), (keys, flip)) in rows.zip(bits).zip(keys.iter().zip(flips)) {
                // Or a compiler that knows the mask for one of two would branch on it.
                let negated = std::hint::black_box(*bit).wrapping_neg();
                let swap = (keys[0] ^ keys[1]) & Block::mask(*flip == 1);
                fill(keys[0] ^ swap, &mut zeros);
                fill(keys[1] ^ swap, &mut ones);
                for (place, (product, weight)) in products.iter_mut().zip(weights).enumerate() {
                    let (zero, one) = (value(&zeros, place), value(&ones, place));
                    let offer = (weight ^ negated).wrapping_sub(negated);
                    corrections.push(offer.wrapping_add(zero).wrapping_sub(one));
                    *product = (weight & negated).wrapping_sub(zero);
                }
            }
            pack_bits_to(&corrections, places.bits(), bytes);
        });
        Ok((message, summed(places, &products, &self.bias)?))
    }

    /// The weights that a comparison chooses, which all samples have the same.
    fn row(&self, places: &Places, choice: usize) -> &[u64] {
        let start = choice * places.width() % places.weights();
        &self.weights[start..start + places.width()]
    }
}

/// Online: what the client says of its shares of the comparisons.
pub(super) fn choose(chosen: &ChosenRows, bits: &Share) -> Vec<u8> {
    let flips = bits.values().iter().zip(0..).map(|(choice, i)| choice ^ bit(&chosen.random, i));
    pack_bits(&flips.collect::<Vec<_>>(), 1)
}

/// Online: the client's share, from its shares of the comparisons and what the server said.
///
/// # Errors
/// [`ProtocolError::Channel`] if there is padding that is not zero.
pub(super) fn take(places: &Places, chosen: &ChosenRows, bits: &Share, message: &[u8]) -> Result<Share> {
    let (width, at_once) = (places.width(), places.at_once());
    let mut products = Zeroizing::new(vec![0_u64; places.products()]);
    let operands = chosen.keys.chunks(at_once).zip(bits.values().chunks(at_once));
    let bytes = message.chunks(packed_len(at_once * width, places.bits()));
    let made = products.chunks_mut(at_once * width).zip(bytes);
    let taken = parallel::map(made.zip(operands), |((products, bytes), (keys, bits))| -> Result<()> {
        let corrections = unpack_bits(bytes, products.len(), places.bits()).map_err(ChannelError::from)?;
        let mut stretched = row(width);
        let rows = products.chunks_exact_mut(width).zip(corrections.chunks_exact(width));
        for ((products, corrections), (key, bit)) in rows.zip(keys.iter().zip(bits)) {
            // As above.
            let choice = std::hint::black_box(*bit).wrapping_neg();
            fill(*key, &mut stretched);
            for (place, (product, correction)) in products.iter_mut().zip(corrections).enumerate() {
                *product = value(&stretched, place).wrapping_add(correction & choice);
            }
        }
        Ok(())
    });
    taken.into_iter().collect::<Result<()>>()?;
    summed(places, &products, &[0])
}

/// The sums of products, and biases that repeat.
fn summed(places: &Places, products: &Values, bias: &[u64]) -> Result<Share> {
    let mut sums: Vec<u64> = bias.iter().copied().cycle().take(places.outputs()).collect();
    for (choice, products) in products.chunks_exact(places.width()).enumerate() {
        for (sum, product) in sums[places.output(choice)..].iter_mut().zip(products) {
            *sum = sum.wrapping_add(*product);
        }
    }
    for sum in &mut sums {
        *sum &= mask(places.bits());
    }
    Ok(Share::new(Ring::Pow2(places.bits()), sums)?)
}
