//! The protocols that a plan is made of: one file for each family, and the tables that list them all.
//!
//! A protocol is described by a struct of public parameters ([`Describe`]), which a plan writes down, and built from it once
//! ([`Facts`]): circuits, layouts. A new one adds a file here, a line to each table below, and its two sides to the executor.

pub mod cheetah;
pub mod compare;
pub mod falcon;
pub mod local;
pub mod packed;
pub mod share;
pub mod softmax;
pub mod yao;

use std::collections::BTreeSet;

use lanner_protocol::linear::gazelle::packing::Rotation;
use lanner_protocol::linear::{Set, Sets};
use lanner_protocol::nonlinear::ot_nonlinear::CotSupply;
use lanner_protocol::{Cost, OfflineCost, ProtocolError};
use lanner_share::Ring;
use serde::{Deserialize, Serialize};

use crate::{Held, Memory};

/// The protocol of one step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "protocol", rename_all = "snake_case")]
pub enum Protocol {
    /// A linear layer on slots.
    GazelleLinear(packed::Linear),
    /// A linear layer in the frequency domain.
    FalconLinear(falcon::Linear),
    /// A linear layer in a coefficient encoding.
    CheetahLinear(cheetah::Linear),
    /// The square of each element, by encryption.
    GazelleSquare(packed::Square),
    /// The square of each element, by encryption, with the linear layer behind.
    GazelleSquareLinear(packed::SquareLinear),
    /// Sums over windows of each party's own share: average pooling without the division.
    SumPool(local::SumPool),
    /// A weighted sum of each party's own shares.
    Add(local::Add),
    /// A multiple of each party's own share.
    Scale(local::Scale),
    /// Elements of each party's own shares in another order or number.
    Move(local::Move),
    /// The server draws its share anew, so that it is known before the input is.
    Remask(share::Remask),
    /// A garbled circuit on each window.
    Yao(yao::Activation),
    /// A nonlinear layer by oblivious transfer, with rescaling.
    RingActivation(compare::Activation),
    /// The square of each element, by oblivious transfer.
    RingSquare(compare::Square),
    /// An oblivious arg-max whose result the client learns.
    YaoArgMax(yao::Classes),
    /// The best classes in order, which the client learns.
    YaoTopK(yao::Best),
    /// The label and its probability, which the client learns.
    Softmax(softmax::Likely),
    /// The server opens its share of the scores to the client.
    Reveal(share::Reveal),
}

/// A protocol with what both parties build from its public parameters.
#[derive(Clone, Debug)]
pub enum Built {
    /// A linear layer on slots.
    Linear(Box<packed::BuiltLinear>),
    /// A linear layer in the frequency domain.
    FalconLinear(Box<falcon::BuiltLinear>),
    /// A linear layer in a coefficient encoding.
    CheetahLinear(Box<cheetah::BuiltLinear>),
    /// Squares by encryption, shared or taken by a linear layer.
    Square(Box<packed::BuiltSquare>),
    /// A map that each party applies to its own shares.
    Local(local::Local),
    /// The server draws its share anew.
    Remask(share::Remask),
    /// A garbled circuit on each window.
    Yao(lanner_protocol::nonlinear::yao::Layer),
    /// A nonlinear layer by oblivious transfer.
    Compare(lanner_protocol::nonlinear::ot_nonlinear::Layer),
    /// An oblivious arg-max, or the best classes in order.
    Ranking(lanner_protocol::nonlinear::yao::Ranking),
    /// The label and its probability.
    Softmax(Box<lanner_protocol::nonlinear::softmax::Softmax>),
    /// The server opens its share.
    Reveal(share::Reveal),
}

/// A protocol's public parameters.
pub trait Describe {
    /// The protocol's name in reports.
    fn name(&self) -> &'static str;

    /// The ring of the values that it reads.
    fn ring(&self) -> Ring;

    /// The ring of the values that it makes, where a protocol goes from one ring to another.
    fn output_ring(&self) -> Option<Ring> {
        None
    }

    /// Whether the server knows its share of the output before the network's input is known, given whether it knows those of
    /// all that is read.
    fn makes_known(&self, inputs_known: bool) -> bool;

    /// Builds what both parties need.
    ///
    /// # Errors
    /// [`ProtocolError`] if the parameters are none of the protocol's.
    fn build(&self, sets: &Sets) -> Result<Built, ProtocolError>;
}

/// What is known of a protocol that was built.
pub trait Facts {
    /// What the offline phase sends, given how far the session's sources of transfers have come; moves them on.
    ///
    /// # Errors
    /// [`ProtocolError`] if the ring is none of the protocol's.
    fn offline_cost(&self, _: &mut CotSupply) -> Result<OfflineCost, ProtocolError> {
        Ok(OfflineCost::default())
    }

    /// What the online phase sends.
    ///
    /// # Errors
    /// As [`Self::offline_cost`].
    fn online_cost(&self) -> Result<Cost, ProtocolError> {
        Ok(Cost::NONE)
    }

    /// What each party keeps between the two.
    fn held(&self) -> Held {
        Held::default()
    }

    /// What the server keeps for the step once a model, and while it computes it.
    ///
    /// # Errors
    /// [`ProtocolError`] if the parameters are none of the protocol's.
    fn memory(&self) -> Result<Memory, ProtocolError> {
        Ok(Memory::default())
    }

    /// The parameter set whose keys it needs.
    fn keys(&self) -> Option<Set> {
        None
    }

    /// Whether it needs the session's set-up for garbled circuits.
    fn garbles(&self) -> bool {
        false
    }

    /// Silent transfers that the client and the server send in one prediction.
    fn transfers(&self) -> [usize; 2] {
        [0, 0]
    }

    /// Rotations that need an evaluation key.
    fn rotations(&self) -> BTreeSet<Rotation> {
        BTreeSet::new()
    }

    /// Operations and sizes for reports, by name.
    fn counts(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

impl Protocol {
    /// Its public parameters.
    #[must_use]
    pub fn describe(&self) -> &dyn Describe {
        match self {
            Self::GazelleLinear(protocol) => protocol,
            Self::FalconLinear(protocol) => protocol,
            Self::CheetahLinear(protocol) => protocol,
            Self::GazelleSquare(protocol) => protocol,
            Self::GazelleSquareLinear(protocol) => protocol,
            Self::SumPool(protocol) => protocol,
            Self::Add(protocol) => protocol,
            Self::Scale(protocol) => protocol,
            Self::Move(protocol) => protocol,
            Self::Remask(protocol) => protocol,
            Self::Yao(protocol) => protocol,
            Self::RingActivation(protocol) => protocol,
            Self::RingSquare(protocol) => protocol,
            Self::YaoArgMax(protocol) => protocol,
            Self::YaoTopK(protocol) => protocol,
            Self::Softmax(protocol) => protocol,
            Self::Reveal(protocol) => protocol,
        }
    }
}

impl Built {
    /// What is known of it.
    #[must_use]
    pub fn facts(&self) -> &dyn Facts {
        match self {
            Self::Linear(built) => built.as_ref(),
            Self::FalconLinear(built) => built.as_ref(),
            Self::CheetahLinear(built) => built.as_ref(),
            Self::Square(built) => built.as_ref(),
            Self::Local(built) => built,
            Self::Remask(built) => built,
            Self::Yao(built) => built,
            Self::Compare(built) => built,
            Self::Ranking(built) => built,
            Self::Softmax(built) => built.as_ref(),
            Self::Reveal(built) => built,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::Step;

    #[test]
    fn a_protocol_lies_flat_in_its_step() {
        let remask = Protocol::Remask(share::Remask { values: 3, ring: Ring::Prime(1_032_193) });
        let step = Step { name: "sum".to_owned(), inputs: vec![2], protocol: remask };
        let json = r#"{"name":"sum","inputs":[2],"protocol":"remask","values":3,"ring":{"prime":1032193}}"#;
        assert_eq!(serde_json::to_string(&step).unwrap(), json);
        assert_eq!(serde_json::from_str::<Step>(json).unwrap(), step);
    }
}
