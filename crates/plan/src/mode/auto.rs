//! Mode `auto`: a mixture of designs over powers of two, or another mode as a whole.

use lanner_network::FixedOp;
use serde::{Deserialize, Serialize};

use super::design::{Between, Design, Rings, Rules};
use super::kind::Kind;
use super::{cheetah, tabula};

/// The planner's choice. Nodes that choose nothing follow [`NodeDesign::Cheetah`].
pub(super) static DESIGN: Design = Design {
    name: "auto",
    inexact: None,
    rings: Rings::PowersOfTwo,
    rules: Some(cheetah::RULES),
    most_samples: 64,
};

/// A design that a node of a plan of mode `auto` follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NodeDesign {
    /// Garbled circuits between layers: one round, and the most bytes.
    Gazelle,
    /// Coefficient-encoded layers, oblivious transfer between them.
    Cheetah,
    /// Layers computed ahead, lookups between them: the least online.
    Tabula,
}

impl NodeDesign {
    /// What nodes become that follow it.
    #[must_use]
    pub const fn rules(self) -> Rules {
        match self {
            Self::Gazelle => Rules { between: Between::Circuits, ..cheetah::RULES },
            Self::Cheetah => cheetah::RULES,
            Self::Tabula => tabula::RULES,
        }
    }

    /// The designs that an operator may follow; none where there is one alone.
    pub(crate) const fn of(op: &FixedOp) -> &'static [Self] {
        match Kind::of(op) {
            Kind::Layer | Kind::Function => &[Self::Cheetah, Self::Tabula],
            Kind::Between => &[Self::Cheetah, Self::Gazelle, Self::Tabula],
            Kind::Local | Kind::Product => &[],
        }
    }
}
