//! Protocols on the slots of ciphertexts.

use std::collections::BTreeSet;

use lanner_bfv::Parameters;
use lanner_protocol::linear::gazelle::packing::{Packing, Rotation};
use lanner_protocol::linear::gazelle::{self, Kernel, ServerLayer};
use lanner_protocol::linear::{Convolution, Form, Set, Sets};
use lanner_protocol::nonlinear::ot_nonlinear::CotSupply;
use lanner_protocol::nonlinear::square::Target;
use lanner_protocol::{Cost, OfflineCost, ProtocolError};
use lanner_share::Ring;
use serde::{Deserialize, Serialize};

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
    /// The kernel.
    pub kernel: Kernel,
}

/// The square of each element, over `Z_prime`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Square {
    /// Number of elements.
    pub values: usize,
    /// The plaintext modulus.
    pub prime: u64,
}

/// The square of each element and the linear layer that takes the squares, over `Z_prime`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SquareLinear {
    /// The layer's shape.
    pub shape: Convolution,
    /// The plaintext modulus.
    pub prime: u64,
    /// The layer's kernel.
    pub kernel: Kernel,
}

/// A linear layer with its layout.
#[derive(Clone, Debug)]
pub struct BuiltLinear {
    /// The parameters of its ciphertexts.
    pub parameters: Parameters,
    /// Where elements sit.
    pub packing: Packing,
    /// The plaintext modulus.
    pub prime: u64,
    /// How the server keeps the weights.
    pub form: Form,
}

/// Squares with what becomes of them.
#[derive(Clone, Debug)]
pub struct BuiltSquare {
    /// The parameters of its ciphertexts.
    pub parameters: Parameters,
    /// What becomes of the squares.
    pub target: Target,
    /// The plaintext modulus.
    pub prime: u64,
    /// How the server keeps the weights, if there are some.
    pub form: Form,
}

impl Describe for Linear {
    fn name(&self) -> &'static str {
        if is_fully_connected(&self.shape) { "gazelle.fc" } else { "gazelle.conv" }
    }

    fn ring(&self) -> Ring {
        Ring::Prime(self.prime)
    }

    fn makes_known(&self, _: bool) -> bool {
        true
    }

    fn build(&self, sets: &Sets) -> Result<Built, ProtocolError> {
        let parameters = sets.get(SET).clone();
        let packing = Packing::of(&self.shape, parameters.degree(), self.kernel)?;
        let built = BuiltLinear { parameters, packing, prime: self.prime, form: Form::Compact };
        Ok(Built::Linear(Box::new(built)))
    }
}

impl Facts for BuiltLinear {
    fn offline_cost(&self, _: &mut CotSupply) -> Result<OfflineCost, ProtocolError> {
        gazelle::offline_cost(&self.packing, &self.parameters, self.prime)
    }

    fn online_cost(&self) -> Result<Cost, ProtocolError> {
        gazelle::online_cost(&self.packing, &self.parameters, self.prime)
    }

    fn held(&self) -> Held {
        halves(self.packing.ciphertexts(), &self.parameters)
    }

    fn memory(&self) -> Result<Memory, ProtocolError> {
        layer_memory(&self.packing, &self.parameters, self.prime, self.form)
    }

    fn keys(&self) -> Option<Set> {
        Some(SET)
    }

    fn rotations(&self) -> BTreeSet<Rotation> {
        self.packing.keys()
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        operations(&self.packing)
    }
}

impl Describe for Square {
    fn name(&self) -> &'static str {
        "gazelle.square"
    }

    fn ring(&self) -> Ring {
        Ring::Prime(self.prime)
    }

    fn makes_known(&self, _: bool) -> bool {
        true
    }

    fn build(&self, sets: &Sets) -> Result<Built, ProtocolError> {
        Ok(square(sets, Target::Shares(self.values), self.prime))
    }
}

impl Describe for SquareLinear {
    fn name(&self) -> &'static str {
        if is_fully_connected(&self.shape) { "gazelle.square_fc" } else { "gazelle.square_conv" }
    }

    fn ring(&self) -> Ring {
        Ring::Prime(self.prime)
    }

    fn makes_known(&self, _: bool) -> bool {
        true
    }

    fn build(&self, sets: &Sets) -> Result<Built, ProtocolError> {
        let packing = Packing::of(&self.shape, sets.get(SET).degree(), self.kernel)?;
        Ok(square(sets, Target::Layer(Box::new(packing)), self.prime))
    }
}

fn square(sets: &Sets, target: Target, prime: u64) -> Built {
    let parameters = sets.get(SET).clone();
    Built::Square(Box::new(BuiltSquare { parameters, target, prime, form: Form::Compact }))
}

impl Facts for BuiltSquare {
    fn offline_cost(&self, _: &mut CotSupply) -> Result<OfflineCost, ProtocolError> {
        self.target.offline_cost(&self.parameters, self.prime)
    }

    fn online_cost(&self) -> Result<Cost, ProtocolError> {
        self.target.online_cost(&self.parameters, self.prime)
    }

    fn held(&self) -> Held {
        let [inputs, outputs] = self.target.ciphertexts(&self.parameters);
        let held = halves([inputs, outputs], &self.parameters);
        // The server also keeps its own share, ready to multiply and to add: once for the two inputs that carry it.
        let own = (inputs / 2) as u64 * OWN_SHARE_LIMBS * limb(&self.parameters);
        Held { server: held.server + own, ..held }
    }

    fn memory(&self) -> Result<Memory, ProtocolError> {
        match &self.target {
            Target::Shares(_) => Ok(Memory::default()),
            Target::Layer(packing) => layer_memory(packing, &self.parameters, self.prime, self.form),
        }
    }

    fn keys(&self) -> Option<Set> {
        Some(SET)
    }

    fn rotations(&self) -> BTreeSet<Rotation> {
        match &self.target {
            Target::Shares(_) => BTreeSet::new(),
            Target::Layer(packing) => packing.keys(),
        }
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        match &self.target {
            Target::Shares(_) => Vec::new(),
            Target::Layer(packing) => operations(packing),
        }
    }
}

fn is_fully_connected(shape: &Convolution) -> bool {
    shape.image == [1, 1]
}

/// What the weights of a layer take, and its work.
fn layer_memory(
    packing: &Packing,
    parameters: &Parameters,
    prime: u64,
    form: Form,
) -> Result<Memory, ProtocolError> {
    let model = ServerLayer::bytes(packing, parameters, prime, form);
    Ok(Memory { model, working: gazelle::working_bytes(packing, parameters)?, ..Memory::default() })
}

/// What a layer costs the server.
fn operations(packing: &Packing) -> Vec<(&'static str, u64)> {
    let operations = packing.operations();
    vec![
        ("hoisted_rotations", operations.hoisted_rotations as u64),
        ("rotations", operations.rotations as u64),
        ("multiplications", operations.multiplications as u64),
        ("input_ciphertexts", operations.input_ciphertexts as u64),
        ("output_ciphertexts", operations.output_ciphertexts as u64),
    ]
}

/// The parameter set of these protocols.
pub const SET: Set = Set::B;

/// The halves that so many ciphertexts each way prepare.
pub(super) fn halves([inputs, outputs]: [usize; 2], parameters: &Parameters) -> Held {
    let (inputs, outputs, limbs) = (inputs as u64, outputs as u64, parameters.limbs() as u64);
    Held {
        // A prepared encryption has all limbs, a prepared decryption those that are sent.
        client: (inputs * limbs + outputs * SENT_LIMBS) * limb(parameters),
        // An output that is sealed but for its message: the first half, and the flooding less the mask.
        server: outputs * (limbs + FLOODED_LIMBS) * limb(parameters),
    }
}

/// Bytes of one residue of a polynomial.
pub(super) fn limb(parameters: &Parameters) -> u64 {
    parameters.degree() as u64 * WORD
}

/// Limbs of a prepared multiplier with its coefficients, and of a plaintext.
const OWN_SHARE_LIMBS: u64 = 3 + 1 + 1;
/// Limbs that are sent, and at which noise is flooded.
const SENT_LIMBS: u64 = 1;
const FLOODED_LIMBS: u64 = 2;
