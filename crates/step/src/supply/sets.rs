//! The parameter sets of linear layers.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use lanner_bfv::{ParameterSet, Parameters};

use crate::{ProtocolError, Result};

/// The parameter sets that linear layers use, each built when it is first wanted.
#[derive(Clone, Debug, Default)]
pub struct Sets(BTreeMap<ParameterSet, OnceLock<Parameters>>);

impl Sets {
    /// The sets.
    ///
    /// # Errors
    /// None: the sets are ones that are accepted.
    pub fn new() -> Result<Self> {
        use ParameterSet::{A0, A1, A2, B, C1, C2, C3, C4, C5, L, LPrime, W};
        Ok(Self([A0, A1, A2, B, C1, C2, C3, C4, C5, W, L, LPrime].map(|set| (set, OnceLock::new())).into()))
    }

    /// The parameters of a set.
    ///
    /// # Errors
    /// [`ProtocolError::NotSetUp`] if no linear layer uses the set.
    pub fn get(&self, set: ParameterSet) -> Result<&Parameters> {
        let built = self.0.get(&set).ok_or(ProtocolError::NotSetUp("the step's parameter set"))?;
        if let Some(parameters) = built.get() {
            return Ok(parameters);
        }
        let parameters = set.parameters()?;
        Ok(built.get_or_init(|| parameters))
    }
}
