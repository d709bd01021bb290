//! How many limbs the steps of sealing take, and how wide the flooding is.

use super::{CIPHERTEXT_BITS, Distance};
use crate::noise::rounding;
use crate::{BfvError, NoiseBound, Parameters, PlaintextModulus};

/// The public plan of a sealing: limbs and flooding width, from the parameters, `t` and the noise bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    flood_limbs: usize,
    flood_bits: u32,
    wire_limbs: usize,
    distance_bits: f64,
}

impl Budget {
    /// Plans the sealing of ciphertexts modulo `t` of all limbs whose noise is within `noise`.
    ///
    /// The flooding gets all the room that there is, at the fewest limbs that have enough.
    ///
    /// # Errors
    /// [`BfvError::Budget`] if the flooding is too narrow at every number of limbs.
    pub fn new(modulus: &PlaintextModulus, noise: NoiseBound) -> Result<Self, BfvError> {
        Self::at(modulus, noise, modulus.parameters().limbs())
    }

    /// Plans the sealing of ciphertexts of a number of limbs.
    ///
    /// # Errors
    /// As [`Self::new`]; [`BfvError::Limbs`] unless the parameters have so many.
    pub fn at(modulus: &PlaintextModulus, noise: NoiseBound, limbs: usize) -> Result<Self, BfvError> {
        let parameters = modulus.parameters();
        parameters.check_limbs(limbs)?;
        let wire_limbs = wire_limbs(modulus)?;
        let plan = |flood_limbs| {
            let (hidden, available) = flood_bits(modulus, noise, [limbs, flood_limbs, wire_limbs]);
            let flood_bits = available.min(LARGEST_FLOOD);
            let distance_bits = flood_bits - hidden;
            // Negative where not even the message fits: the distance is then beyond every bound.
            Self { flood_limbs, flood_bits: flood_bits as u32, wire_limbs, distance_bits }
        };
        let plans = (wire_limbs..=limbs).map(plan);
        let enough = |plan: &Self| plan.distance_bits >= CIPHERTEXT_BITS;
        let log2_modulus = parameters.log2_modulus(limbs);
        let missing = |plan: Self| CIPHERTEXT_BITS - plan.distance_bits;
        plans.clone().find(enough).ok_or_else(|| BfvError::Budget {
            step: "hiding the function",
            needed: log2_modulus + plans.map(missing).fold(f64::INFINITY, f64::min),
            available: log2_modulus,
        })
    }

    /// How far a ciphertext sealed so may be from one that does not depend on the noise.
    #[must_use]
    pub fn distance(self) -> Distance {
        Distance::of_bits(self.distance_bits)
    }

    /// The limbs at which the noise is flooded.
    #[must_use]
    pub fn flood_limbs(self) -> usize {
        self.flood_limbs
    }

    /// `b`: each coefficient of the flooding is a centred sum of three uniform integers below `2^b`.
    #[must_use]
    pub fn flood_bits(self) -> u32 {
        self.flood_bits
    }

    /// The limbs that are sent: they depend on the parameters and `t` alone.
    #[must_use]
    pub fn wire_limbs(self) -> usize {
        self.wire_limbs
    }
}

/// The fewest limbs with room for the message, half a step of flooding and the rounding of the last switch.
///
/// # Errors
/// [`BfvError::Budget`] if all limbs do not suffice.
pub(crate) fn wire_limbs(modulus: &PlaintextModulus) -> Result<usize, BfvError> {
    let parameters = modulus.parameters();
    let needed = (modulus.value() as f64).log2() + 1.0 + WIRE_MARGIN;
    let enough = |limbs: &usize| parameters.log2_modulus(*limbs) >= needed;
    (1..=parameters.limbs()).find(enough).ok_or(BfvError::Budget {
        step: "sending a message",
        needed,
        available: parameters.log2_modulus(parameters.limbs()),
    })
}

/// `log2` of `2^b` times the distance, and the largest `b` that leaves the message readable.
fn flood_bits(
    modulus: &PlaintextModulus,
    noise: NoiseBound,
    [limbs, flood_limbs, wire_limbs]: [usize; 3],
) -> (f64, f64) {
    let parameters = modulus.parameters();
    let degree = parameters.degree();
    let blinded = noise.plus(NoiseBound::public_key(parameters));
    let switched = blinded.switched_modulus(parameters, limbs, flood_limbs);
    // The scale of the mask is rounded, and so is that of the message which the hidden noise is compared against.
    let hidden = shift_bits(degree, switched.deviation() + 1.0);
    let largest = switched.infinity(degree) + 0.5;

    let step = |limbs| (parameters.log2_modulus(limbs) - (modulus.value() as f64).log2() - 1.0).exp2();
    let at_flood = step(flood_limbs) - largest;
    let dropped = (parameters.log2_modulus(flood_limbs) - parameters.log2_modulus(wire_limbs)).exp2();
    let roundings = rounding_bound(parameters, flood_limbs - wire_limbs);
    let at_wire = (step(wire_limbs) - roundings) * dropped - largest;
    // Decryption finds the fraction to within a small part of a step.
    let room = at_flood.min(at_wire) * (1.0 - DECODING_ERROR);
    (hidden, (room.max(1.0) / REACH).log2().floor())
}

/// `log2` of `2^b` times the distance of a flooding of width `2^b` from itself and noise of this deviation in `count` coefficients.
pub(super) fn shift_bits(count: usize, deviation: f64) -> f64 {
    (DISTANCE * (count as f64).sqrt() * deviation).log2()
}

/// A bound on the rounding of `switches` modulus switches, all but the last of which are divided again.
fn rounding_bound(parameters: &Parameters, switches: usize) -> f64 {
    if switches == 0 {
        return 0.0;
    }
    NoiseBound::NONE.rescaled(parameters).infinity(parameters.degree()) + rounding(parameters)
}

/// The flooding and its shift by `e` are within statistical distance `DISTANCE ||e||_2 / 2^b`.
pub(super) const DISTANCE: f64 = 1.07;

/// No coefficient of the flooding exceeds `REACH 2^b`.
const REACH: f64 = 1.5;

/// `log2` of what a step must exceed in the modulus that is sent.
const WIRE_MARGIN: f64 = 12.0;

/// The widest flooding the sampler gives.
const LARGEST_FLOOD: f64 = 120.0;

const DECODING_ERROR: f64 = 1.0 / 4096.0;
