//! Linear layers by transfers that the client sends: it offers, and the server's weights choose.
//!
//! Such a layer runs when its input is there, or before it is known, on a mask in its place: online one element of the ring is then sent for each
//! input, and the server computes on plain integers.
//!
//! ```text
//! offline:
//!   r uniform mod 2^l, and the layer on r and 0 as the shares of its input
//!        <----------------------------->  all its messages
//!   y_C                                   z_S, where y_C + z_S = W r + c
//! online:
//!   x_C - r
//!       ------------------------------->
//!   y_C                                   y_S = z_S + W (x_S + x_C - r)
//! ```
//!
//! The server sees a difference that is uniform, since `r` is uniform and used once. The client speaks in the preparation, too, which is therefore no
//! part of a run of others.

use std::sync::Arc;

use lanner_primitives::{Ring, Share};
use lanner_step::encoding::{read_share, write_share};
use lanner_step::messages::{receive_share, send_share};
use lanner_step::{
    BoxedStep, Built, Client, Convolution, Cost, CotSupply, Inputs, Known, Memory, ModelParts, Needs,
    OfflineCost, PartyState, ProtocolError, Result, Samples, Server, Sets, Spec, Step, StepCost, Transfers,
    Value, ValueType, WORD, Work, kind,
};
use lanner_wire::{Channel, DecodeError, Reader, Writer, packed_len};

use serde::{Deserialize, Serialize};

use crate::source::Source;

/// Elements of a layer's input and of its output, and bits of their ring.
#[derive(Clone, Copy)]
pub(crate) struct Sides {
    pub(crate) inputs: usize,
    pub(crate) outputs: usize,
    pub(crate) bits: u32,
}

/// What both parties know of such a layer, and what each computes of it.
pub(crate) trait ByChoices: Send + Sync + Sized + 'static {
    /// What the client's transfers are, until it knows of the server's choices.
    type Offered: Send + 'static;
    /// The client's material.
    type Offers: Send + 'static;
    /// The transfers that the server receives.
    type Drawn: Send + 'static;
    /// The server's material.
    type Choices: Send + 'static;
    /// The server's weights.
    type Weights: Send + Sync + 'static;

    /// The layer's sides.
    fn sides(&self) -> Sides;

    /// Transfers, part by part.
    fn draws(&self) -> Vec<usize>;

    /// Bytes of what the server says of its choices.
    fn flips_len(&self) -> usize;

    /// Bytes of what the client sends of its elements.
    fn message_len(&self) -> usize;

    /// As [`Built::memory`].
    fn memory(&self) -> Memory;

    /// As [`Built::counts`].
    fn counts(&self) -> Vec<(&'static str, u64)>;

    /// The weights of a node.
    fn weights(&self, node: &str, model: &dyn ModelParts) -> Result<Arc<Self::Weights>>;

    /// The client draws its transfers.
    fn offered(&self, source: &mut Source<'_>) -> Result<Self::Offered>;

    /// What the client keeps, by what the server says of its choices.
    fn offer(&self, offered: Self::Offered, transfers: &Transfers, flips: &[u8]) -> Result<Self::Offers>;

    /// What the client sends of its share of the input, and its share of the output.
    fn correct(&self, offers: &Self::Offers, share: &Share) -> Result<(Vec<u8>, Share)>;

    fn encode_offers(&self, offers: &Self::Offers, writer: &mut Writer);

    fn decode_offers(&self, reader: &mut Reader<'_>) -> Result<Self::Offers, DecodeError>;

    /// The server draws its transfers.
    fn drawn(&self, source: &mut Source<'_>) -> Result<Self::Drawn>;

    /// What the server says of its choices, and what it keeps.
    fn choose(&self, weights: &Self::Weights, drawn: Self::Drawn) -> (Vec<u8>, Self::Choices);

    /// The server's share of the output, from its share of the input and what the client sent.
    fn answer(
        &self,
        weights: &Self::Weights,
        choices: &Self::Choices,
        share: &Share,
        message: &[u8],
    ) -> Result<Share>;

    /// The layer on plain values, without its bias.
    fn apply(&self, weights: &Self::Weights, values: &Share) -> Result<Share>;

    fn encode_choices(&self, choices: &Self::Choices, writer: &mut Writer);

    fn decode_choices(&self, reader: &mut Reader<'_>) -> Result<Self::Choices, DecodeError>;
}

/// The public parameters of such a layer.
pub trait FromChoices: Spec {
    /// As [`Spec::build`], of the layer that is computed ahead.
    ///
    /// # Errors
    /// As there.
    fn build_ahead(&self) -> Result<Box<dyn Built>>;
}

/// A layer that is computed ahead of time, on a mask.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComputedAhead<S>(pub S);

impl<S: FromChoices> Spec for ComputedAhead<S> {
    fn shape(&self) -> Option<&Convolution> {
        self.0.shape()
    }

    /// The client knows its share ahead of time.
    fn infer(&self, inputs: &[ValueType]) -> Result<ValueType> {
        Ok(match self.0.infer(inputs)? {
            ValueType::Shared { ring, len, .. } => ValueType::shared(ring, len, Known::CLIENT),
            other => other,
        })
    }

    fn work(&self) -> Work {
        self.0.work()
    }

    fn of_samples(&self, samples: Samples) -> Option<Self> {
        self.0.of_samples(samples).map(Self)
    }

    fn build(&self, _: &Sets) -> Result<Box<dyn Built>> {
        self.0.build_ahead()
    }
}

/// A layer as both parties know it, and as the server runs it with its weights.
pub(crate) struct Layer<L, W = ()> {
    pub(crate) layer: L,
    weights: W,
}

/// The layer that is run ahead of time.
pub(crate) struct Ahead<L, W = ()>(Layer<L, W>);

/// What the client keeps of it: the mask, and its share of the output.
pub(crate) struct Masked([Share; 2]);

impl<L: ByChoices> Layer<L> {
    pub(crate) fn new(layer: L) -> Self {
        Self { layer, weights: () }
    }

    /// As it is run ahead of time.
    pub(crate) fn ahead(self) -> Ahead<L> {
        Ahead(self)
    }

    /// As the server runs it.
    fn with_weights(self, node: &str, model: &dyn ModelParts) -> Result<Layer<L, Arc<L::Weights>>> {
        let weights = self.layer.weights(node, model)?;
        Ok(Layer { layer: self.layer, weights })
    }

    fn request(&self, channel: &mut dyn Channel, client: &mut Client) -> Result<L::Offered> {
        let (transfers, _) = client.transfers()?;
        self.layer.offered(&mut Source::new(channel, transfers, true))
    }

    fn offer(
        &self,
        channel: &mut dyn Channel,
        client: &mut Client,
        offered: L::Offered,
    ) -> Result<L::Offers> {
        // S -> C: what it chooses, under random choices
        let flips = channel.receive(kind::PRODUCTS, self.layer.flips_len())?;
        let (transfers, _) = client.transfers()?;
        self.layer.offer(offered, transfers, &flips)
    }

    /// Sends what is due of a share of the input: the client's share of the output.
    fn correct(&self, channel: &mut dyn Channel, offers: &L::Offers, share: &Share) -> Result<Share> {
        let (message, made) = self.layer.correct(offers, share)?;
        // C -> S: its elements under what it offers
        channel.send(kind::PRODUCTS, &message)?;
        channel.flush()?;
        Ok(made)
    }
}

impl<L: ByChoices> Layer<L, Arc<L::Weights>> {
    fn request(&self, channel: &mut dyn Channel, server: &mut Server) -> Result<L::Drawn> {
        let (transfers, _) = server.transfers()?;
        self.layer.drawn(&mut Source::new(channel, transfers, false))
    }

    fn choose(&self, channel: &mut dyn Channel, drawn: L::Drawn) -> Result<L::Choices> {
        let (flips, choices) = self.layer.choose(&self.weights, drawn);
        // S -> C: what it chooses, under random choices
        channel.send(kind::PRODUCTS, &flips)?;
        channel.flush()?;
        Ok(choices)
    }

    /// Receives what the client sends of its share of the input: the server's share of the output.
    fn answer(&self, channel: &mut dyn Channel, choices: &L::Choices, share: &Share) -> Result<Share> {
        // C -> S: its elements under what it offers
        let message = channel.receive(kind::PRODUCTS, self.layer.message_len())?;
        self.layer.answer(&self.weights, choices, share, &message)
    }
}

impl<L: ByChoices, W> Layer<L, W> {
    fn ring(&self) -> Ring {
        Ring::Pow2(self.layer.sides().bits)
    }

    fn check_input(&self, share: &Share) -> Result<()> {
        ProtocolError::check_share("the input of a layer", share, self.ring(), self.layer.sides().inputs)
    }
}

impl<L: ByChoices> Built for Layer<L> {
    fn needs(&self) -> Result<Needs> {
        let transfers = [self.layer.draws().iter().sum(), 0];
        Ok(Needs { transfers, stretched_keys: true, ..Needs::default() })
    }

    fn cost(&self, supply: &mut CotSupply) -> Result<StepCost> {
        let request = supply.client(self.layer.draws().into_iter());
        let offline = OfflineCost { request, answer: Cost::NONE.server(self.layer.flips_len()) };
        Ok(StepCost { offline, online: Cost::NONE.client(self.layer.message_len()) })
    }

    fn memory(&self) -> Result<Memory> {
        Ok(self.layer.memory())
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        self.layer.counts()
    }

    fn client(self: Box<Self>, _: &str, _: &dyn ModelParts) -> BoxedStep<Client> {
        Ok(self)
    }

    fn server(self: Box<Self>, node: &str, model: &dyn ModelParts) -> BoxedStep<Server> {
        Ok(Box::new(self.with_weights(node, model)?))
    }
}

impl<L: ByChoices> Step<Client> for Layer<L> {
    type Request = L::Offered;
    type Material = L::Offers;

    fn request(&self, channel: &mut dyn Channel, client: &mut Client) -> Result<L::Offered> {
        self.request(channel, client)
    }

    fn prepare(
        &self,
        channel: &mut dyn Channel,
        client: &mut Client,
        offered: L::Offered,
        _: &Inputs,
    ) -> Result<(L::Offers, Option<Value>)> {
        Ok((self.offer(channel, client, offered)?, None))
    }

    fn encode(&self, offers: &L::Offers, writer: &mut Writer) {
        self.layer.encode_offers(offers, writer);
    }

    fn decode(&self, reader: &mut Reader<'_>) -> Result<L::Offers, DecodeError> {
        self.layer.decode_offers(reader)
    }

    fn online(&self, channel: &mut dyn Channel, offers: L::Offers, inputs: &Inputs) -> Result<Value> {
        let share = inputs.share()?;
        self.check_input(share)?;
        self.correct(channel, &offers, share).map(Value::Shared)
    }
}

impl<L: ByChoices> Step<Server> for Layer<L, Arc<L::Weights>> {
    type Request = L::Drawn;
    type Material = L::Choices;

    fn request(&self, channel: &mut dyn Channel, server: &mut Server) -> Result<L::Drawn> {
        self.request(channel, server)
    }

    fn prepare(
        &self,
        channel: &mut dyn Channel,
        _: &mut Server,
        drawn: L::Drawn,
        _: &Inputs,
    ) -> Result<(L::Choices, Option<Value>)> {
        Ok((self.choose(channel, drawn)?, None))
    }

    fn encode(&self, choices: &L::Choices, writer: &mut Writer) {
        self.layer.encode_choices(choices, writer);
    }

    fn decode(&self, reader: &mut Reader<'_>) -> Result<L::Choices, DecodeError> {
        self.layer.decode_choices(reader)
    }

    fn online(&self, channel: &mut dyn Channel, choices: L::Choices, inputs: &Inputs) -> Result<Value> {
        let share = inputs.share()?;
        self.check_input(share)?;
        self.answer(channel, &choices, share).map(Value::Shared)
    }
}

impl<L: ByChoices> Built for Ahead<L> {
    fn needs(&self) -> Result<Needs> {
        Ok(Needs { conversation: true, ..self.0.needs()? })
    }

    fn cost(&self, supply: &mut CotSupply) -> Result<StepCost> {
        let StepCost { offline: OfflineCost { request, answer }, online } = self.0.cost(supply)?;
        let Sides { inputs, bits, .. } = self.0.layer.sides();
        let offline = OfflineCost { request, answer: answer.then(online) };
        Ok(StepCost { offline, online: Cost::NONE.client(packed_len(inputs, bits)) })
    }

    fn memory(&self) -> Result<Memory> {
        let (layer, Sides { inputs, outputs, .. }) = (self.0.memory()?, self.0.layer.sides());
        let [inputs, outputs] = [inputs, outputs].map(|count| count as u64 * WORD);
        Ok(Memory {
            // Shares alone: what the layer itself keeps is gone when it is prepared.
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
        Ok(Box::new(Ahead(self.0.with_weights(node, model)?)))
    }
}

impl<L: ByChoices> Step<Client> for Ahead<L> {
    type Request = L::Offered;
    type Material = Masked;

    fn request(&self, channel: &mut dyn Channel, client: &mut Client) -> Result<L::Offered> {
        self.0.request(channel, client)
    }

    fn prepare(
        &self,
        channel: &mut dyn Channel,
        client: &mut Client,
        offered: L::Offered,
        _: &Inputs,
    ) -> Result<(Masked, Option<Value>)> {
        let offers = self.0.offer(channel, client, offered)?;
        let (_, rng) = client.transfers()?;
        let mask = Share::random(self.0.ring(), self.0.layer.sides().inputs, rng);
        let made = self.0.correct(channel, &offers, &mask)?;
        Ok((Masked([mask, made.clone()]), Some(Value::Shared(made))))
    }

    fn encode(&self, Masked(shares): &Masked, writer: &mut Writer) {
        for share in shares {
            write_share(share, writer);
        }
    }

    fn decode(&self, reader: &mut Reader<'_>) -> Result<Masked, DecodeError> {
        let Sides { inputs, outputs, .. } = self.0.layer.sides();
        let mask = read_share(reader, self.0.ring(), inputs)?;
        Ok(Masked([mask, read_share(reader, self.0.ring(), outputs)?]))
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

impl<L: ByChoices> Step<Server> for Ahead<L, Arc<L::Weights>> {
    type Request = L::Drawn;
    type Material = Share;

    fn request(&self, channel: &mut dyn Channel, server: &mut Server) -> Result<L::Drawn> {
        self.0.request(channel, server)
    }

    fn prepare(
        &self,
        channel: &mut dyn Channel,
        _: &mut Server,
        drawn: L::Drawn,
        _: &Inputs,
    ) -> Result<(Share, Option<Value>)> {
        let choices = self.0.choose(channel, drawn)?;
        let nothing = Share::zero(self.0.ring(), self.0.layer.sides().inputs);
        Ok((self.0.answer(channel, &choices, &nothing)?, None))
    }

    fn encode(&self, material: &Share, writer: &mut Writer) {
        write_share(material, writer);
    }

    fn decode(&self, reader: &mut Reader<'_>) -> Result<Share, DecodeError> {
        read_share(reader, self.0.ring(), self.0.layer.sides().outputs)
    }

    fn online(&self, channel: &mut dyn Channel, material: Share, inputs: &Inputs) -> Result<Value> {
        let (share, Layer { layer, weights }) = (inputs.share()?, &self.0);
        self.0.check_input(share)?;
        // C -> S: x_C - r
        let difference = receive_share(channel, kind::LINEAR_DIFFERENCE, share.ring(), share.len())?;
        let product = layer.apply(weights, &share.add(&difference)?)?;
        Ok(Value::Shared(material.add(&product)?))
    }
}
