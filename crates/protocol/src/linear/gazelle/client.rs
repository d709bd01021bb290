//! The client's side of a packed layer.

use lanner_bfv::{OutgoingCiphertext, Parameters, SecretKey, SlotEncoder};
use lanner_share::{Ring, Share};
use lanner_wire::{Channel, Encode};
use rand_core::CryptoRng;

use super::packing::Packing;
use crate::{ProtocolError, kind};

/// A layer as the client knows it: its layout and its ring.
pub struct ClientLayer {
    packing: Packing,
    encoder: SlotEncoder,
    ring: Ring,
}

impl ClientLayer {
    /// Prepares a layer modulo `prime`.
    ///
    /// # Errors
    /// [`ProtocolError::Bfv`] if the prime does not fit the parameters.
    pub fn new(packing: Packing, parameters: &Parameters, prime: u64) -> Result<Self, ProtocolError> {
        let encoder = SlotEncoder::new(parameters, prime)?;
        Ok(Self { packing, encoder, ring: Ring::Prime(prime) })
    }

    /// Online: sends the encrypted share, receives the client's share of the layer's output.
    ///
    /// # Errors
    /// [`ProtocolError::Channel`] if the peer's message is not the one due; [`ProtocolError::Share`] if `share` does
    /// not fit.
    pub fn online(
        &self,
        channel: &mut dyn Channel,
        key: &SecretKey,
        share: &Share,
        rng: &mut impl CryptoRng,
    ) -> Result<Share, ProtocolError> {
        for slots in super::pack(&self.packing, self.ring, share)? {
            // C -> S: [x_C]
            let ciphertext = key.encrypt(&self.encoder.encode(&slots)?, rng)?;
            channel.send(kind::LINEAR_INPUT, &ciphertext.to_bytes())?;
        }
        let mut outputs = Vec::new();
        for _ in 0..self.packing.operations().output_ciphertexts {
            // S -> C: [y - r]
            let modulus = self.encoder.modulus();
            let bytes = channel.receive(kind::LINEAR_OUTPUT, OutgoingCiphertext::encoded_len(modulus)?)?;
            let received = OutgoingCiphertext::from_bytes(modulus, &bytes)?;
            outputs.push(self.encoder.decode(&key.decrypt_outgoing(&received)?)?);
        }
        let places = self.packing.output_slots().into_iter();
        let values = places.map(|(ciphertext, slot)| outputs[ciphertext][slot]).collect();
        Ok(Share::new(self.ring, values)?)
    }
}
