//! The client's side of a packed layer.

use lanner_bfv::halves::{PreparedDecryption, PreparedEncryption, SecondHalf};
use lanner_bfv::outgoing::{OutgoingFirstHalf, OutgoingSecondHalf, half_len};
use lanner_bfv::{Parameters, SecretKey, SlotEncoder};
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
    /// Bytes of either half of an output ciphertext.
    half_bytes: usize,
}

/// Encryptions whose second halves were announced; the server's answer is still to be received.
pub struct ClientRequest {
    encryptions: Vec<PreparedEncryption>,
}

/// One-time material of a layer: all of its encryptions and decryptions but the messages.
///
/// It is used up by value and cannot be copied:
///
/// ```compile_fail
/// fn twice(material: lanner_protocol::linear::gazelle::ClientMaterial) {
///     let copy = material.clone();
/// }
/// ```
pub struct ClientMaterial {
    encryptions: Vec<PreparedEncryption>,
    decryptions: Vec<PreparedDecryption>,
}

/// The rest of a layer's material, once the input is sent.
pub struct ClientPending {
    decryptions: Vec<PreparedDecryption>,
}

impl ClientLayer {
    /// Prepares a layer modulo `prime`.
    ///
    /// # Errors
    /// [`ProtocolError::Bfv`] if the prime does not fit the parameters.
    pub fn new(packing: &Packing, parameters: &Parameters, prime: u64) -> Result<Self, ProtocolError> {
        let encoder = SlotEncoder::new(parameters, prime)?;
        let half_bytes = half_len(encoder.modulus())?;
        let outputs = packing.operations().output_ciphertexts;
        Ok(Self { layout: Layout::new(packing, Ring::Prime(prime)), encoder, outputs, half_bytes })
    }

    /// Offline, first half: announces the second halves of the encryptions to come. All layers may do so before the
    /// first receives.
    ///
    /// # Errors
    /// Those of the channel.
    pub fn request(
        &self,
        channel: &mut dyn Channel,
        key: &SecretKey,
        rng: &mut impl CryptoRng,
    ) -> Result<ClientRequest, ProtocolError> {
        let prepare = |_| key.prepare_encryption(rng);
        let (announced, encryptions): (Vec<_>, Vec<_>) =
            (0..self.layout.input_ciphertexts()).map(prepare).unzip();
        // C -> S: seeds of c1
        channel
            .send(kind::LINEAR_SEEDS, &announced.iter().flat_map(SecondHalf::to_bytes).collect::<Vec<_>>())?;
        channel.flush()?;
        Ok(ClientRequest { encryptions })
    }

    /// Offline, second half: receives the second halves of the outputs, in the order of the requests.
    ///
    /// # Errors
    /// [`ProtocolError::Channel`] if the peer's message is not the one due.
    pub fn receive(
        &self,
        channel: &mut dyn Channel,
        key: &SecretKey,
        request: ClientRequest,
    ) -> Result<ClientMaterial, ProtocolError> {
        let mut decryptions = Vec::with_capacity(self.outputs);
        for _ in 0..self.outputs {
            // S -> C: second half of [y - r]
            let bytes = channel.receive(kind::LINEAR_SECOND_HALF, self.half_bytes)?;
            let half = OutgoingSecondHalf::from_bytes(self.encoder.modulus(), &bytes)?;
            decryptions.push(key.prepare_decryption(half)?);
        }
        Ok(ClientMaterial { encryptions: request.encryptions, decryptions })
    }

    /// Online: sends the encrypted share, receives the client's share of the layer's output.
    ///
    /// # Errors
    /// [`ProtocolError::Channel`] if the peer's message is not the one due; [`ProtocolError::Shape`] if `share` does
    /// not fit.
    pub fn online(
        &self,
        channel: &mut dyn Channel,
        material: ClientMaterial,
        share: &Share,
    ) -> Result<Share, ProtocolError> {
        let pending = self.send(channel, material, share)?;
        self.finish(channel, pending)
    }

    /// The first half of [`Self::online`].
    ///
    /// # Errors
    /// As there.
    pub fn send(
        &self,
        channel: &mut dyn Channel,
        material: ClientMaterial,
        share: &Share,
    ) -> Result<ClientPending, ProtocolError> {
        for (slots, encryption) in self.layout.pack(share)?.iter().zip(material.encryptions) {
            // C -> S: first half of [x_C]
            let half = encryption.encrypt(&self.encoder.encode(slots)?)?;
            channel.send(kind::LINEAR_INPUT, &half.to_bytes())?;
            // The server reads while the next is encrypted.
            channel.flush()?;
        }
        Ok(ClientPending { decryptions: material.decryptions })
    }

    /// The second half of [`Self::online`].
    ///
    /// # Errors
    /// As there.
    pub fn finish(&self, channel: &mut dyn Channel, pending: ClientPending) -> Result<Share, ProtocolError> {
        let mut outputs = Vec::with_capacity(self.outputs);
        for decryption in pending.decryptions {
            // S -> C: first half of [y - r]
            let bytes = channel.receive(kind::LINEAR_OUTPUT, self.half_bytes)?;
            let half = OutgoingFirstHalf::from_bytes(self.encoder.modulus(), &bytes)?;
            outputs.push(Zeroizing::new(self.encoder.decode(&decryption.decrypt(&half)?)?));
        }
        self.layout.unpack(&outputs)
    }
}
