//! The client's side of a packed layer.

use lanner_bfv::{OutgoingCiphertext, Parameters, SecretKey, SlotEncoder};
use lanner_share::{Ring, Share};
use lanner_wire::{Channel, Encode};
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use super::layout::Layout;
use super::packing::Packing;
use crate::{ProtocolError, kind};

/// A layer as the client knows it: its layout and its ring.
pub struct ClientLayer {
    layout: Layout,
    encoder: SlotEncoder,
    outputs: usize,
    output_bytes: usize,
}

impl ClientLayer {
    /// Prepares a layer modulo `prime`.
    ///
    /// # Errors
    /// [`ProtocolError::Bfv`] if the prime does not fit the parameters.
    pub fn new(packing: &Packing, parameters: &Parameters, prime: u64) -> Result<Self, ProtocolError> {
        let encoder = SlotEncoder::new(parameters, prime)?;
        let output_bytes = OutgoingCiphertext::encoded_len(encoder.modulus())?;
        let outputs = packing.operations().output_ciphertexts;
        Ok(Self { layout: Layout::new(packing, Ring::Prime(prime)), encoder, outputs, output_bytes })
    }

    /// Online: sends the encrypted share, receives the client's share of the layer's output.
    ///
    /// # Errors
    /// [`ProtocolError::Channel`] if the peer's message is not the one due; [`ProtocolError::Shape`] if `share` does
    /// not fit.
    pub fn online(
        &self,
        channel: &mut dyn Channel,
        key: &SecretKey,
        share: &Share,
        rng: &mut impl CryptoRng,
    ) -> Result<Share, ProtocolError> {
        self.send(channel, key, share, rng)?;
        self.receive(channel, key)
    }

    /// The first half of [`Self::online`].
    ///
    /// # Errors
    /// As there.
    pub fn send(
        &self,
        channel: &mut dyn Channel,
        key: &SecretKey,
        share: &Share,
        rng: &mut impl CryptoRng,
    ) -> Result<(), ProtocolError> {
        for slots in self.layout.pack(share)? {
            // C -> S: [x_C]
            let ciphertext = key.encrypt(&self.encoder.encode(&slots)?, rng)?;
            channel.send(kind::LINEAR_INPUT, &ciphertext.to_bytes())?;
            // The server decomposes while the next is encrypted.
            channel.flush()?;
        }
        Ok(())
    }

    /// The second half of [`Self::online`].
    ///
    /// # Errors
    /// As there.
    pub fn receive(&self, channel: &mut dyn Channel, key: &SecretKey) -> Result<Share, ProtocolError> {
        let mut outputs = Vec::with_capacity(self.outputs);
        for _ in 0..self.outputs {
            // S -> C: [y - r]
            let bytes = channel.receive(kind::LINEAR_OUTPUT, self.output_bytes)?;
            let received = OutgoingCiphertext::from_bytes(self.encoder.modulus(), &bytes)?;
            outputs.push(Zeroizing::new(self.encoder.decode(&key.decrypt_outgoing(&received)?)?));
        }
        self.layout.unpack(&outputs)
    }
}
