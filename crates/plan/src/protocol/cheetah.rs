//! Linear layers in coefficient encodings.

use lanner_protocol::linear::cheetah::{Accuracy, Scheme};
use lanner_protocol::linear::{Convolution, Set, Sets};
use lanner_protocol::nonlinear::ot_nonlinear::CotSupply;
use lanner_protocol::{Cost, OfflineCost, ProtocolError};
use lanner_share::Ring;
use serde::{Deserialize, Serialize};

use super::packed::limb;
use super::{Built, Describe, Facts};
use crate::{Held, Memory};

/// A linear layer over `Z_2^bits`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Linear {
    /// The layer's shape.
    pub shape: Convolution,
    /// The ring.
    pub bits: u32,
    /// The parameter set.
    pub set: Set,
    /// How often outputs may be off by one.
    pub accuracy: Accuracy,
}

/// A linear layer with its layout.
#[derive(Clone, Debug)]
pub struct BuiltLinear {
    /// The set of its ciphertexts.
    pub set: Set,
    /// Where elements sit, and in which modulus outputs are sent.
    pub scheme: Scheme,
}

impl Describe for Linear {
    fn name(&self) -> &'static str {
        if self.shape.image[0] * self.shape.image[1] == 1 { "cheetah.fc" } else { "cheetah.conv" }
    }

    fn ring(&self) -> Ring {
        Ring::Pow2(self.bits)
    }

    fn makes_known(&self, _: bool) -> bool {
        true
    }

    fn build(&self, sets: &Sets) -> Result<Built, ProtocolError> {
        let scheme = Scheme::new(&self.shape, self.bits, self.accuracy, sets.get(self.set))?;
        Ok(Built::CheetahLinear(Box::new(BuiltLinear { set: self.set, scheme })))
    }
}

impl Facts for BuiltLinear {
    fn offline_cost(&self, _: &mut CotSupply) -> Result<OfflineCost, ProtocolError> {
        Ok(self.scheme.offline_cost())
    }

    fn online_cost(&self) -> Result<Cost, ProtocolError> {
        Ok(self.scheme.online_cost())
    }

    fn held(&self) -> Held {
        let [inputs, outputs] = self.scheme.packing().ciphertexts().map(|count| count as u64);
        let parameters = self.scheme.parameters();
        let half = limb(parameters) * parameters.limbs() as u64;
        // At most all coefficients of an output are masked, each by two words.
        let masks = 2 * limb(parameters);
        Held { client: inputs * half + outputs * masks, server: outputs * (half + masks) }
    }

    fn memory(&self) -> Result<Memory, ProtocolError> {
        let (packing, parameters) = (self.scheme.packing(), self.scheme.parameters());
        let [inputs, _] = packing.ciphertexts();
        let half = limb(parameters) * parameters.limbs() as u64;
        // Every input, and the sum in work.
        let working = 2 * (inputs as u64 + 1) * half;
        Ok(Memory { model: packing.factors() as u64 * half, working, ..Memory::default() })
    }

    fn keys(&self) -> Option<Set> {
        Some(self.set)
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        let packing = self.scheme.packing();
        let [inputs, outputs] = packing.ciphertexts();
        vec![
            ("degree", self.scheme.parameters().degree() as u64),
            ("multiplications", packing.products() as u64),
            ("input_ciphertexts", inputs as u64),
            ("output_ciphertexts", outputs as u64),
        ]
    }
}
