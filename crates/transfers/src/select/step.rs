//! A layer that picks elements as a step of a plan.

use std::sync::Arc;

use lanner_primitives::{Ring, Share};
use lanner_step::{
    BoxedStep, Built, Client, Cost, CotSupply, Inputs, Known, Memory, ModelParts, Needs, OfflineCost,
    PartyState, ProtocolError, Result, Samples, Server, Sets, Spec, Step, StepCost, Value, ValueType, WORD,
    Work, kind,
};
use lanner_wire::{Channel, DecodeError, Reader, Writer};
use serde::{Deserialize, Serialize};

use super::places::{MAX_OPTIONS, Places};
use super::roles::{Choices, Drawn, Offers, Picks, Strings, offer};
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

    pub(super) fn places(&self) -> Result<Places> {
        Places::new([self.elements, self.outputs], self.bits, self.samples)
    }

    /// The layer as both parties know it.
    pub(super) fn layer(&self) -> Result<Layer> {
        Ok(Layer { places: self.places()?, picks: () })
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
        Ok(Box::new(self.layer()?))
    }
}

/// The layer as both parties know it, and as the server runs it with what it picks.
pub(super) struct Layer<P = ()> {
    pub(super) places: Places,
    pub(super) picks: P,
}

impl<P> Layer<P> {
    pub(super) fn check_input(&self, share: &Share) -> Result<()> {
        if (share.ring(), share.len()) == (Ring::Pow2(self.places.bits()), self.places.inputs()) {
            Ok(())
        } else {
            Err(ProtocolError::WrongInput("a share of a layer that picks elements"))
        }
    }
}

impl Layer {
    /// The layer as the server runs it.
    pub(super) fn with_picks(self, node: &str, model: &dyn ModelParts) -> Result<Layer<Arc<Picks>>> {
        let places = self.places;
        let weights = model.weights(node, places.picked())?;
        let make = || Picks::new(&places, weights.weight, weights.small_bias()?);
        let picks = model.shared().get_or(&("picks", node, &places), weights.weight, make)?;
        Ok(Layer { places, picks })
    }

    /// What the transfers that the client sends combine to.
    pub(super) fn request(&self, channel: &mut dyn Channel, client: &mut Client) -> Result<Strings> {
        let (transfers, _) = client.transfers()?;
        Strings::new(&mut Source::new(channel, transfers, true), &self.places)
    }

    /// The client's strings, by what the server says of its choices.
    pub(super) fn offer(
        &self,
        channel: &mut dyn Channel,
        client: &mut Client,
        strings: Strings,
    ) -> Result<Offers> {
        // S -> C: what it picks, under random choices
        let flips = channel.receive(kind::PRODUCTS, self.places.flips_len())?;
        let (transfers, _) = client.transfers()?;
        offer(&self.places, strings, transfers, &flips)
    }
}

impl Layer<Arc<Picks>> {
    /// The choices and strings of the transfers that the server receives.
    pub(super) fn request(&self, channel: &mut dyn Channel, server: &mut Server) -> Result<Drawn> {
        let (transfers, _) = server.transfers()?;
        Drawn::new(&mut Source::new(channel, transfers, false), &self.places)
    }

    /// Says what is picked, under the random choices.
    pub(super) fn choose(&self, channel: &mut dyn Channel, drawn: Drawn) -> Result<Choices> {
        let (flips, choices) = self.picks.choose(&self.places, drawn);
        // S -> C: what it picks, under random choices
        channel.send(kind::PRODUCTS, &flips)?;
        channel.flush()?;
        Ok(choices)
    }
}

impl Built for Layer {
    fn needs(&self) -> Result<Needs> {
        Ok(Needs { transfers: [self.places.transfers(), 0], ..Needs::default() })
    }

    fn cost(&self, supply: &mut CotSupply) -> Result<StepCost> {
        let request = supply.client(self.places.draws());
        let offline = OfflineCost { request, answer: Cost::NONE.server(self.places.flips_len()) };
        Ok(StepCost { offline, online: Cost::NONE.client(self.places.message_len()) })
    }

    fn memory(&self) -> Result<Memory> {
        let [picked, strings, elements] =
            [self.places.picked(), self.places.strings(), self.places.inputs() + self.places.outputs()]
                .map(|count| count as u64);
        // A string is a word of one sample, and a block of more.
        let string = if self.places.width() == 1 { WORD } else { 2 * WORD };
        // Values in both orders, and the message as it is made and on its way.
        let working = 2 * elements * WORD + 2 * self.places.message_len() as u64;
        Ok(Memory {
            // What is picked, ready to choose by, beside the model's own integers, and the biases.
            model: 2 * picked * WORD,
            client_material: strings * string,
            server_material: picked * string,
            working: working + picked * WORD,
            // Strings before they are hashed, too.
            client_working: working + 3 * picked * WORD,
            ..Memory::default()
        })
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        let pads = self.places.strings() * self.places.width();
        vec![("instances", pads as u64), ("transfers", self.places.transfers() as u64)]
    }

    fn client(self: Box<Self>, _: &str, _: &dyn ModelParts) -> BoxedStep<Client> {
        Ok(self)
    }

    fn server(self: Box<Self>, node: &str, model: &dyn ModelParts) -> BoxedStep<Server> {
        Ok(Box::new(self.with_picks(node, model)?))
    }
}

impl Step<Client> for Layer {
    type Request = Strings;
    type Material = Offers;

    fn request(&self, channel: &mut dyn Channel, client: &mut Client) -> Result<Strings> {
        self.request(channel, client)
    }

    fn prepare(
        &self,
        channel: &mut dyn Channel,
        client: &mut Client,
        strings: Strings,
        _: &Inputs,
    ) -> Result<(Offers, Option<Value>)> {
        Ok((self.offer(channel, client, strings)?, None))
    }

    fn encode(&self, material: &Offers, writer: &mut Writer) {
        material.encode(&self.places, writer);
    }

    fn decode(&self, reader: &mut Reader<'_>) -> Result<Offers, DecodeError> {
        Offers::decode(&self.places, reader)
    }

    fn online(&self, channel: &mut dyn Channel, material: Offers, inputs: &Inputs) -> Result<Value> {
        let share = inputs.share()?;
        self.check_input(share)?;
        let (message, made) = material.correct(&self.places, share)?;
        // C -> S: its elements under strings
        channel.send(kind::PRODUCTS, &message)?;
        channel.flush()?;
        Ok(Value::Shared(made))
    }
}

impl Step<Server> for Layer<Arc<Picks>> {
    type Request = Drawn;
    type Material = Choices;

    fn request(&self, channel: &mut dyn Channel, server: &mut Server) -> Result<Drawn> {
        self.request(channel, server)
    }

    fn prepare(
        &self,
        channel: &mut dyn Channel,
        _: &mut Server,
        drawn: Drawn,
        _: &Inputs,
    ) -> Result<(Choices, Option<Value>)> {
        Ok((self.choose(channel, drawn)?, None))
    }

    fn encode(&self, material: &Choices, writer: &mut Writer) {
        material.encode(&self.places, writer);
    }

    fn decode(&self, reader: &mut Reader<'_>) -> Result<Choices, DecodeError> {
        Choices::decode(&self.places, reader)
    }

    fn online(&self, channel: &mut dyn Channel, material: Choices, inputs: &Inputs) -> Result<Value> {
        let share = inputs.share()?;
        self.check_input(share)?;
        // C -> S: its elements under strings
        let message = channel.receive(kind::PRODUCTS, self.places.message_len())?;
        self.picks.answer(&self.places, &material, share, &message).map(Value::Shared)
    }
}
