//! Steps that each party computes on its own shares alone: the same on both sides.

use lanner_graph::{PublicNetwork, Source};
use lanner_plan::protocol::local::Local;
use lanner_protocol::ProtocolError;
use lanner_share::Share;
use lanner_wire::Channel;

use super::{
    AnyClientStep, AnyServerStep, Client, ClientStep, Inputs, ModelParts, Server, ServerStep, Sides, Value,
};

/// A linear map with public coefficients.
enum Map {
    /// Sums of groups of elements.
    SumGroups(Vec<Vec<usize>>),
    /// `factors[0] * a + factors[1] * b`.
    Add([i64; 2]),
    /// `factor * x`.
    Scale(i64),
    /// Input and element that each element comes from; zero where there is none.
    Move(Vec<Option<(usize, usize)>>),
}

impl Map {
    fn new(local: Local, network: &PublicNetwork) -> Result<Self, ProtocolError> {
        Ok(match local {
            Local::SumGroups(groups) => Self::SumGroups(groups),
            Local::Add(factors) => Self::Add(factors),
            Local::Scale(factor) => Self::Scale(factor),
            Local::Move(node) => {
                let sources = (node < network.nodes().len()).then(|| network.sources(node)).flatten();
                let sources = sources.ok_or(ProtocolError::Shape { what: "a movement of another node" })?;
                let place = |source: Option<Source>| Some((source?.input, source?.element));
                Self::Move(sources.into_iter().map(place).collect())
            }
        })
    }

    /// Applies it to one party's shares.
    fn apply(&self, inputs: &Inputs) -> Result<Share, ProtocolError> {
        let shares = inputs.all();
        Ok(match (self, &shares[..]) {
            (Self::SumGroups(groups), [share]) => share.sum_groups(groups)?,
            (Self::Add([left, right]), [a, b]) => a.scale(*left).add(&b.scale(*right))?,
            (Self::Scale(factor), [share]) => share.scale(*factor),
            (Self::Move(sources), shares) => Share::gather(shares, sources)?,
            _ => return Err(ProtocolError::Shape { what: "inputs of a local step" }),
        })
    }
}

impl Sides for Local {
    fn client(self: Box<Self>, network: &PublicNetwork) -> Result<Box<dyn AnyClientStep>, ProtocolError> {
        Ok(Box::new(Map::new(*self, network)?))
    }

    fn server(self: Box<Self>, model: &mut ModelParts) -> Result<Box<dyn AnyServerStep>, ProtocolError> {
        Ok(Box::new(Map::new(*self, model.network)?))
    }
}

impl ClientStep for Map {
    type Request = ();
    type Material = ();

    fn request(&self, _: &mut dyn Channel, _: &mut Client) -> Result<(), ProtocolError> {
        Ok(())
    }

    fn receive(&self, _: &mut dyn Channel, _: &mut Client, (): ()) -> Result<(), ProtocolError> {
        Ok(())
    }

    fn online(
        &self,
        _: &mut dyn Channel,
        _: &Client,
        (): (),
        inputs: &Inputs,
    ) -> Result<Value, ProtocolError> {
        self.apply(inputs).map(Value::Shared)
    }
}

impl ServerStep for Map {
    type Material = ();

    fn offline(
        &self,
        _: &mut dyn Channel,
        _: &mut Server,
        inputs: Option<&Inputs>,
    ) -> Result<((), Option<Share>), ProtocolError> {
        Ok(((), inputs.map(|inputs| self.apply(inputs)).transpose()?))
    }

    fn online(
        &self,
        _: &mut dyn Channel,
        _: &Server,
        (): (),
        inputs: &Inputs,
    ) -> Result<Option<Share>, ProtocolError> {
        self.apply(inputs).map(Some)
    }
}
