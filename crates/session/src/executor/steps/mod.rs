//! A step as each party runs it: the two traits that a protocol implements, and the one place where it becomes them.
//!
//! Each file has both sides of a family of protocols. A step's material is made offline and used up online; the walk over a
//! plan knows it only as the step's own.

mod cheetah;
mod compare;
mod falcon;
mod local;
mod packed;
mod share;
mod softmax;
mod yao;

use std::any::Any;

use lanner_bfv::SecretKey;
use lanner_graph::{LinearWeights, Network, PublicNetwork};
use lanner_ot::{CotReceiver, CotSender};
use lanner_plan::Built;
use lanner_primitives::Prg;
use lanner_protocol::ProtocolError;
use lanner_protocol::linear::Set;
use lanner_protocol::linear::keys::ClientKeys;
use lanner_protocol::nonlinear::ot_nonlinear::Transfers;
use lanner_protocol::nonlinear::yao::{EvaluationSession, GarblingSession};
use lanner_share::Share;
use lanner_wire::Channel;

use super::Outcome;
use super::keys::Keys;
use super::values::Inputs;

/// The client's state of one session, for all steps.
pub(super) struct Client {
    pub(super) keys: Keys<SecretKey>,
    pub(super) evaluation: Option<EvaluationSession<CotReceiver>>,
    pub(super) transfers: Option<Transfers>,
    pub(super) rng: Prg,
}

/// The server's state of one session, for all steps.
pub(super) struct Server {
    pub(super) keys: Keys<ClientKeys>,
    pub(super) garbling: Option<GarblingSession<CotSender>>,
    pub(super) transfers: Option<Transfers>,
    pub(super) rng: Prg,
}

/// What the set-up made where the plan said that it is needed.
fn set_up<T>(part: Option<T>) -> Result<T, ProtocolError> {
    part.ok_or(ProtocolError::Shape { what: "a part of the set-up" })
}

/// A party's layer with the set whose keys it needs.
struct OfSet<L> {
    set: Set,
    layer: L,
}

/// What the client holds after a step.
pub(super) enum Value {
    Shared(Share),
    Known(Outcome),
}

/// A step as the client runs it.
pub(super) trait ClientStep: Send + Sync {
    /// What was asked for, until the server's answer is received.
    type Request: Send + 'static;
    /// One-time material.
    type Material: Send + 'static;

    /// Offline, first half: sends what the step begins with. All steps of a run do so before the first receives.
    fn request(&self, channel: &mut dyn Channel, client: &mut Client)
    -> Result<Self::Request, ProtocolError>;

    /// Offline, second half: what the server sends for the request.
    fn receive(
        &self,
        channel: &mut dyn Channel,
        client: &mut Client,
        request: Self::Request,
    ) -> Result<Self::Material, ProtocolError>;

    /// Online, on the client's shares of what the step reads.
    fn online(
        &self,
        channel: &mut dyn Channel,
        client: &Client,
        material: Self::Material,
        inputs: &Inputs,
    ) -> Result<Value, ProtocolError>;
}

/// A step as the server runs it.
pub(super) trait ServerStep: Send + Sync {
    /// One-time material.
    type Material: Send + 'static;

    /// Offline: makes the material. `inputs` are the server's shares of what the step reads, if they are known before the
    /// network's input; the second result is its share of what the step makes, if that is known.
    fn offline(
        &self,
        channel: &mut dyn Channel,
        server: &mut Server,
        inputs: Option<&Inputs>,
    ) -> Result<(Self::Material, Option<Share>), ProtocolError>;

    /// Online: the result is the server's share of what the step makes, unless that is the client's alone.
    fn online(
        &self,
        channel: &mut dyn Channel,
        server: &Server,
        material: Self::Material,
        inputs: &Inputs,
    ) -> Result<Option<Share>, ProtocolError>;
}

/// A protocol's two sides.
trait Sides {
    /// The client's, for a network.
    fn client(self: Box<Self>, network: &PublicNetwork) -> Result<Box<dyn AnyClientStep>, ProtocolError>;

    /// The server's. A step with weights takes the next ones.
    fn server(self: Box<Self>, model: &mut ModelParts) -> Result<Box<dyn AnyServerStep>, ProtocolError>;
}

/// The one place where a protocol becomes a step.
fn sides(built: Built) -> Box<dyn Sides> {
    match built {
        Built::Linear(built) => built,
        Built::FalconLinear(built) => built,
        Built::CheetahLinear(built) => built,
        Built::Square(built) => built,
        Built::Local(built) => Box::new(built),
        Built::Remask(built) => Box::new(built),
        Built::Yao(built) => Box::new(built),
        Built::Compare(built) => Box::new(built),
        Built::Ranking(built) => Box::new(built),
        Built::Softmax(built) => built,
        Built::Reveal(built) => Box::new(built),
    }
}

/// The client's step.
///
/// # Errors
/// [`ProtocolError`] if the step does not fit the network.
pub(super) fn client(built: Built, network: &PublicNetwork) -> Result<Box<dyn AnyClientStep>, ProtocolError> {
    sides(built).client(network)
}

/// The server's step.
///
/// # Errors
/// [`ProtocolError`] if the step does not fit the network or its weights.
pub(super) fn server(built: Built, model: &mut ModelParts) -> Result<Box<dyn AnyServerStep>, ProtocolError> {
    sides(built).server(model)
}

/// What the server's steps are made from, one after the other.
pub(super) struct ModelParts<'n> {
    network: &'n PublicNetwork,
    weights: Box<dyn Iterator<Item = &'n LinearWeights> + 'n>,
}

impl<'n> ModelParts<'n> {
    pub(super) fn of(network: &'n Network) -> Self {
        let nodes = 0..network.public().nodes().len();
        let weights = Box::new(nodes.filter_map(|node| network.weights(node)));
        Self { network: network.public(), weights }
    }

    /// The weights of the next layer that has some.
    fn weights(&mut self) -> Result<&'n LinearWeights, ProtocolError> {
        self.weights.next().ok_or(ProtocolError::Shape { what: "the network's weights" })
    }
}

/// What a step keeps from one phase to the next, known to the step alone.
pub(super) type Kept = Box<dyn Any + Send>;

/// [`ClientStep`] whatever its types are.
pub(super) trait AnyClientStep: Send + Sync {
    fn request(&self, channel: &mut dyn Channel, client: &mut Client) -> Result<Kept, ProtocolError>;

    fn receive(
        &self,
        channel: &mut dyn Channel,
        client: &mut Client,
        request: Kept,
    ) -> Result<Kept, ProtocolError>;

    fn online(
        &self,
        channel: &mut dyn Channel,
        client: &Client,
        material: Kept,
        inputs: &Inputs,
    ) -> Result<Value, ProtocolError>;
}

/// [`ServerStep`] whatever its types are.
pub(super) trait AnyServerStep: Send + Sync {
    fn offline(
        &self,
        channel: &mut dyn Channel,
        server: &mut Server,
        inputs: Option<&Inputs>,
    ) -> Result<(Kept, Option<Share>), ProtocolError>;

    fn online(
        &self,
        channel: &mut dyn Channel,
        server: &Server,
        material: Kept,
        inputs: &Inputs,
    ) -> Result<Option<Share>, ProtocolError>;
}

impl<S: ClientStep> AnyClientStep for S {
    fn request(&self, channel: &mut dyn Channel, client: &mut Client) -> Result<Kept, ProtocolError> {
        Ok(Box::new(ClientStep::request(self, channel, client)?))
    }

    fn receive(
        &self,
        channel: &mut dyn Channel,
        client: &mut Client,
        request: Kept,
    ) -> Result<Kept, ProtocolError> {
        Ok(Box::new(ClientStep::receive(self, channel, client, own(request)?)?))
    }

    fn online(
        &self,
        channel: &mut dyn Channel,
        client: &Client,
        material: Kept,
        inputs: &Inputs,
    ) -> Result<Value, ProtocolError> {
        ClientStep::online(self, channel, client, own(material)?, inputs)
    }
}

impl<S: ServerStep> AnyServerStep for S {
    fn offline(
        &self,
        channel: &mut dyn Channel,
        server: &mut Server,
        inputs: Option<&Inputs>,
    ) -> Result<(Kept, Option<Share>), ProtocolError> {
        let (material, share) = ServerStep::offline(self, channel, server, inputs)?;
        Ok((Box::new(material), share))
    }

    fn online(
        &self,
        channel: &mut dyn Channel,
        server: &Server,
        material: Kept,
        inputs: &Inputs,
    ) -> Result<Option<Share>, ProtocolError> {
        ServerStep::online(self, channel, server, own(material)?, inputs)
    }
}

/// What the step kept.
fn own<T: 'static>(kept: Kept) -> Result<T, ProtocolError> {
    let kept = kept.downcast().map_err(|_| ProtocolError::Shape { what: "material of another step" })?;
    Ok(*kept)
}

/// The server's share of a step's only input, which must be known before the network's input is.
fn known(inputs: Option<&Inputs>) -> Result<&Share, ProtocolError> {
    inputs.ok_or(ProtocolError::Shape { what: "a share known ahead of time" })?.one()
}
