//! The server's side of a packed layer.

use lanner_bfv::outgoing::Budget;
use lanner_bfv::{
    Blinding, Evaluator, Multiplier, NoiseBound, Parameters, Plaintext, SeededCiphertext, SlotEncoder, seal,
};
use lanner_share::{Ring, Share};
use lanner_wire::{Channel, Encode};
use rand_core::CryptoRng;

use super::encrypted::EncryptedSlots;
use super::keys::ClientKeys;
use super::layout::Layout;
use super::noise::output_noise;
use super::packing::{Packing, Weighting};
use super::scheme::evaluate;
use crate::{ProtocolError, kind};

/// A layer with its weights, encoded once and shared by all sessions.
pub struct ServerLayer {
    packing: Packing,
    parameters: Parameters,
    encoder: SlotEncoder,
    layout: Layout,
    multipliers: Vec<Multiplier>,
    bias: Share,
    noise: NoiseBound,
}

/// One-time material of a layer: a uniform mask for every slot of every output, and what hides the noise.
pub struct ServerMaterial {
    outputs: Vec<(Blinding, Plaintext)>,
    share: Share,
}

impl ServerMaterial {
    /// The server's share of the layer's output.
    #[must_use]
    pub fn share(&self) -> &Share {
        &self.share
    }
}

impl ServerLayer {
    /// Encodes a layer's weights (as in [`crate::linear::Convolution`]) and its bias per output element, modulo `prime`.
    ///
    /// # Errors
    /// [`ProtocolError::Shape`] if the lengths do not fit; [`ProtocolError::Bfv`] if the prime or the noise does not
    /// fit the parameters.
    pub fn new(
        packing: Packing,
        parameters: &Parameters,
        prime: u64,
        weights: &[i64],
        bias: &[i64],
    ) -> Result<Self, ProtocolError> {
        let shape = packing.shape();
        if weights.len() != shape.weights() || bias.len() != shape.outputs()? {
            return Err(ProtocolError::Shape { what: "weights of a linear layer" });
        }
        let (encoder, ring) = (SlotEncoder::new(parameters, prime)?, Ring::Prime(prime));
        let encode = |index| match packing.weighting(index, weights) {
            Weighting::Slots(slots) => {
                let residues: Vec<u64> = slots.into_iter().map(|weight| ring.embed(weight)).collect();
                encoder.extended_multiplier(&residues)
            }
            Weighting::Constant(weight) => {
                Multiplier::constant(parameters, ring.signed(ring.embed(weight)), prime / 2)
            }
        };
        let multipliers = (0..packing.multipliers()).map(encode).collect::<Result<_, _>>()?;
        // The server adds its share to each input.
        let noise = output_noise(&packing, parameters, prime, NoiseBound::fresh().plus_plaintext())?;
        // Refused now rather than at the first prediction.
        Budget::new(encoder.modulus(), noise)?;
        Ok(Self {
            parameters: parameters.clone(),
            bias: Share::embed(ring, &bias.repeat(packing.images())),
            layout: Layout::new(&packing, ring),
            packing,
            encoder,
            multipliers,
            noise,
        })
    }

    /// Offline: draws the masks, and with them the server's share of the output.
    ///
    /// # Errors
    /// [`ProtocolError::Bfv`] if the parameters do not allow the blinding.
    pub fn offline(
        &self,
        keys: &ClientKeys,
        rng: &mut impl CryptoRng,
    ) -> Result<ServerMaterial, ProtocolError> {
        let count = self.packing.operations().output_ciphertexts;
        let masks: Vec<Share> =
            (0..count).map(|_| Share::random(self.layout.ring(), self.packing.slots(), rng)).collect();
        let mut outputs = Vec::with_capacity(count);
        for mask in &masks {
            let blinding = Blinding::prepare(self.encoder.modulus(), &keys.public, self.noise, rng)?;
            outputs.push((blinding, self.encoder.encode(mask.values())?));
        }
        // The client gets y - r, so the server keeps r and the bias.
        let r = self.layout.unpack(&masks.iter().map(Share::values).collect::<Vec<_>>())?;
        Ok(ServerMaterial { outputs, share: r.add(&self.bias)? })
    }

    /// Online: receives the client's encrypted share, adds `share`, applies the layer, sends the masked result; returns the
    /// server's share of it.
    ///
    /// # Errors
    /// [`ProtocolError::Channel`] if the peer's message is not the one due; [`ProtocolError::Shape`] if `share` does
    /// not fit.
    pub fn online(
        &self,
        channel: &mut dyn Channel,
        keys: &ClientKeys,
        material: ServerMaterial,
        share: &Share,
    ) -> Result<Share, ProtocolError> {
        let evaluator = Evaluator::new(&self.parameters);
        let mut inputs = Vec::with_capacity(self.layout.input_ciphertexts());
        for slots in self.layout.pack(share)? {
            // C -> S: [x_C]
            let bytes =
                channel.receive(kind::LINEAR_INPUT, SeededCiphertext::encoded_len(&self.parameters))?;
            let received = SeededCiphertext::from_bytes(&self.parameters, &bytes)?.expand();
            inputs.push(evaluator.add_plain(&received, &self.encoder.encode(&slots)?)?);
        }
        // [y] = W [x_C + x_S]
        let scheme = EncryptedSlots::new(&self.parameters, &keys.evaluation);
        let outputs = evaluate(&scheme, &self.packing, &self.multipliers, &inputs)?;
        for (output, (blinding, mask)) in outputs.into_iter().zip(material.outputs) {
            // S -> C: [y - r]
            channel.send(kind::LINEAR_OUTPUT, &seal(&output, blinding, &mask)?.to_bytes())?;
            // The client decrypts while the next is sealed.
            channel.flush()?;
        }
        Ok(material.share)
    }
}
