//! The server's side of a packed layer.

use lanner_bfv::halves::{FirstHalf, SecondHalf};
use lanner_bfv::outgoing::{Budget, Sealing};
use lanner_bfv::{Blinding, Multiplier, NoiseBound, Parameters, SlotEncoder};
use lanner_share::{Ring, Share};
use lanner_wire::{Channel, Encode};
use rand_core::CryptoRng;

use super::encrypted::EncryptedSlots;
use super::first_half::FirstHalfSlots;
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

/// One-time material of a layer: its outputs, evaluated, masked and blinded but for the message.
///
/// It is used up by value and cannot be copied:
///
/// ```compile_fail
/// fn twice(material: lanner_protocol::linear::gazelle::ServerMaterial) {
///     let copy = material.clone();
/// }
/// ```
pub struct ServerMaterial {
    sealings: Vec<Sealing>,
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

    /// Offline: receives the second halves of the input, evaluates them, draws the masks, and with them the server's
    /// share of the output; sends the second halves of the result.
    ///
    /// # Errors
    /// [`ProtocolError::Channel`] if the peer's message is not the one due; [`ProtocolError::Bfv`] if the parameters do
    /// not allow the blinding or a key is missing.
    pub fn offline(
        &self,
        channel: &mut dyn Channel,
        keys: &ClientKeys,
        rng: &mut impl CryptoRng,
    ) -> Result<ServerMaterial, ProtocolError> {
        // C -> S: seeds of c1
        let length = self.layout.input_ciphertexts() * SecondHalf::ENCODED_LEN;
        let bytes = channel.receive(kind::LINEAR_SEEDS, length)?;
        let expand = |seed| Ok(SecondHalf::from_bytes(seed)?.expand(&self.parameters));
        let inputs =
            bytes.chunks(SecondHalf::ENCODED_LEN).map(expand).collect::<Result<Vec<_>, ProtocolError>>()?;
        let scheme = EncryptedSlots::new(&self.parameters, &keys.evaluation);
        let evaluated = evaluate(&scheme, &self.packing, &self.multipliers, &inputs)?;

        let mut masks = Vec::with_capacity(evaluated.len());
        let mut sealings = Vec::with_capacity(evaluated.len());
        for output in &evaluated {
            let mask = Share::random(self.layout.ring(), self.packing.slots(), rng);
            let blinding = Blinding::prepare(self.encoder.modulus(), &keys.public, self.noise, rng)?;
            let (half, sealing) = Sealing::new(output, blinding, &self.encoder.encode(mask.values())?)?;
            // S -> C: second half of [y - r]
            channel.send(kind::LINEAR_SECOND_HALF, &half.to_bytes())?;
            masks.push(mask);
            sealings.push(sealing);
        }
        // The client gets y - r, so the server keeps r and the bias.
        let r = self.layout.unpack(&masks.iter().map(Share::values).collect::<Vec<_>>())?;
        Ok(ServerMaterial { sealings, share: r.add(&self.bias)? })
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
        let length = FirstHalf::encoded_len(&self.parameters);
        let mut inputs = Vec::with_capacity(self.layout.input_ciphertexts());
        for slots in self.layout.pack(share)? {
            // Encoded before the wait.
            let own = self.encoder.encode(&slots)?;
            // C -> S: first half of [x_C]
            let bytes = channel.receive(kind::LINEAR_INPUT, length)?;
            let mut half = FirstHalf::from_bytes(&self.parameters, &bytes)?;
            half.add_plain(&own)?;
            inputs.push(half);
        }
        // [y] = W [x_C + x_S]
        let scheme = FirstHalfSlots::new(&self.parameters, &keys.evaluation);
        let outputs = evaluate(&scheme, &self.packing, &self.multipliers, &inputs)?;
        for (output, sealing) in outputs.iter().zip(material.sealings) {
            // S -> C: first half of [y - r]
            channel.send(kind::LINEAR_OUTPUT, &sealing.seal(output)?.to_bytes())?;
            // The client decrypts while the next is sealed.
            channel.flush()?;
        }
        Ok(material.share)
    }
}
