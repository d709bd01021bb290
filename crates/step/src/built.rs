//! A step as both parties build it.

use lanner_bfv::function_privacy::Distance;

use super::{
    BoxedStep, Client, Cost, CotSupply, Memory, ModelParts, Needs, OfflineCost, ProtocolError, Server,
    WeightForm,
};

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
