//! Steps that each party computes on its own shares alone: the same on both sides.

use lanner_graph::PublicNetwork;
use lanner_plan::Protocol;
use lanner_protocol::ProtocolError;
use lanner_share::Share;

/// A linear map with public coefficients.
pub(super) enum Local {
    /// Sums of groups of elements.
    SumGroups(Vec<Vec<usize>>),
    /// `factors[0] * a + factors[1] * b`.
    Add([i64; 2]),
    /// `factor * x`.
    Scale(i64),
    /// Input and element that each element comes from; zero where there is none.
    Move(Vec<Option<(usize, usize)>>),
}

impl Local {
    /// The map of a step.
    ///
    /// # Errors
    /// [`ProtocolError::Shape`] if the step is not local or does not fit the network.
    pub(super) fn new(network: &PublicNetwork, protocol: &Protocol) -> Result<Self, ProtocolError> {
        match protocol {
            Protocol::SumPool { windows, .. } => windows.groups().map(Self::SumGroups),
            Protocol::Add { factors, .. } => Ok(Self::Add(*factors)),
            Protocol::Scale { factor, .. } => Ok(Self::Scale(*factor)),
            Protocol::Move { node, .. } => {
                let sources = (*node < network.nodes().len()).then(|| network.sources(*node)).flatten();
                let sources = sources.ok_or(ProtocolError::Shape { what: "a movement of another node" })?;
                let place = |source: Option<lanner_graph::Source>| Some((source?.input, source?.element));
                Ok(Self::Move(sources.into_iter().map(place).collect()))
            }
            _ => Err(ProtocolError::Shape { what: "a step that is not local" }),
        }
    }

    /// Applies it to one party's shares.
    ///
    /// # Errors
    /// [`ProtocolError::Share`] if they do not fit.
    pub(super) fn apply(&self, inputs: &[&Share]) -> Result<Share, ProtocolError> {
        Ok(match (self, inputs) {
            (Self::SumGroups(groups), [share]) => share.sum_groups(groups)?,
            (Self::Add([left, right]), [a, b]) => a.scale(*left).add(&b.scale(*right))?,
            (Self::Scale(factor), [share]) => share.scale(*factor),
            (Self::Move(sources), shares) => Share::gather(shares, sources)?,
            _ => return Err(ProtocolError::Shape { what: "inputs of a local step" }),
        })
    }
}
