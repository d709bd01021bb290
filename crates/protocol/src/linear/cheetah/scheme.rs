//! The parameters of a layer: ciphertexts, and the modulus in which outputs are sent.

use lanner_bfv::halves::{FirstHalf, SecondHalf};
use lanner_bfv::outgoing::PhaseModulus;
use lanner_bfv::{NoiseBound, ParameterSet, Parameters, PublicKey, SecretKey};
use lanner_wire::{Channel, Encode};
use rand_core::CryptoRng;
use serde::{Deserialize, Serialize};

use super::packing::Packing;
use crate::linear::Convolution;
use crate::{Cost, OfflineCost, ProtocolError, kind};

/// How often the sum of both shares differs from the layer's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Accuracy {
    /// But for a probability of `2^-40` for each ciphertext, never.
    Exact,
    /// By one at most, for one value in some hundreds.
    OffByOne,
}

/// All that both parties know of a layer.
#[derive(Clone, Debug)]
pub struct Scheme {
    pub(super) packing: Packing,
    pub(super) parameters: Parameters,
    pub(super) modulus: PhaseModulus,
    pub(super) bits: u32,
    pub(super) noise: NoiseBound,
    /// A bound on the 2-norm of the filters of one output ciphertext.
    pub(super) norm: f64,
}

impl Accuracy {
    /// The parameter set of its layers.
    #[must_use]
    pub const fn parameter_set(self) -> ParameterSet {
        match self {
            Self::Exact => ParameterSet::A1,
            Self::OffByOne => ParameterSet::A0,
        }
    }
}

impl Scheme {
    /// A layer over `Z_2^bits` whose weights have at most [`Scheme::WEIGHT_BITS`] bits with their sign.
    ///
    /// # Errors
    /// [`ProtocolError::Shape`] if the shape does not fit; [`ProtocolError::Bfv`] if its noise leaves too little room.
    pub fn new(
        shape: &Convolution,
        bits: u32,
        accuracy: Accuracy,
        parameters: &Parameters,
    ) -> Result<Self, ProtocolError> {
        let packing = Packing::cheapest(shape, parameters.degree())?;
        let norm = f64::from(1 << (Self::WEIGHT_BITS - 1)) * (packing.taps() as f64).sqrt();
        // The scale of the client's message is rounded once, that of the server's once more.
        let noise = NoiseBound::fresh().plus_plaintext().multiplied_by_norm(norm);
        let modulus = match accuracy {
            Accuracy::Exact => PhaseModulus::exact(parameters, bits, noise)?,
            Accuracy::OffByOne => PhaseModulus::faithful(parameters, bits, noise)?,
        };
        Ok(Self { packing, parameters: parameters.clone(), modulus, bits, noise, norm })
    }

    /// Bits of a weight, sign included.
    pub const WEIGHT_BITS: u32 = 12;

    /// How the layer is spread over ciphertexts.
    #[must_use]
    pub fn packing(&self) -> &Packing {
        &self.packing
    }

    /// The cost of the offline phase.
    #[must_use]
    pub fn offline_cost(&self) -> OfflineCost {
        let [inputs, outputs] = self.packing.ciphertexts();
        let second = self.modulus.second_half_len();
        OfflineCost {
            request: Cost::NONE.client(inputs * SecondHalf::ENCODED_LEN),
            answer: (0..outputs).fold(Cost::NONE, |cost, _| cost.server(second)),
        }
    }

    /// The cost of the online phase.
    #[must_use]
    pub fn online_cost(&self) -> Cost {
        let [inputs, _] = self.packing.ciphertexts();
        let sent =
            (0..inputs).fold(Cost::NONE, |cost, _| cost.client(FirstHalf::encoded_len(&self.parameters)));
        let replies = self.packing.outputs();
        replies.iter().fold(sent, |cost, wanted| cost.server(self.modulus.first_half_len(wanted.len())))
    }
}

/// The client makes its key and sends the public half.
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
    channel.flush()?;
    Ok(key)
}

/// The server receives the client's public key.
///
/// # Errors
/// [`ProtocolError::Channel`] if the peer's message is not the one due.
pub fn receive_key(channel: &mut dyn Channel, parameters: &Parameters) -> Result<PublicKey, ProtocolError> {
    let bytes = channel.receive(kind::PUBLIC_KEY, PublicKey::encoded_len(parameters))?;
    Ok(PublicKey::from_bytes(parameters, &bytes)?)
}

/// The cost of sending the key.
#[must_use]
pub fn key_cost(parameters: &Parameters) -> Cost {
    Cost::NONE.client(PublicKey::encoded_len(parameters))
}
