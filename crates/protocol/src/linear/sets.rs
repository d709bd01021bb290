//! The parameter sets of linear layers.

use std::collections::BTreeMap;

use lanner_bfv::{ParameterSet, Parameters};

use crate::ProtocolError;

/// The parameter sets that linear layers use, built once.
#[derive(Clone, Debug)]
pub struct Sets(BTreeMap<ParameterSet, Parameters>);

impl Sets {
    /// Builds the sets.
    ///
    /// # Errors
    /// None: the sets are ones that are accepted.
    pub fn new() -> Result<Self, ProtocolError> {
        use ParameterSet::{A0, A1, A2, B, C1, C2, C3, W};
        let built = [A0, A1, A2, B, C1, C2, C3, W].map(|set| Ok((set, set.parameters()?)));
        built.into_iter().collect::<Result<_, ProtocolError>>().map(Self)
    }

    /// The parameters of a set.
    ///
    /// # Errors
    /// [`ProtocolError::Shape`] if no linear layer uses the set.
    pub fn get(&self, set: ParameterSet) -> Result<&Parameters, ProtocolError> {
        self.0.get(&set).ok_or(ProtocolError::Shape { what: "a parameter set of linear layers" })
    }
}
