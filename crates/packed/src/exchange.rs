//! Ciphertexts to the server and back, in two halves: what every protocol on packed slots sends.

mod client;
mod server;

pub use client::{ClientLayer, ClientMaterial, ClientPending, ClientRequest, SlotEncoding};
pub(crate) use server::{Masks, Sealed, ServerExchange};

use lanner_bfv::function_privacy::{Budget, half_len};
use lanner_bfv::halves::{C0, C1};
use lanner_bfv::{NoiseBound, Parameters, PlaintextModulus};
use lanner_step::{Cost, Memory, OfflineCost, ProtocolError, limb};

/// The cost of the offline phase of a given number of ciphertexts modulo `prime` each way.
pub(crate) fn offline_cost(
    [inputs, outputs]: [usize; 2],
    parameters: &Parameters,
    prime: u64,
) -> Result<OfflineCost, ProtocolError> {
    let half = half_len(&PlaintextModulus::new(parameters, prime)?)?;
    Ok(OfflineCost {
        request: Cost::NONE.client(inputs * C1::ENCODED_LEN),
        answer: (0..outputs).fold(Cost::NONE, |cost, _| cost.server(half)),
    })
}

/// The cost of the online phase of a given number of ciphertexts modulo `prime` each way.
pub(crate) fn online_cost(
    [inputs, outputs]: [usize; 2],
    parameters: &Parameters,
    prime: u64,
) -> Result<Cost, ProtocolError> {
    let (input, output) =
        (C0::encoded_len(parameters), half_len(&PlaintextModulus::new(parameters, prime)?)?);
    let sent = (0..inputs).fold(Cost::NONE, |cost, _| cost.client(input));
    Ok((0..outputs).fold(sent, |cost, _| cost.server(output)))
}

/// How outputs modulo `prime` are sealed whose noise is within a bound.
///
/// # Errors
/// [`ProtocolError::Bfv`] if the prime does not fit the parameters, or there is no room to hide so much noise.
pub(crate) fn sealing(
    parameters: &Parameters,
    prime: u64,
    noise: NoiseBound,
) -> Result<Budget, ProtocolError> {
    Ok(Budget::new(&PlaintextModulus::new(parameters, prime)?, noise)?)
}

/// The halves that a given number of ciphertexts each way prepare, outputs sealed so.
pub(crate) fn halves([inputs, outputs]: [usize; 2], parameters: &Parameters, sealing: Budget) -> Memory {
    let (inputs, outputs, limbs) = (inputs as u64, outputs as u64, parameters.limbs() as u64);
    let sent = sealing.wire_limbs() as u64;
    // The flooding less the mask is apart only where limbs are dropped before it.
    let flooded = Some(sealing.flood_limbs() as u64).filter(|flooded| *flooded < limbs).unwrap_or(0);
    Memory {
        // A prepared encryption has all limbs, a prepared decryption those that are sent.
        client_material: (inputs * limbs + outputs * sent) * limb(parameters),
        // An output that is sealed but for its message: the first half, and what hides it.
        server_material: outputs * (limbs + flooded) * limb(parameters),
        ..Memory::default()
    }
}
