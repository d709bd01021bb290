//! The seam that every protocol has: what a plan writes down, what both parties build of it, and what each of them runs.
//!
//! ```text
//! Spec    the public parameters of one step, which a plan stores; infers types, bounds the work
//!   -> Built    with its circuits and layouts, built once: costs, memory, what it needs of a session
//!        -> Step<Client>, Step<Server>    what each party runs: request, prepare (offline), online
//! ```
//!
//! A protocol is one folder of this crate and one line in the list ([`Protocol`]). Everything that walks over a plan, on either side, knows
//! no protocol by name: see `docs/adding-a-protocol.md`.

mod dynamic;
mod encoded;
pub(crate) mod encoding;
mod list;
mod needs;
mod party;
mod shared;
mod value;

pub use dynamic::{AnyState, BoxedStep, DynStep};
pub(crate) use encoded::moduli;
pub use encoded::{EncodedWeights, LayerWeights};
pub use list::Protocol;
pub use needs::{EvaluationNeeds, KeyUse, Lifetime, Memory, Needs, SetKeys, SetUp};
pub(crate) use needs::{LABEL, WORD};
pub use party::{Client, KeyedClient, Keys, PartyState, Server};
pub use shared::Shared;
pub use value::{Encrypted, Inputs, Known, Outcome, Value, ValueType};

use lanner_bfv::function_privacy::Distance;
use lanner_wire::{Channel, DecodeError, Reader, Writer};

use crate::linear::{Sets, WeightForm};
use crate::nonlinear::ot_nonlinear::CotSupply;
use crate::{Cost, OfflineCost, ProtocolError, Samples};

/// The public parameters of one step: what a plan stores, and both parties build the step from.
pub trait Spec {
    /// The protocol's name in reports.
    fn name(&self) -> &'static str;

    /// Why a step is computed so, for people.
    fn reason(&self) -> &'static str;

    /// The type of what the step makes of values of these types.
    ///
    /// # Errors
    /// [`ProtocolError::Shape`] if they are not what the step reads.
    fn infer(&self, inputs: &[ValueType]) -> Result<ValueType, ProtocolError>;

    /// Bounds on what the step costs, from its shapes alone and before anything is built: limits are held against them.
    fn work(&self) -> Work {
        Work::default()
    }

    /// The step for as many samples at once, whose elements follow one another in all values; none if it takes them one by one.
    fn of_samples(&self, _samples: Samples) -> Option<Protocol> {
        None
    }

    /// Builds what both parties need: circuits, layouts.
    ///
    /// # Errors
    /// [`ProtocolError`] if the protocol does not take the parameters.
    fn build(&self, sets: &Sets) -> Result<Box<dyn Built>, ProtocolError>;
}

/// Bounds on a step's cost, of the order of what building and running it takes. What would not fit 64 bits is the largest number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Elements read by all windows of a pool.
    pub window_elements: u64,
    /// Values that one instance of a circuit reads: circuits are built gate by gate.
    pub circuit_values: u64,
    /// Products of ciphertexts and plaintexts.
    pub products: u64,
    /// Ciphertexts whose coefficients both parties lay out one by one.
    pub ciphertexts: u64,
    /// Filter taps, each of which may need an evaluation key of its own.
    pub taps: u64,
}

/// A step with its circuits and layouts, built once for everything that is asked of it.
pub trait Built: Send + Sync {
    /// What the step needs of the session, and how long its material lives.
    ///
    /// # Errors
    /// [`ProtocolError`] if the protocol does not take the parameters.
    fn needs(&self) -> Result<Needs, ProtocolError> {
        Ok(Needs::default())
    }

    /// What the step sends, exactly. `supply` says how far the session's sources of transfers have come, and moves on.
    ///
    /// # Errors
    /// As [`Self::needs`].
    fn cost(&self, _supply: &mut CotSupply) -> Result<StepCost, ProtocolError> {
        Ok(StepCost::default())
    }

    /// The ciphertexts that the client receives.
    ///
    /// # Errors
    /// As [`Self::needs`].
    fn answers(&self) -> Result<Answers, ProtocolError> {
        Ok(Answers::default())
    }

    /// What the parties keep for the step, to within small change.
    ///
    /// # Errors
    /// As [`Self::needs`].
    fn memory(&self) -> Result<Memory, ProtocolError> {
        Ok(Memory::default())
    }

    /// Operations and sizes for reports, by name.
    fn counts(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// The bytes of the step's weights where they are kept ready to multiply, and the form that they are kept in; none where there is no
    /// choice.
    fn weights(&mut self) -> Option<(u64, &mut WeightForm)> {
        None
    }

    /// The step as the client runs it. `node` is the network's node whose value the step makes.
    ///
    /// # Errors
    /// [`ProtocolError`] if the step does not fit the network.
    fn client(self: Box<Self>, node: &str, model: &dyn ModelParts) -> BoxedStep<Client>;

    /// The step as the server runs it, with the node's weights if it has some.
    ///
    /// # Errors
    /// [`ProtocolError`] if the step does not fit the network or its weights.
    fn server(self: Box<Self>, node: &str, model: &dyn ModelParts) -> BoxedStep<Server>;
}

/// What a step sends in both phases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepCost {
    /// Before the input is known.
    pub offline: OfflineCost,
    /// The rest.
    pub online: Cost,
}

/// The ciphertexts that the client receives of one run of a step, which may tell it of weights by their noise.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Answers {
    /// How many.
    pub ciphertexts: u64,
    /// How far each may be, at most, from one that does not depend on the weights but by its message.
    pub each: Distance,
}

/// What steps are made from besides their specs, by the names of the network's nodes.
pub trait ModelParts {
    /// The integers of a linear node with a given number of output elements. The server's alone.
    ///
    /// # Errors
    /// [`ProtocolError::Shape`] if the party has none for the node.
    fn weights(&self, node: &str, outputs: usize) -> Result<Weights<'_>, ProtocolError>;

    /// What the model's steps share.
    fn shared(&self) -> &Shared;

    /// For each element that a node makes, the number of the input and of its element that it copies; none for zero.
    ///
    /// # Errors
    /// [`ProtocolError::Shape`] if the node does more than move elements.
    fn sources(&self, node: &str) -> Result<Vec<Option<(usize, usize)>>, ProtocolError>;
}

/// The integers of a linear layer.
pub struct Weights<'m> {
    /// In the order of the layer's shape.
    pub weight: &'m [i64],
    /// One for each output element.
    pub bias: Vec<i128>,
}

impl Weights<'_> {
    /// The biases, for a ring of less than 64 bits.
    ///
    /// # Errors
    /// [`ProtocolError::Shape`] if one has more.
    pub fn small_bias(&self) -> Result<Vec<i64>, ProtocolError> {
        let small = |bias: &i128| i64::try_from(*bias).map_err(|_| ProtocolError::Shape { what: "a bias" });
        self.bias.iter().map(small).collect()
    }
}

/// A step as one party runs it.
///
/// In a run of steps the client makes the requests of all before it prepares the first, so that the offline phase is one round for all steps;
/// the server receives in `request` and `prepare` and sends in `prepare` alone, so that it may go from step to step.
pub trait Step<P: PartyState>: Send + Sync {
    /// What was asked for, until it is answered.
    type Request: Send + 'static;
    /// One-time material. It owns its correlations, is used up by value, and cannot be copied.
    type Material: Send + 'static;

    /// Offline, first half: what the step begins with.
    ///
    /// # Errors
    /// Those of the channel; [`ProtocolError::Shape`] if the session has not set up what the step needs.
    fn request(&self, channel: &mut dyn Channel, party: &mut P) -> Result<Self::Request, ProtocolError>;

    /// Offline, second half: makes the material. `known` are this party's shares of what the step reads, where they are known before the
    /// network's input is; the second result is its share of what the step makes, if that is known.
    ///
    /// # Errors
    /// As [`Self::request`]; [`ProtocolError::Channel`] if the peer's messages are not the ones due.
    fn prepare(
        &self,
        channel: &mut dyn Channel,
        party: &mut P,
        request: Self::Request,
        known: &Inputs,
    ) -> Result<(Self::Material, Option<Value>), ProtocolError>;

    /// Appends material, so that it can be kept. The bytes are as secret as keys: with the messages, which the peer knows, some give away
    /// the client's secret key, others the server's weights. They serve once, as the material does.
    fn encode(&self, material: &Self::Material, writer: &mut Writer);

    /// Reads what [`Self::encode`] wrote. Every length follows from the step.
    ///
    /// # Errors
    /// [`DecodeError`] if the bytes are none that it writes.
    fn decode(&self, reader: &mut Reader<'_>) -> Result<Self::Material, DecodeError>;

    /// Online, in any number of rounds: what the step makes. No randomness is drawn here.
    ///
    /// # Errors
    /// As [`Self::prepare`].
    fn online(
        &self,
        channel: &mut dyn Channel,
        material: Self::Material,
        inputs: &Inputs,
    ) -> Result<Value, ProtocolError>;
}
