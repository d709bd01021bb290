//! The layer before the input is known, on a mask in its place: online one element of the ring is sent for each input, and the server picks of plain integers.
//!
//! ```text
//! offline:
//!   r uniform mod 2^l, and the layer on r and 0 as the shares of its input
//!        <----------------------------->  all its messages
//!   y_C                                   z_S, where y_C + z_S = r[f] + c
//! online:
//!   x_C - r
//!       ------------------------------->
//!   y_C                                   y_S = z_S + (x_S + x_C - r)[f]
//! ```
//!
//! The server sees a difference that is uniform, since `r` is uniform and used once. The client speaks in the preparation, too, which is therefore no part of a run of
//! others.

use std::sync::Arc;

use lanner_primitives::{Ring, Share};
use lanner_step::encoding::{read_share, write_share};
use lanner_step::messages::{receive_share, send_share};
use lanner_step::{
    BoxedStep, Built, Client, Cost, CotSupply, Inputs, Known, Memory, ModelParts, Needs, OfflineCost,
    PartyState, Result, Samples, Server, Sets, Spec, Step, StepCost, Value, ValueType, WORD, Work, kind,
};
use lanner_wire::{Channel, DecodeError, Reader, Writer, packed_len};
use serde::{Deserialize, Serialize};

use super::RingSelect;
use super::roles::{Drawn, Picks, Strings};
use super::step::Layer;

/// A layer that picks elements and is computed ahead of time on a mask.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SelectAhead(pub RingSelect);

impl Spec for SelectAhead {
    fn infer(&self, inputs: &[ValueType]) -> Result<ValueType> {
        self.0.infer(inputs)?;
        let places = self.0.places()?;
        Ok(ValueType::shared(Ring::Pow2(places.bits()), places.outputs(), Known::CLIENT))
    }

    fn work(&self) -> Work {
        self.0.work()
    }

    fn of_samples(&self, samples: Samples) -> Option<Self> {
        self.0.of_samples(samples).map(Self)
    }

    fn build(&self, _: &Sets) -> Result<Box<dyn Built>> {
        Ok(Box::new(Ahead(self.0.layer()?)))
    }
}

/// The layer that is run ahead of time.
struct Ahead<P = ()>(Layer<P>);

/// What the client keeps: the mask, and its share of the output.
pub(super) struct Masked([Share; 2]);

impl Built for Ahead {
    fn needs(&self) -> Result<Needs> {
        Ok(Needs { conversation: true, ..self.0.needs()? })
    }

    fn cost(&self, supply: &mut CotSupply) -> Result<StepCost> {
        let StepCost { offline: OfflineCost { request, answer }, online } = self.0.cost(supply)?;
        let places = &self.0.places;
        let difference = packed_len(places.inputs(), places.bits());
        let offline = OfflineCost { request, answer: answer.then(online) };
        Ok(StepCost { offline, online: Cost::NONE.client(difference) })
    }

    fn memory(&self) -> Result<Memory> {
        let (layer, places) = (self.0.memory()?, &self.0.places);
        let [inputs, outputs] = [places.inputs(), places.outputs()].map(|count| count as u64 * WORD);
        Ok(Memory {
            // Shares alone: strings are gone when the layer is prepared.
            client_material: inputs + outputs,
            server_material: outputs,
            working: layer.working + layer.server_material,
            client_working: layer.client_working + layer.client_material,
            ..layer
        })
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        self.0.counts()
    }

    fn client(self: Box<Self>, _: &str, _: &dyn ModelParts) -> BoxedStep<Client> {
        Ok(self)
    }

    fn server(self: Box<Self>, node: &str, model: &dyn ModelParts) -> BoxedStep<Server> {
        Ok(Box::new(Ahead(self.0.with_picks(node, model)?)))
    }
}

impl Step<Client> for Ahead {
    type Request = Strings;
    type Material = Masked;

    fn request(&self, channel: &mut dyn Channel, client: &mut Client) -> Result<Strings> {
        self.0.request(channel, client)
    }

    fn prepare(
        &self,
        channel: &mut dyn Channel,
        client: &mut Client,
        strings: Strings,
        _: &Inputs,
    ) -> Result<(Masked, Option<Value>)> {
        let places = &self.0.places;
        let offers = self.0.offer(channel, client, strings)?;
        let (_, rng) = client.transfers()?;
        let mask = Share::random(Ring::Pow2(places.bits()), places.inputs(), rng);
        let (message, made) = offers.correct(places, &mask)?;
        // C -> S: the mask under strings
        channel.send(kind::PRODUCTS, &message)?;
        channel.flush()?;
        Ok((Masked([mask, made.clone()]), Some(Value::Shared(made))))
    }

    fn encode(&self, Masked(shares): &Masked, writer: &mut Writer) {
        for share in shares {
            write_share(share, writer);
        }
    }

    fn decode(&self, reader: &mut Reader<'_>) -> Result<Masked, DecodeError> {
        let (places, ring) = (&self.0.places, Ring::Pow2(self.0.places.bits()));
        let mask = read_share(reader, ring, places.inputs())?;
        Ok(Masked([mask, read_share(reader, ring, places.outputs())?]))
    }

    fn online(&self, channel: &mut dyn Channel, material: Masked, inputs: &Inputs) -> Result<Value> {
        let (share, Masked([mask, made])) = (inputs.share()?, material);
        self.0.check_input(share)?;
        // C -> S: x_C - r
        send_share(channel, kind::LINEAR_DIFFERENCE, &share.sub(&mask)?)?;
        channel.flush()?;
        Ok(Value::Shared(made))
    }
}

impl Step<Server> for Ahead<Arc<Picks>> {
    type Request = Drawn;
    type Material = Share;

    fn request(&self, channel: &mut dyn Channel, server: &mut Server) -> Result<Drawn> {
        self.0.request(channel, server)
    }

    fn prepare(
        &self,
        channel: &mut dyn Channel,
        _: &mut Server,
        drawn: Drawn,
        _: &Inputs,
    ) -> Result<(Share, Option<Value>)> {
        let Layer { places, picks } = &self.0;
        let choices = self.0.choose(channel, drawn)?;
        // C -> S: the mask under strings
        let message = channel.receive(kind::PRODUCTS, places.message_len())?;
        let nothing = Share::zero(Ring::Pow2(places.bits()), places.inputs());
        Ok((picks.answer(places, &choices, &nothing, &message)?, None))
    }

    fn encode(&self, material: &Share, writer: &mut Writer) {
        write_share(material, writer);
    }

    fn decode(&self, reader: &mut Reader<'_>) -> Result<Share, DecodeError> {
        read_share(reader, Ring::Pow2(self.0.places.bits()), self.0.places.outputs())
    }

    fn online(&self, channel: &mut dyn Channel, material: Share, inputs: &Inputs) -> Result<Value> {
        let (share, Layer { places, picks }) = (inputs.share()?, &self.0);
        self.0.check_input(share)?;
        // C -> S: x_C - r
        let difference = receive_share(channel, kind::LINEAR_DIFFERENCE, share.ring(), share.len())?;
        let product = picks.apply(places, &share.add(&difference)?)?;
        Ok(Value::Shared(material.add(&product)?))
    }
}
