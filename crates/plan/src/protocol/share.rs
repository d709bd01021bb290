//! Protocols that move shares between the parties, without encryption.

use lanner_protocol::convert::remask;
use lanner_protocol::linear::Sets;
use lanner_protocol::{Cost, ProtocolError};
use lanner_share::Ring;
use serde::{Deserialize, Serialize};

use super::{Built, Describe, Facts};
use crate::Held;
use crate::held::WORD;

/// The server draws its share anew, so that it is known before the input is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remask {
    /// Number of elements.
    pub values: usize,
    /// The ring.
    pub ring: Ring,
}

/// The server opens its share of the scores to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reveal {
    /// Number of scores.
    pub values: usize,
    /// The ring of the scores.
    pub from: Ring,
}

impl Describe for Remask {
    fn name(&self) -> &'static str {
        "share.remask"
    }

    fn ring(&self) -> Ring {
        self.ring
    }

    fn makes_known(&self, _: bool) -> bool {
        true
    }

    fn build(&self, _: &Sets) -> Result<Built, ProtocolError> {
        Ok(Built::Remask(*self))
    }
}

impl Facts for Remask {
    fn online_cost(&self) -> Result<Cost, ProtocolError> {
        Ok(remask::cost(self.ring, self.values))
    }

    fn held(&self) -> Held {
        Held { client: 0, server: self.values as u64 * WORD }
    }
}

impl Describe for Reveal {
    fn name(&self) -> &'static str {
        "share.reveal"
    }

    fn ring(&self) -> Ring {
        self.from
    }

    fn makes_known(&self, inputs_known: bool) -> bool {
        inputs_known
    }

    fn build(&self, _: &Sets) -> Result<Built, ProtocolError> {
        Ok(Built::Reveal(*self))
    }
}

impl Facts for Reveal {
    fn online_cost(&self) -> Result<Cost, ProtocolError> {
        Ok(remask::cost(self.from, self.values))
    }
}
