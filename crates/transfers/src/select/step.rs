//! A layer that picks elements as a step of a plan.

use std::sync::Arc;

use lanner_primitives::{Ring, Share};
use lanner_step::{
    Built, Known, Memory, ModelParts, Result, Samples, Sets, Spec, Transfers, ValueType, WORD, Work,
};
use lanner_wire::{DecodeError, Reader, Writer};
use serde::{Deserialize, Serialize};

use super::places::{MAX_OPTIONS, Places};
use super::roles::{Choices, Drawn, Offers, Picks, Strings, offer};
use crate::by_choices::{ByChoices, FromChoices, Layer, Sides};
use crate::source::Source;

/// A linear layer over `Z_2^bits` each row of whose weights has a single 1: of a vector it picks an element for each output, and adds the bias.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RingSelect {
    /// Elements of a sample, from 2 up to 1,024.
    pub elements: usize,
    /// Elements that are picked of each sample.
    pub outputs: usize,
    /// The ring.
    pub bits: u32,
    /// Samples that share transfers.
    #[serde(default, skip_serializing_if = "Samples::is_one")]
    pub samples: Samples,
}

impl RingSelect {
    /// Whether elements may be picked of so many.
    #[must_use]
    pub fn takes(inputs: usize) -> bool {
        (2..=MAX_OPTIONS).contains(&inputs)
    }

    fn places(&self) -> Result<Places> {
        Places::new([self.elements, self.outputs], self.bits, self.samples)
    }
}

impl Spec for RingSelect {
    fn infer(&self, inputs: &[ValueType]) -> Result<ValueType> {
        let (places, ring) = (self.places()?, Ring::Pow2(self.bits));
        ValueType::only(inputs, ring, places.inputs())?;
        Ok(ValueType::shared(ring, places.outputs(), Known::NOBODY))
    }

    fn work(&self) -> Work {
        let sides = [self.elements, self.outputs, self.samples.count()];
        let strings = sides.into_iter().fold(1_u64, |all, side| all.saturating_mul(side as u64));
        Work { window_elements: strings, ..Work::default() }
    }

    fn of_samples(&self, samples: Samples) -> Option<Self> {
        Some(Self { samples, ..self.clone() })
    }

    fn build(&self, _: &Sets) -> Result<Box<dyn Built>> {
        Ok(Box::new(Layer::new(self.places()?)))
    }
}

impl FromChoices for RingSelect {
    fn build_ahead(&self) -> Result<Box<dyn Built>> {
        Ok(Box::new(Layer::new(self.places()?).ahead()))
    }
}

impl ByChoices for Places {
    type Offered = Strings;
    type Offers = Offers;
    type Drawn = Drawn;
    type Choices = Choices;
    type Weights = Picks;

    fn sides(&self) -> Sides {
        Sides { inputs: self.inputs(), outputs: self.outputs(), bits: self.bits() }
    }

    fn draws(&self) -> Vec<usize> {
        self.draws().collect()
    }

    fn flips_len(&self) -> usize {
        self.flips_len()
    }

    fn message_len(&self) -> usize {
        self.message_len()
    }

    fn memory(&self) -> Memory {
        let [picked, strings, elements] =
            [self.picked(), self.strings(), self.inputs() + self.outputs()].map(|count| count as u64);
        // A string is a word of one sample, and a block of more.
        let string = if self.width() == 1 { WORD } else { 2 * WORD };
        // Values in both orders, and the message as it is made and on its way.
        let working = 2 * elements * WORD + 2 * self.message_len() as u64;
        Memory {
            // What is picked, ready to choose by, beside the model's own integers, and the biases.
            model: 2 * picked * WORD,
            client_material: strings * string,
            server_material: picked * string,
            working: working + picked * WORD,
            // Strings before they are hashed, too.
            client_working: working + 3 * picked * WORD,
            ..Memory::default()
        }
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        let pads = self.strings() * self.width();
        vec![("instances", pads as u64), ("transfers", self.transfers() as u64)]
    }

    fn weights(&self, node: &str, model: &dyn ModelParts) -> Result<Arc<Picks>> {
        let weights = model.weights(node, self.picked())?;
        let make = || Picks::new(self, weights.weight, weights.small_bias()?);
        model.shared().get_or(&("picks", node, self), weights.weight, make)
    }

    fn offered(&self, source: &mut Source<'_>) -> Result<Strings> {
        Strings::new(source, self)
    }

    fn offer(&self, strings: Strings, transfers: &Transfers, flips: &[u8]) -> Result<Offers> {
        offer(self, strings, transfers, flips)
    }

    fn correct(&self, offers: &Offers, share: &Share) -> Result<(Vec<u8>, Share)> {
        offers.correct(self, share)
    }

    fn encode_offers(&self, offers: &Offers, writer: &mut Writer) {
        offers.encode(self, writer);
    }

    fn decode_offers(&self, reader: &mut Reader<'_>) -> Result<Offers, DecodeError> {
        Offers::decode(self, reader)
    }

    fn drawn(&self, source: &mut Source<'_>) -> Result<Drawn> {
        Drawn::new(source, self)
    }

    fn choose(&self, picks: &Picks, drawn: Drawn) -> (Vec<u8>, Choices) {
        picks.choose(self, drawn)
    }

    fn answer(&self, picks: &Picks, choices: &Choices, share: &Share, message: &[u8]) -> Result<Share> {
        picks.answer(self, choices, share, message)
    }

    fn apply(&self, picks: &Picks, values: &Share) -> Result<Share> {
        picks.apply(self, values)
    }

    fn encode_choices(&self, choices: &Choices, writer: &mut Writer) {
        choices.encode(self, writer);
    }

    fn decode_choices(&self, reader: &mut Reader<'_>) -> Result<Choices, DecodeError> {
        Choices::decode(self, reader)
    }
}
