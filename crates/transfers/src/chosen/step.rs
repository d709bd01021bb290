//! The step function and the layer behind it as a step of a plan.

use std::sync::Arc;

use lanner_primitives::{Ring, Share};
use lanner_step::{
    BoxedStep, Built, Client, Convolution, CotSupply, Inputs, Known, Memory, ModelParts, Needs, OfflineCost,
    Party, PartyState, ProtocolError, Result, Samples, Server, Sets, Spec, Step, StepCost, Value, ValueType,
    WORD, Work, kind,
};
use lanner_wire::{Channel, DecodeError, Reader, Writer};
use serde::{Deserialize, Serialize};

use super::places::{Places, is_of_vector};
use super::roles::{Matrices, choose, take};
use super::signs::Signs;
use crate::matrices::{ChosenRows, OfferedRows};
use crate::source::{Source, parts};
use crate::{Material, Request};

/// `[x >= 1]` of each element over `Z_2^from`, and a linear layer of those bits over `Z_2^to`: a product with a vector, of one matrix or of one in each group.
///
/// It is right for all values but the lowest of the ring: `|x|` at most `2^(from - 1) - 1`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RingChosen {
    /// The layer's shape.
    pub shape: Convolution,
    /// Bits of the ring of the input.
    pub from: u32,
    /// Bits of the ring of the output.
    pub to: u32,
    /// Samples.
    #[serde(default, skip_serializing_if = "Samples::is_one")]
    pub samples: Samples,
}

impl RingChosen {
    /// Whether a layer has such a shape.
    #[must_use]
    pub fn takes(shape: &Convolution) -> bool {
        is_of_vector(shape)
    }

    fn places(&self) -> Result<Places> {
        Places::new(&self.shape, self.samples, self.to)
    }
}

impl Spec for RingChosen {
    fn shape(&self) -> Option<&Convolution> {
        Some(&self.shape)
    }

    fn infer(&self, inputs: &[ValueType]) -> Result<ValueType> {
        let places = self.places()?;
        ValueType::only(inputs, Ring::Pow2(self.from), places.choices())?;
        Ok(ValueType::shared(Ring::Pow2(self.to), places.outputs(), Known::NOBODY))
    }

    fn work(&self) -> Work {
        let products = self.places().map_or(u64::MAX, |places| places.products() as u64);
        Work { window_elements: products, ..Work::default() }
    }

    fn of_samples(&self, samples: Samples) -> Option<Self> {
        Some(Self { samples, ..self.clone() })
    }

    fn build(&self, _: &Sets) -> Result<Box<dyn Built>> {
        let (places, from) = (self.places()?, self.from);
        ProtocolError::refuse_if(!(2..=62).contains(&from), "bits of values that are compared")?;
        let signs = crate::Layer::of(Signs { from }, places.choices(), from, 1)?;
        Ok(Box::new(Layer { signs, places, matrices: () }))
    }
}

/// The comparisons and the layer as both parties know them, and as the server runs them with its weights.
struct Layer<M = ()> {
    signs: crate::Layer<Signs>,
    places: Places,
    matrices: M,
}

/// One party's material: that of the comparisons, and keys.
struct Kept<K> {
    signs: Material,
    keys: K,
}

impl<M> Layer<M> {
    /// The first half of the preparation of the comparisons; the client sends no other transfers.
    fn request<P: PartyState>(&self, channel: &mut dyn Channel, party: &mut P) -> Result<Request> {
        let (transfers, _) = party.transfers()?;
        self.signs.request(channel, transfers)
    }

    /// The material, with the keys that `draw` makes of so many transfers of the server's.
    fn prepare<P: PartyState, K>(
        &self,
        channel: &mut dyn Channel,
        party: &mut P,
        request: Request,
        draw: impl FnOnce(&mut Source<'_>, usize) -> Result<K>,
    ) -> Result<Kept<K>> {
        let (transfers, rng) = party.transfers()?;
        let signs = self.signs.prepare(channel, transfers, request, rng)?;
        let mut source = Source::new(channel, transfers, P::PARTY == Party::Server);
        Ok(Kept { signs, keys: draw(&mut source, self.places.choices())? })
    }

    fn decode<K>(
        &self,
        reader: &mut Reader<'_>,
        party: Party,
        keys: impl FnOnce(&mut Reader<'_>, usize) -> Result<K, DecodeError>,
    ) -> Result<Kept<K>, DecodeError> {
        let signs = Material::decode(reader, &self.signs, party)?;
        Ok(Kept { signs, keys: keys(reader, self.places.choices())? })
    }

    /// This party's shares of the comparisons.
    fn compare(
        &self,
        channel: &mut dyn Channel,
        party: Party,
        material: Material,
        inputs: &Inputs,
    ) -> Result<Share> {
        self.signs.online(channel, party, material, &[inputs.share()?])
    }
}

impl Built for Layer {
    fn needs(&self) -> Result<Needs> {
        let [client, server] = [Party::Client, Party::Server].map(|party| self.signs.transfers(party));
        let transfers = [client, server + self.places.choices()];
        Ok(Needs { transfers, stretched_keys: true, ..Needs::default() })
    }

    fn cost(&self, supply: &mut CotSupply) -> Result<StepCost> {
        let OfflineCost { request, answer } = self.signs.offline_cost(supply);
        let offline =
            OfflineCost { request, answer: answer.then(supply.server(parts(self.places.choices()))) };
        let online = self.signs.online_cost();
        let online = online.client(self.places.flips_len()).server(self.places.message_len());
        Ok(StepCost { offline, online })
    }

    fn memory(&self) -> Result<Memory> {
        let held = |party| self.signs.held(party);
        let [weights, choices, products, outputs] =
            [self.places.weights(), self.places.choices(), self.places.products(), self.places.outputs()]
                .map(|count| count as u64);
        // Bits and what is said of them, products and sums, and the message as it is made and on its way.
        let of_products = (2 * choices + products + outputs) * WORD + 2 * self.places.message_len() as u64;
        let working = of_products.max(self.signs.working_on(0));
        Ok(Memory {
            model: (weights + self.places.outputs_of_one() as u64) * WORD,
            // A key of two words and a bit, and two keys.
            client_material: held(Party::Client) + (2 * choices + choices.div_ceil(64)) * WORD,
            server_material: held(Party::Server) + 4 * choices * WORD,
            working,
            client_working: working,
            ..Memory::default()
        })
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        let [client, server] = [Party::Client, Party::Server].map(|party| self.signs.transfers(party));
        let transfers = client + server + self.places.choices();
        vec![("instances", self.places.products() as u64), ("transfers", transfers as u64)]
    }

    fn client(self: Box<Self>, _: &str, _: &dyn ModelParts) -> BoxedStep<Client> {
        Ok(self)
    }

    fn server(self: Box<Self>, node: &str, model: &dyn ModelParts) -> BoxedStep<Server> {
        let Self { signs, places, .. } = *self;
        let weights = model.weights(node, places.outputs_of_one())?;
        let make = || Matrices::new(&places, &weights);
        let matrices = model.shared().get_or(&("chosen", node, &places), weights.weight, make)?;
        Ok(Box::new(Layer { signs, places, matrices }))
    }
}

impl Step<Client> for Layer {
    type Request = Request;
    type Material = Kept<ChosenRows>;

    fn request(&self, channel: &mut dyn Channel, client: &mut Client) -> Result<Request> {
        self.request(channel, client)
    }

    fn prepare(
        &self,
        channel: &mut dyn Channel,
        client: &mut Client,
        request: Request,
        _: &Inputs,
    ) -> Result<(Kept<ChosenRows>, Option<Value>)> {
        Ok((self.prepare(channel, client, request, ChosenRows::new)?, None))
    }

    fn encode(&self, Kept { signs, keys }: &Kept<ChosenRows>, writer: &mut Writer) {
        signs.encode(writer);
        keys.encode(writer);
    }

    fn decode(&self, reader: &mut Reader<'_>) -> Result<Kept<ChosenRows>, DecodeError> {
        self.decode(reader, Party::Client, ChosenRows::decode)
    }

    fn online(
        &self,
        channel: &mut dyn Channel,
        material: Kept<ChosenRows>,
        inputs: &Inputs,
    ) -> Result<Value> {
        let Kept { signs, keys } = material;
        let bits = self.compare(channel, Party::Client, signs, inputs)?;
        // C -> S: its bits under random choices
        channel.send(kind::PRODUCTS, &choose(&keys, &bits))?;
        channel.flush()?;
        // S -> C: weights under keys
        let message = channel.receive(kind::PRODUCTS, self.places.message_len())?;
        take(&self.places, &keys, &bits, &message).map(Value::Shared)
    }
}

impl Step<Server> for Layer<Arc<Matrices>> {
    type Request = Request;
    type Material = Kept<OfferedRows>;

    fn request(&self, channel: &mut dyn Channel, server: &mut Server) -> Result<Request> {
        self.request(channel, server)
    }

    fn prepare(
        &self,
        channel: &mut dyn Channel,
        server: &mut Server,
        request: Request,
        _: &Inputs,
    ) -> Result<(Kept<OfferedRows>, Option<Value>)> {
        Ok((self.prepare(channel, server, request, OfferedRows::new)?, None))
    }

    fn encode(&self, Kept { signs, keys }: &Kept<OfferedRows>, writer: &mut Writer) {
        signs.encode(writer);
        keys.encode(writer);
    }

    fn decode(&self, reader: &mut Reader<'_>) -> Result<Kept<OfferedRows>, DecodeError> {
        self.decode(reader, Party::Server, OfferedRows::decode)
    }

    fn online(
        &self,
        channel: &mut dyn Channel,
        material: Kept<OfferedRows>,
        inputs: &Inputs,
    ) -> Result<Value> {
        let (Kept { signs, keys }, places) = (material, &self.places);
        let bits = self.compare(channel, Party::Server, signs, inputs)?;
        // C -> S: its bits under random choices
        let flips = channel.receive(kind::PRODUCTS, places.flips_len())?;
        let (message, share) = self.matrices.correct(places, &keys, &bits, &flips)?;
        // S -> C: weights under keys
        channel.send(kind::PRODUCTS, &message)?;
        channel.flush()?;
        Ok(Value::Shared(share))
    }
}
