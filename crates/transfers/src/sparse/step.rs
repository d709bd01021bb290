//! A block-diagonal layer as a step of a plan.

use std::sync::Arc;

use lanner_primitives::{Ring, Share};
use lanner_step::{
    Built, Convolution, Known, Memory, ModelParts, Result, Samples, Sets, Spec, Transfers, ValueType, WORD,
    Work,
};
use lanner_wire::{DecodeError, Reader, Writer};
use serde::{Deserialize, Serialize};

use super::places::{Places, is_block_diagonal};
use super::roles::{Choices, Matrices, Offers, offer};
use crate::by_choices::{ByChoices, FromChoices, Layer, Sides};
use crate::matrices::{ChosenRows, OfferedRows};
use crate::source::{Source, parts};

/// A linear layer whose kernel is one tap, in groups, over `Z_2^bits`: a block-diagonal matrix on each pixel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RingSparse {
    /// The layer's shape.
    pub shape: Convolution,
    /// The ring.
    pub bits: u32,
    /// Bits of a weight, with its sign.
    pub weight_bits: u32,
    /// Samples that share transfers.
    #[serde(default, skip_serializing_if = "Samples::is_one")]
    pub samples: Samples,
}

impl RingSparse {
    /// Whether a layer has such a shape.
    #[must_use]
    pub fn takes(shape: &Convolution) -> bool {
        is_block_diagonal(shape)
    }

    fn places(&self) -> Result<Places> {
        Places::new(&self.shape, self.samples, [self.bits, self.weight_bits])
    }
}

impl Spec for RingSparse {
    fn shape(&self) -> Option<&Convolution> {
        Some(&self.shape)
    }

    fn infer(&self, inputs: &[ValueType]) -> Result<ValueType> {
        let (places, ring) = (self.places()?, Ring::Pow2(self.bits));
        ValueType::only(inputs, ring, places.inputs())?;
        Ok(ValueType::shared(ring, places.outputs(), Known::NOBODY))
    }

    fn work(&self) -> Work {
        let products = self.places().map_or(u64::MAX, |places| places.products() as u64);
        Work { window_elements: products, ..Work::default() }
    }

    fn of_samples(&self, samples: Samples) -> Option<Self> {
        Some(Self { samples, ..self.clone() })
    }

    fn build(&self, _: &Sets) -> Result<Box<dyn Built>> {
        Ok(Box::new(Layer::new(self.places()?)))
    }
}

impl FromChoices for RingSparse {
    fn build_ahead(&self) -> Result<Box<dyn Built>> {
        Ok(Box::new(Layer::new(self.places()?).ahead()))
    }
}

impl ByChoices for Places {
    type Offered = OfferedRows;
    type Offers = Offers;
    type Drawn = ChosenRows;
    type Choices = Choices;
    type Weights = Matrices;

    fn sides(&self) -> Sides {
        Sides { inputs: self.inputs(), outputs: self.outputs(), bits: self.bits() }
    }

    fn draws(&self) -> Vec<usize> {
        parts(self.transfers()).collect()
    }

    fn flips_len(&self) -> usize {
        self.flips_len()
    }

    fn message_len(&self) -> usize {
        self.message_len()
    }

    fn memory(&self) -> Memory {
        let [numbers, transfers, products] =
            [self.numbers(), self.transfers(), self.products()].map(|count| count as u64);
        let (elements, message) = ((self.inputs() + self.outputs()) as u64, self.message_len() as u64);
        // Products, values in both orders, and the message as it is made and on its way.
        let working = (products + 2 * elements) * WORD + 2 * message;
        Memory {
            // The weights, ready to multiply, beside the model's own integers, and the biases.
            model: (2 * numbers + self.outputs_of_one() as u64) * WORD,
            client_material: 4 * transfers * WORD,
            server_material: 2 * transfers * WORD,
            working: working + numbers * WORD,
            client_working: working,
            ..Memory::default()
        }
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        let pads = self.products() * self.weight_bits() as usize;
        vec![("instances", pads as u64), ("transfers", self.transfers() as u64)]
    }

    fn weights(&self, node: &str, model: &dyn ModelParts) -> Result<Arc<Matrices>> {
        let weights = model.weights(node, self.outputs_of_one())?;
        let make = || Matrices::new(self, weights.weight, weights.small_bias()?);
        model.shared().get_or(&("blocks", node, self), weights.weight, make)
    }

    fn offered(&self, source: &mut Source<'_>) -> Result<OfferedRows> {
        OfferedRows::new(source, self.transfers())
    }

    fn offer(&self, offered: OfferedRows, _: &Transfers, flips: &[u8]) -> Result<Offers> {
        offer(self, offered, flips)
    }

    fn correct(&self, offers: &Offers, share: &Share) -> Result<(Vec<u8>, Share)> {
        offers.correct(self, share)
    }

    fn encode_offers(&self, offers: &Offers, writer: &mut Writer) {
        offers.encode(writer);
    }

    fn decode_offers(&self, reader: &mut Reader<'_>) -> Result<Offers, DecodeError> {
        Offers::decode(self, reader)
    }

    fn drawn(&self, source: &mut Source<'_>) -> Result<ChosenRows> {
        ChosenRows::new(source, self.transfers())
    }

    fn choose(&self, matrices: &Matrices, chosen: ChosenRows) -> (Vec<u8>, Choices) {
        matrices.choose(self, chosen)
    }

    fn answer(&self, matrices: &Matrices, choices: &Choices, share: &Share, message: &[u8]) -> Result<Share> {
        matrices.answer(self, choices, share, message)
    }

    fn apply(&self, matrices: &Matrices, values: &Share) -> Result<Share> {
        matrices.apply(self, values)
    }

    fn encode_choices(&self, choices: &Choices, writer: &mut Writer) {
        choices.encode(writer);
    }

    fn decode_choices(&self, reader: &mut Reader<'_>) -> Result<Choices, DecodeError> {
        Choices::decode(self, reader)
    }
}
