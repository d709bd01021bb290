//! Parameter sets, the choice among them, and the keys: a public key for each set, and nothing else.

use lanner_bfv::outgoing::Budget;
use lanner_bfv::{ParameterSet, Parameters, PlaintextModulus, PublicKey, SecretKey};
use lanner_wire::{Channel, Encode};
use rand_core::CryptoRng;
use serde::{Deserialize, Serialize};

use super::arrangement::{Operations, Variant};
use super::noise;
use super::packing::{Packing, candidates};
use crate::linear::Convolution;
use crate::{Cost, ProtocolError, kind};

/// The parameter sets that these layers use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Set {
    /// [`ParameterSet::A2`]: `N = 4096`, two limbs.
    A2,
    /// [`ParameterSet::B`]: `N = 8192`, three limbs; its special one is not used.
    B,
}

/// Both sets, built once.
#[derive(Clone, Debug)]
pub struct Sets {
    a2: Parameters,
    b: Parameters,
}

impl Set {
    /// All sets, smallest first.
    pub const ALL: [Self; 2] = [Self::A2, Self::B];
}

impl Sets {
    /// Builds the sets.
    ///
    /// # Errors
    /// None: the sets are ones that are accepted.
    pub fn new() -> Result<Self, ProtocolError> {
        Ok(Self { a2: ParameterSet::A2.parameters()?, b: ParameterSet::B.parameters()? })
    }

    /// The parameters of a set.
    #[must_use]
    pub fn get(&self, set: Set) -> &Parameters {
        match set {
            Set::A2 => &self.a2,
            Set::B => &self.b,
        }
    }
}

/// Every set and variant whose noise can be hidden, with what each costs.
///
/// # Errors
/// [`ProtocolError::Shape`] if the shape is not one.
pub fn choices(
    shape: &Convolution,
    prime: u64,
    sets: &Sets,
) -> Result<Vec<(Set, Variant, Operations)>, ProtocolError> {
    let mut choices = Vec::new();
    for set in Set::ALL {
        let parameters = sets.get(set);
        let Ok(modulus) = PlaintextModulus::new(parameters, prime) else { continue };
        let hides = |terms| Budget::new(&modulus, noise::after(parameters, prime, terms)).is_ok();
        let all = candidates(shape, prime, parameters.degree())?.into_iter();
        choices.extend(
            all.filter(|(_, _, terms)| hides(*terms)).map(|(variant, costs, _)| (set, variant, costs)),
        );
    }
    Ok(choices)
}

/// The set and layout that cost least.
///
/// # Errors
/// [`ProtocolError::Shape`] if the shape is not one, or no set has room for its noise.
pub fn cheapest(shape: &Convolution, prime: u64, sets: &Sets) -> Result<(Set, Packing), ProtocolError> {
    let cost = |(set, _, operations): &(Set, Variant, Operations)| cost(sets.get(*set), operations);
    let best = choices(shape, prime, sets)?.into_iter().min_by_key(cost);
    let (set, variant, _) = best.ok_or(ProtocolError::Shape { what: "noise of a frequency-domain layer" })?;
    Ok((set, Packing::new(shape, prime, sets.get(set).degree(), variant)?))
}

/// Relative time and traffic of a layer.
fn cost(parameters: &Parameters, operations: &Operations) -> usize {
    let limbs = parameters.limbs();
    let values = operations.multiplications * limbs * PRODUCT
        + operations.input_ciphertexts * limbs * INPUT
        + operations.output_ciphertexts * (OUTPUT + limbs * TRANSFORM);
    values * parameters.degree()
}

/// For each value: of a product with a multiplier from memory, of an upload, of both halves of a one-limb reply, of a transform on the way there.
const PRODUCT: usize = 1;
const INPUT: usize = 60;
const OUTPUT: usize = 75;
const TRANSFORM: usize = 10;

/// Set-up: the client makes a key pair for a set and sends its public key.
///
/// # Errors
/// Those of the channel.
pub fn send_key(
    channel: &mut dyn Channel,
    parameters: &Parameters,
    rng: &mut impl CryptoRng,
) -> Result<SecretKey, ProtocolError> {
    let key = SecretKey::generate(parameters, rng);
    // C -> S: the public key
    channel.send(kind::PUBLIC_KEY, &PublicKey::generate(&key, rng).to_bytes())?;
    Ok(key)
}

/// Set-up: the server receives the client's public key for a set.
///
/// # Errors
/// [`ProtocolError::Channel`] if the peer's message is not the one due.
pub fn receive_key(channel: &mut dyn Channel, parameters: &Parameters) -> Result<PublicKey, ProtocolError> {
    let bytes = channel.receive(kind::PUBLIC_KEY, PublicKey::encoded_len(parameters))?;
    Ok(PublicKey::from_bytes(parameters, &bytes)?)
}

/// The cost of sending a public key.
#[must_use]
pub fn key_cost(parameters: &Parameters) -> Cost {
    Cost::NONE.client(PublicKey::encoded_len(parameters))
}
