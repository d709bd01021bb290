//! Linear layers in the frequency domain.

use lanner_bfv::Parameters;
use lanner_protocol::linear::falcon::{self, Packing, ServerLayer, Variant};
use lanner_protocol::linear::{Convolution, Form, Set, Sets};
use lanner_protocol::nonlinear::ot_nonlinear::CotSupply;
use lanner_protocol::{Cost, OfflineCost, ProtocolError};
use lanner_share::Ring;
use serde::{Deserialize, Serialize};

use super::packed::halves;
use super::{Built, Describe, Facts};
use crate::held::WORD;
use crate::{Held, Memory};

/// A linear layer over `Z_prime`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Linear {
    /// The layer's shape.
    pub shape: Convolution,
    /// The plaintext modulus.
    pub prime: u64,
    /// The parameter set.
    pub set: Set,
    /// How products are laid out and added.
    pub variant: Variant,
}

/// A linear layer with its layout.
#[derive(Clone, Debug)]
pub struct BuiltLinear {
    /// The set of its ciphertexts.
    pub set: Set,
    /// The set's parameters.
    pub parameters: Parameters,
    /// Where elements sit.
    pub packing: Packing,
    /// How the server keeps its weights.
    pub form: Form,
}

impl Describe for Linear {
    fn name(&self) -> &'static str {
        if self.shape.image[0] * self.shape.image[1] == 1 { "falcon.fc" } else { "falcon.conv" }
    }

    fn ring(&self) -> Ring {
        Ring::Prime(self.prime)
    }

    fn makes_known(&self, _: bool) -> bool {
        true
    }

    fn build(&self, sets: &Sets) -> Result<Built, ProtocolError> {
        let parameters = sets.get(self.set).clone();
        let packing = Packing::new(&self.shape, self.prime, parameters.degree(), self.variant)?;
        Ok(Built::FalconLinear(Box::new(BuiltLinear {
            set: self.set,
            parameters,
            packing,
            form: Form::Compact,
        })))
    }
}

impl Facts for BuiltLinear {
    fn offline_cost(&self, _: &mut CotSupply) -> Result<OfflineCost, ProtocolError> {
        falcon::offline_cost(&self.packing, &self.parameters)
    }

    fn online_cost(&self) -> Result<Cost, ProtocolError> {
        falcon::online_cost(&self.packing, &self.parameters)
    }

    fn held(&self) -> Held {
        halves(self.packing.ciphertexts(), &self.parameters)
    }

    fn memory(&self) -> Result<Memory, ProtocolError> {
        let model = ServerLayer::bytes(&self.packing, &self.parameters, self.form);
        // Every input, and the sum in work.
        let [inputs, _] = self.packing.ciphertexts();
        let ciphertext = (2 * self.parameters.limbs() * self.parameters.degree()) as u64 * WORD;
        Ok(Memory { model, working: (inputs as u64 + 1) * ciphertext, ..Memory::default() })
    }

    fn keys(&self) -> Option<Set> {
        Some(self.set)
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        let operations = self.packing.operations();
        vec![
            ("degree", self.parameters.degree() as u64),
            ("multiplications", operations.multiplications as u64),
            ("additions", operations.additions as u64),
            ("input_ciphertexts", operations.input_ciphertexts as u64),
            ("output_ciphertexts", operations.output_ciphertexts as u64),
        ]
    }
}
