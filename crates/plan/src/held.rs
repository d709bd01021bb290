//! What each party keeps of one prepared prediction until it is used.

use lanner_protocol::ProtocolError;
use lanner_protocol::linear::gazelle::packing::Packing;
use lanner_protocol::nonlinear::yao;

use crate::lower::SLOTS;
use crate::{Plan, PlanError, Protocol};

/// Bytes that each party keeps of one prepared prediction, to within small change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// The client's: prepared encryptions and decryptions, garbled tables, labels, products.
    pub client: u64,
    /// The server's: prepared sealings, labels, products.
    pub server: u64,
}

impl Plan {
    /// What each party keeps of one prepared prediction.
    ///
    /// # Errors
    /// [`PlanError::Layer`] naming a step that does not fit its protocol.
    pub fn held(&self) -> Result<Held, PlanError> {
        let mut sum = Held::default();
        for step in &self.steps {
            let held = held(&step.protocol)
                .map_err(|source| PlanError::Layer { node: step.name.clone(), source })?;
            sum.client += held.client;
            sum.server += held.server;
        }
        Ok(sum)
    }
}

fn held(protocol: &Protocol) -> Result<Held, ProtocolError> {
    Ok(match protocol {
        Protocol::GazelleLinear { shape, kernel, .. } => {
            let operations = Packing::of(shape, SLOTS, *kernel)?.operations();
            ciphertexts(operations.input_ciphertexts as u64, operations.output_ciphertexts as u64)
        }
        Protocol::GazelleSquare { values, .. } => {
            let count = values.div_ceil(SLOTS) as u64;
            let held = ciphertexts(2 * count, count);
            // The server also keeps its own share, ready to multiply and to add.
            Held { server: held.server + count * OWN_SHARE_LIMBS * SLOTS as u64 * WORD, ..held }
        }
        Protocol::Yao { function, windows, from, to } => {
            let layer = yao::Layer::new(*function, windows, *from, *to)?;
            let circuit = layer.circuit();
            let labels = (circuit.evaluator_inputs() * layer.instances()) as u64 * LABEL;
            let products = layer.output_bits() as u64 * WORD;
            let tables = circuit.table_bytes(layer.instances()) as u64;
            Held { client: tables + labels + products, server: labels + products }
        }
        Protocol::YaoArgMax { classes, from } => {
            let layer = yao::ArgMax::new(*classes, *from)?;
            let labels = layer.circuit().evaluator_inputs() as u64 * LABEL;
            Held { client: layer.circuit().table_bytes(1) as u64 + labels, server: labels }
        }
        Protocol::Remask { values, .. } => Held { client: 0, server: *values as u64 * WORD },
        Protocol::SumPool { .. }
        | Protocol::Add { .. }
        | Protocol::Scale { .. }
        | Protocol::Move { .. }
        | Protocol::Reveal { .. } => Held::default(),
    })
}

/// The halves that a layer of so many ciphertexts prepares.
fn ciphertexts(inputs: u64, outputs: u64) -> Held {
    let limb = SLOTS as u64 * WORD;
    Held {
        client: (inputs * ENCRYPTION_LIMBS + outputs * DECRYPTION_LIMBS) * limb,
        server: outputs * SEALING_LIMBS * limb,
    }
}

/// Limbs of a multiplier and of a plaintext.
const OWN_SHARE_LIMBS: u64 = 4 + 1;
/// Limbs of a prepared encryption.
const ENCRYPTION_LIMBS: u64 = 3;
/// Limbs of a prepared decryption.
const DECRYPTION_LIMBS: u64 = 1;
/// Limbs of an output that is sealed but for its message: the first half, and the flooding less the mask.
const SEALING_LIMBS: u64 = 3 + 2;
const WORD: u64 = 8;
const LABEL: u64 = 16;
