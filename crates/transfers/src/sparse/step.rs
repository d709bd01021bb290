//! A block-diagonal layer as a step of a plan.

use std::sync::Arc;

use lanner_primitives::{Ring, Share};
use lanner_step::{
    BoxedStep, Built, Client, Convolution, Cost, CotSupply, Inputs, Known, Memory, ModelParts, Needs,
    OfflineCost, PartyState, ProtocolError, Result, Samples, Server, Sets, Spec, Step, StepCost, Value,
    ValueType, WORD, Work, kind,
};
use lanner_wire::{Channel, DecodeError, Reader, Writer};
use serde::{Deserialize, Serialize};

use super::places::{Places, is_block_diagonal};
use super::roles::{Choices, Matrices, Offers, offer};
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

    pub(super) fn places(&self) -> Result<Places> {
        Places::new(&self.shape, self.samples, [self.bits, self.weight_bits])
    }

    /// The layer as both parties know it.
    pub(super) fn layer(&self) -> Result<Layer> {
        Ok(Layer { places: self.places()?, matrices: () })
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
        Ok(Box::new(self.layer()?))
    }
}

/// The layer as both parties know it, and as the server runs it with its weights.
pub(super) struct Layer<M = ()> {
    pub(super) places: Places,
    pub(super) matrices: M,
}

impl<M> Layer<M> {
    pub(super) fn check_input(&self, share: &Share) -> Result<()> {
        if (share.ring(), share.len()) == (Ring::Pow2(self.places.bits()), self.places.inputs()) {
            Ok(())
        } else {
            Err(ProtocolError::WrongInput("a share of a layer of blocks"))
        }
    }
}

impl Layer {
    /// The layer as the server runs it.
    pub(super) fn with_weights(self, node: &str, model: &dyn ModelParts) -> Result<Layer<Arc<Matrices>>> {
        let places = self.places;
        let weights = model.weights(node, places.outputs_of_one())?;
        let make = || Matrices::new(&places, weights.weight, weights.small_bias()?);
        let matrices = model.shared().get_or(&("blocks", node, &places), weights.weight, make)?;
        Ok(Layer { places, matrices })
    }

    /// The keys of the transfers that the client sends.
    pub(super) fn request(&self, channel: &mut dyn Channel, client: &mut Client) -> Result<OfferedRows> {
        let (transfers, _) = client.transfers()?;
        OfferedRows::new(&mut Source::new(channel, transfers, true), self.places.transfers())
    }
}

impl Layer<Arc<Matrices>> {
    /// The choices and keys of the transfers that the server receives.
    pub(super) fn request(&self, channel: &mut dyn Channel, server: &mut Server) -> Result<ChosenRows> {
        let (transfers, _) = server.transfers()?;
        ChosenRows::new(&mut Source::new(channel, transfers, false), self.places.transfers())
    }
}

impl Built for Layer {
    fn needs(&self) -> Result<Needs> {
        Ok(Needs { transfers: [self.places.transfers(), 0], ..Needs::default() })
    }

    fn cost(&self, supply: &mut CotSupply) -> Result<StepCost> {
        let request = supply.client(parts(self.places.transfers()));
        let offline = OfflineCost { request, answer: Cost::NONE.server(self.places.flips_len()) };
        Ok(StepCost { offline, online: Cost::NONE.client(self.places.message_len()) })
    }

    fn memory(&self) -> Result<Memory> {
        let [numbers, transfers, products] =
            [self.places.numbers(), self.places.transfers(), self.places.products()]
                .map(|count| count as u64);
        let (elements, message) =
            ((self.places.inputs() + self.places.outputs()) as u64, self.places.message_len() as u64);
        // Products, values in both orders, and the message as it is made and on its way.
        let working = (products + 2 * elements) * WORD + 2 * message;
        Ok(Memory {
            // The weights, ready to multiply, beside the model's own integers, and the biases.
            model: (2 * numbers + self.places.outputs_of_one() as u64) * WORD,
            client_material: 4 * transfers * WORD,
            server_material: 2 * transfers * WORD,
            working: working + numbers * WORD,
            client_working: working,
            ..Memory::default()
        })
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        let pads = self.places.products() * self.places.weight_bits() as usize;
        vec![("instances", pads as u64), ("transfers", self.places.transfers() as u64)]
    }

    fn client(self: Box<Self>, _: &str, _: &dyn ModelParts) -> BoxedStep<Client> {
        Ok(self)
    }

    fn server(self: Box<Self>, node: &str, model: &dyn ModelParts) -> BoxedStep<Server> {
        Ok(Box::new(self.with_weights(node, model)?))
    }
}

impl Step<Client> for Layer {
    type Request = OfferedRows;
    type Material = Offers;

    fn request(&self, channel: &mut dyn Channel, client: &mut Client) -> Result<OfferedRows> {
        self.request(channel, client)
    }

    fn prepare(
        &self,
        channel: &mut dyn Channel,
        _: &mut Client,
        offered: OfferedRows,
        _: &Inputs,
    ) -> Result<(Offers, Option<Value>)> {
        // S -> C: the bits of its weights under random choices
        let flips = channel.receive(kind::PRODUCTS, self.places.flips_len())?;
        Ok((offer(&self.places, offered, &flips)?, None))
    }

    fn encode(&self, material: &Offers, writer: &mut Writer) {
        material.encode(writer);
    }

    fn decode(&self, reader: &mut Reader<'_>) -> Result<Offers, DecodeError> {
        Offers::decode(&self.places, reader)
    }

    fn online(&self, channel: &mut dyn Channel, material: Offers, inputs: &Inputs) -> Result<Value> {
        let share = inputs.share()?;
        self.check_input(share)?;
        let (message, made) = material.correct(&self.places, share)?;
        // C -> S: its elements under keys
        channel.send(kind::PRODUCTS, &message)?;
        channel.flush()?;
        Ok(Value::Shared(made))
    }
}

impl Step<Server> for Layer<Arc<Matrices>> {
    type Request = ChosenRows;
    type Material = Choices;

    fn request(&self, channel: &mut dyn Channel, server: &mut Server) -> Result<ChosenRows> {
        self.request(channel, server)
    }

    fn prepare(
        &self,
        channel: &mut dyn Channel,
        _: &mut Server,
        chosen: ChosenRows,
        _: &Inputs,
    ) -> Result<(Choices, Option<Value>)> {
        let (flips, choices) = self.matrices.choose(&self.places, chosen);
        // S -> C: the bits of its weights under random choices
        channel.send(kind::PRODUCTS, &flips)?;
        channel.flush()?;
        Ok((choices, None))
    }

    fn encode(&self, material: &Choices, writer: &mut Writer) {
        material.encode(writer);
    }

    fn decode(&self, reader: &mut Reader<'_>) -> Result<Choices, DecodeError> {
        Choices::decode(&self.places, reader)
    }

    fn online(&self, channel: &mut dyn Channel, material: Choices, inputs: &Inputs) -> Result<Value> {
        let share = inputs.share()?;
        self.check_input(share)?;
        // C -> S: its elements under keys
        let message = channel.receive(kind::PRODUCTS, self.places.message_len())?;
        self.matrices.answer(&self.places, &material, share, &message).map(Value::Shared)
    }
}
