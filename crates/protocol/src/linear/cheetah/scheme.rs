//! The parameters of a layer: ciphertexts, and the modulus in which outputs are sent.

use lanner_bfv::function_privacy::{CIPHERTEXT_BITS, PhaseModulus};
use lanner_bfv::halves::{C0, C1};
use lanner_bfv::{NoiseBound, ParameterSet, Parameters};
use serde::{Deserialize, Serialize};

use super::packing::Packing;
use crate::linear::Convolution;
use crate::step::Answers;
use crate::{Cost, OfflineCost, ProtocolError};

/// How often the sum of both shares differs from the layer's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Accuracy {
    /// But for a probability of `2^-64` for each ciphertext, never.
    Exact,
    /// The same in a prediction of more ciphertexts than [`CIPHERTEXT_BITS`] is enough for, each of which has a wider flooding: of up to
    /// [`MANY`] times as many.
    ExactAmongMany,
    /// By one at most, for one value in some hundreds. Which ones depends on weights and on noise that the client knows a part of, so no
    /// result may be made of such a sum.
    OffByOne,
}

/// By how much more ciphertexts may be [`Accuracy::ExactAmongMany`]. Their distances add up in squares.
const MANY: f64 = 16.0;

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
    /// The parameter sets of its layers, the cheapest first.
    #[must_use]
    pub const fn sets(self) -> &'static [ParameterSet] {
        match self {
            Self::Exact | Self::ExactAmongMany => &[ParameterSet::A1, ParameterSet::A2, ParameterSet::B],
            Self::OffByOne => &[ParameterSet::A0, ParameterSet::A1],
        }
    }
}

impl Scheme {
    /// A layer over `Z_2^bits` whose weights have at most [`Scheme::weight_bits`] bits with their sign.
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
        let norm = f64::from(1 << (Self::weight_bits(bits) - 1)) * (packing.taps() as f64).sqrt();
        // The scale of the client's message is rounded once, that of the server's once more.
        let noise = NoiseBound::fresh().plus_plaintext().multiplied_by_norm(norm);
        let modulus = match accuracy {
            Accuracy::Exact => PhaseModulus::exact(parameters, bits, packing.most_outputs(), noise)?,
            Accuracy::ExactAmongMany => {
                let distance = CIPHERTEXT_BITS + MANY.log2() / 2.0;
                PhaseModulus::exact_within(distance, parameters, bits, packing.most_outputs(), noise)?
            }
            Accuracy::OffByOne => PhaseModulus::faithful(parameters, bits, noise)?,
        };
        Ok(Self { packing, parameters: parameters.clone(), modulus, bits, noise, norm })
    }

    /// Bits of a weight of a layer over `Z_2^bits`, sign included. Wider weights make more noise, which takes a wider phase to hide, and the
    /// ring is all that a client knows of them: narrow ones have no room for more than 12 bits beside those of activations.
    #[must_use]
    pub const fn weight_bits(bits: u32) -> u32 {
        match bits {
            ..=26 => 12,
            27..=29 => bits - 14,
            _ => 16,
        }
    }

    /// The parameters of its ciphertexts.
    #[must_use]
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// How the layer is spread over ciphertexts.
    #[must_use]
    pub fn packing(&self) -> &Packing {
        &self.packing
    }

    /// The ciphertexts that the client receives.
    #[must_use]
    pub fn answers(&self) -> Answers {
        let [_, outputs] = self.packing.ciphertexts();
        let each = self.modulus.distance(self.packing.most_outputs(), self.noise);
        Answers { ciphertexts: outputs as u64, each }
    }

    /// The cost of the offline phase.
    #[must_use]
    pub fn offline_cost(&self) -> OfflineCost {
        let [inputs, outputs] = self.packing.ciphertexts();
        let second = self.modulus.second_half_len();
        OfflineCost {
            request: Cost::NONE.client(inputs * C1::ENCODED_LEN),
            answer: (0..outputs).fold(Cost::NONE, |cost, _| cost.server(second)),
        }
    }

    /// The cost of the online phase.
    #[must_use]
    pub fn online_cost(&self) -> Cost {
        let [inputs, _] = self.packing.ciphertexts();
        let sent = (0..inputs).fold(Cost::NONE, |cost, _| cost.client(C0::encoded_len(&self.parameters)));
        let replies = self.packing.outputs();
        replies.iter().fold(sent, |cost, wanted| cost.server(self.modulus.c0_len(wanted.len())))
    }
}
