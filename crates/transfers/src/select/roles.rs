//! What each party computes of the layer.

use lanner_ot::CorrelatedSender;
use lanner_primitives::{Block, Ring, Share, parallel};
use lanner_step::{ProtocolError, Result, Transfers};
use lanner_wire::{ChannelError, DecodeError, Reader, Writer, pack_bits, pack_bits_to, unpack_bits};
use zeroize::{ZeroizeOnDrop, Zeroizing};

use super::pads::{Pads, Words};
use super::places::Places;
use crate::lanes::{Values, mask};
use crate::leaf::add_choices;
use crate::lookup::choose;
use crate::source::{Joint, Source, multiples};

/// What the client's transfers combine to, draw by draw.
pub(super) struct Strings(Vec<Joint>);

/// The client's strings: of each output one for each element, in order.
pub(super) struct Offers(Pads);

/// The server's random choices, and the string of each.
pub(super) struct Drawn {
    random: Values,
    pads: Pads,
}

/// The server's string of each output, that of the element that it picks.
pub(super) struct Choices(Pads);

/// What the server picks, and what it adds.
pub(super) struct Picks {
    elements: Values,
    bias: Zeroizing<Vec<i64>>,
}

impl ZeroizeOnDrop for Offers {}

impl ZeroizeOnDrop for Drawn {}

impl ZeroizeOnDrop for Choices {}

impl ZeroizeOnDrop for Picks {}

impl Strings {
    pub(super) fn new(source: &mut Source<'_>, places: &Places) -> Result<Self> {
        let width = places.choice_bits() as usize;
        let draw = |count| Ok(source.draw(count)?.joint(width));
        places.draws().map(draw).collect::<Result<_>>().map(Self)
    }
}

impl Drawn {
    pub(super) fn new(source: &mut Source<'_>, places: &Places) -> Result<Self> {
        let width = places.choice_bits() as usize;
        let mut random = Zeroizing::new(vec![0; places.picked()]);
        let mut pads = Pads::zeros(places, places.picked());
        let mut parts = pads.parts(AT_ONCE);
        let mut rest = random.as_mut_slice();
        for outputs in places.drawn() {
            let part = source.draw(outputs * width)?;
            // Draws are whole numbers of parts, but for the last.
            let tasks = (0..outputs).step_by(AT_ONCE).zip(&mut parts);
            parallel::for_each(tasks, |(start, mut pads)| {
                let values = start..outputs.min(start + AT_ONCE);
                part.joint_hashes(width, &[Block::ZERO], 0, values, |place, hashes| {
                    pads.put(places, place, hashes);
                });
            });
            let (random, behind) = rest.split_at_mut(outputs);
            rest = behind;
            for (bit, shift) in (0..width).zip(0..) {
                add_choices(&part, bit * outputs, shift, random);
            }
        }
        drop(parts);
        Ok(Self { random, pads })
    }
}

impl Picks {
    /// From the weights, a row for each output of one sample, and what is added to each.
    ///
    /// # Errors
    /// [`ProtocolError::WrongModel`] if there are too few or many, or a row is not a single 1 and zeros.
    pub(super) fn new(places: &Places, weights: &[i64], bias: Vec<i64>) -> Result<Self> {
        let error = ProtocolError::WrongModel("weights of a layer that picks elements");
        if weights.len() != places.strings() || bias.len() != places.picked() {
            return Err(error);
        }
        let rows = || weights.chunks_exact(places.options());
        let picks_one = |row: &[i64]| row.iter().all(|w| matches!(w, 0 | 1)) && row.iter().sum::<i64>() == 1;
        if !rows().all(picks_one) {
            return Err(error);
        }
        let element = |row: &[i64]| row.iter().zip(0..).map(|(w, at)| *w as u64 * at).sum();
        Ok(Self { elements: Zeroizing::new(rows().map(element).collect()), bias: Zeroizing::new(bias) })
    }

    /// Offline: what the server says of what it picks, and what it keeps.
    pub(super) fn choose(&self, places: &Places, drawn: Drawn) -> (Vec<u8>, Choices) {
        let Drawn { random, pads } = drawn;
        let flips: Vec<u64> = self.elements.iter().zip(random.iter()).map(|(f, r)| f ^ r).collect();
        (pack_bits(&flips, places.choice_bits()), Choices(pads))
    }

    /// Online: the server's share, from its share of the input and what the client sent.
    ///
    /// # Errors
    /// [`ProtocolError::Channel`] if there is padding that is not zero.
    pub(super) fn answer(
        &self,
        places: &Places,
        Choices(pads): &Choices,
        share: &Share,
        message: &[u8],
    ) -> Result<Share> {
        let (at_once, width, options) = (places.at_once(), places.width(), places.options());
        let mut made = self.picked(places, share);
        let rows = made.chunks_mut(at_once * width).zip(message.chunks(places.packed(at_once)));
        let tasks = rows.zip(self.elements.chunks(at_once)).zip((0..).step_by(at_once));
        let added = parallel::map(tasks, |(((made, bytes), elements), first)| -> Result<()> {
            let count = elements.len() * places.differences();
            let differences = unpack_bits(bytes, count, places.bits()).map_err(ChannelError::from)?;
            let mut words = Words::new(places);
            let rows = made.chunks_exact_mut(width).zip(differences.chunks_exact(places.differences()));
            for ((made, differences), (element, place)) in rows.zip(elements.iter().zip(first..)) {
                pads.fill(place, (place * options) as u64 + element, &mut words);
                for ((made, differences), word) in
                    made.iter_mut().zip(differences.chunks_exact(options - 1)).zip(words.get())
                {
                    // The first has none: no place is that of 0 less 1.
                    let chosen = choose(differences, element.wrapping_sub(1));
                    *made = made.wrapping_add(chosen).wrapping_add(*word);
                }
            }
            Ok(())
        });
        added.into_iter().collect::<Result<()>>()?;
        for (row, bias) in made.chunks_exact_mut(width).zip(self.bias.iter()) {
            for value in row {
                *value = value.wrapping_add(*bias as u64);
            }
        }
        by_sample(places, &made)
    }

    /// What is picked of plain values, without what is added.
    ///
    /// # Errors
    /// None for a share of the layer's input.
    pub(super) fn apply(&self, places: &Places, values: &Share) -> Result<Share> {
        by_sample(places, &self.picked(places, values))
    }

    /// What is picked of this party's elements, output by output of all samples.
    fn picked(&self, places: &Places, share: &Share) -> Values {
        let mut made = Zeroizing::new(vec![0; places.outputs()]);
        let tasks = made.chunks_mut(AT_ONCE * places.width()).zip(self.elements.chunks(AT_ONCE));
        parallel::for_each(tasks, |(made, elements)| {
            for (row, element) in made.chunks_exact_mut(places.width()).zip(elements) {
                for (value, sample) in row.iter_mut().zip(share.values().chunks_exact(places.options())) {
                    *value = choose(sample, *element);
                }
            }
        });
        made
    }
}

/// Offline: what the client keeps, given what the server said.
///
/// # Errors
/// [`ProtocolError::Channel`] if that has padding that is not zero.
pub(super) fn offer(
    places: &Places,
    Strings(draws): Strings,
    transfers: &Transfers,
    flips: &[u8],
) -> Result<Offers> {
    let flips = unpack_bits(flips, places.picked(), places.choice_bits()).map_err(ChannelError::from)?;
    let offsets = multiples(transfers.sender.delta(), places.choice_bits());
    let mut pads = Pads::zeros(places, places.strings());
    let mut parts = pads.parts(AT_ONCE * places.options());
    let mut rest = flips.as_slice();
    for mut joint in draws {
        let outputs = joint.len();
        let (flips, behind) = rest.split_at(outputs);
        rest = behind;
        joint.add(flips.iter().map(|flip| offsets[*flip as usize]));
        let tasks = (0..outputs).step_by(AT_ONCE).zip(&mut parts);
        parallel::for_each(tasks, |(start, mut pads)| {
            let (values, offsets) = (start..outputs.min(start + AT_ONCE), &offsets[..places.options()]);
            joint.hashes(transfers.sender.hashes(), offsets, values, |place, hashes| {
                pads.put(places, place, hashes);
            });
        });
    }
    drop(parts);
    Ok(Offers(pads))
}

impl Offers {
    /// Online: what the client sends, and its share, from its share of the input.
    ///
    /// # Errors
    /// None for a share of the layer's input.
    pub(super) fn correct(&self, places: &Places, share: &Share) -> Result<(Vec<u8>, Share)> {
        let (at_once, width, options) = (places.at_once(), places.width(), places.options());
        let mut message = vec![0; places.message_len()];
        let mut made = Zeroizing::new(vec![0_u64; places.outputs()]);
        let rows = made.chunks_mut(at_once * width).zip(message.chunks_mut(places.packed(at_once)));
        parallel::for_each(rows.zip((0..).step_by(at_once)), |((made, bytes), first)| {
            let (mut words, mut all) = (Words::new(places), Zeroizing::new(vec![0; options * width]));
            let count = made.len() * (options - 1);
            let mut differences = Zeroizing::new(Vec::with_capacity(count));
            for (made, output) in made.chunks_exact_mut(width).zip(first..) {
                self.0.fill_all(output * options..(output + 1) * options, &mut words, &mut all);
                let samples = share.values().chunks_exact(options).zip(all.chunks_exact(options));
                for (made, (elements, words)) in made.iter_mut().zip(samples) {
                    *made = elements[0].wrapping_sub(words[0]);
                    let others = elements.iter().zip(words).skip(1);
                    differences.extend(others.map(|(x, word)| x.wrapping_sub(*word).wrapping_sub(*made)));
                }
            }
            pack_bits_to(&differences, places.bits(), bytes);
        });
        Ok((message, by_sample(places, &made)?))
    }

    pub(super) fn encode(&self, places: &Places, writer: &mut Writer) {
        self.0.encode(places, writer);
    }

    pub(super) fn decode(places: &Places, reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Pads::decode(places, places.strings(), reader).map(Self)
    }
}

impl Choices {
    pub(super) fn encode(&self, places: &Places, writer: &mut Writer) {
        self.0.encode(places, writer);
    }

    pub(super) fn decode(places: &Places, reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Pads::decode(places, places.picked(), reader).map(Self)
    }
}

/// Values, output by output of all samples, as a share, sample by sample.
fn by_sample(places: &Places, made: &Values) -> Result<Share> {
    let of_sample = |sample: usize| made.iter().skip(sample).step_by(places.width());
    let reduced = (0..places.width()).flat_map(of_sample).map(|value| value & mask(places.bits()));
    Ok(Share::new(Ring::Pow2(places.bits()), reduced.collect())?)
}

/// Outputs of one item of work: a draw has a whole number of them.
const AT_ONCE: usize = 1 << 8;
