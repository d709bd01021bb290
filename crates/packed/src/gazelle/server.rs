//! The server's side of a packed layer.

use lanner_bfv::halves::Permutations;
use lanner_bfv::{Multiplier, MultiplierForm, NoiseBound, Parameters, SlotEncoder};
use lanner_primitives::{Ring, Share};
use lanner_step::encoding::{read_share, undecodable, write_share};
use lanner_step::{
    Answer, Asked, Inputs, LayerWeights, ProtocolError, Result, Value, WeightForm, galois_element, moduli,
};
use lanner_wire::{Channel, DecodeError, Reader, Writer};

use super::c0::FirstHalfSlots;
use super::encrypted::EncryptedSlots;
use super::layout::Layout;
use super::noise::output_noise;
use super::packing::{Packing, Weighting};
use super::scheme::{PackedScheme, evaluate};
use crate::exchange::{Masks, Sealed, ServerExchange};

/// A layer with its weights, encoded once and shared by all sessions.
pub struct ServerLayer {
    map: LinearMap,
    exchange: ServerExchange,
}

/// The weights of a layer, without the messages around it.
pub(crate) struct LinearMap {
    packing: Packing,
    pub(crate) layout: Layout,
    multipliers: Vec<Multiplier>,
    /// What its rotations do to first halves.
    pub(crate) permutations: Permutations,
    bias: Share,
}

/// One-time material of a layer: its outputs, evaluated, masked and blinded but for the message.
///
/// It is used up by value and cannot be copied:
///
/// ```compile_fail
/// fn twice(material: lanner_packed::gazelle::ServerMaterial) {
///     let copy = material.clone();
/// }
/// ```
pub struct ServerMaterial {
    sealed: Sealed,
    share: Share,
}

impl LinearMap {
    /// Encodes weights and bias as [`ServerLayer::new`] does.
    pub(crate) fn new(
        form: WeightForm,
        packing: Packing,
        parameters: &Parameters,
        prime: u64,
        weights: LayerWeights<'_>,
        bias: &[i64],
    ) -> Result<Self> {
        let shape = packing.shape();
        ProtocolError::check_length("weights of a linear layer", shape.weights(), weights.len())?;
        ProtocolError::check_length("biases of a linear layer", shape.outputs()?, bias.len())?;
        let (encoder, ring) = (SlotEncoder::new(parameters, prime)?, Ring::Prime(prime));
        let encode = |index| -> Result<Multiplier> {
            let compact = match packing.weighting(index, &weights) {
                Weighting::Slots(slots) => {
                    let residues: Vec<u64> = slots.into_iter().map(|weight| ring.embed(weight)).collect();
                    encoder.compact_multiplier(&residues)?
                }
                Weighting::Constant(weight) => {
                    Multiplier::constant(parameters, ring.signed(ring.embed(weight)), prime / 2)?
                }
            };
            Ok(if form == WeightForm::Evaluation { compact.prepare() } else { compact })
        };
        let kept = match packing.constant_bound(prime) {
            Some(bound) => MultiplierForm::constant(parameters, bound),
            None => MultiplierForm::new(encoder.modulus()),
        };
        let kept = if form == WeightForm::Evaluation { kept.prepare() } else { kept };
        let purpose = ("slots", &packing, moduli(parameters), prime, form);
        let multipliers = weights.encoded_by(&purpose, &kept, packing.multipliers(), || {
            (0..packing.multipliers()).map(encode).collect()
        })?;
        let element = |rotation| galois_element(rotation, parameters.degree());
        let elements = packing.keys().into_iter().map(element).collect::<Result<Vec<_>, _>>()?;
        let permutations = Permutations::new(parameters, &elements)?;
        let bias = Share::embed(ring, &bias.repeat(packing.images()));
        Ok(Self { layout: Layout::new(&packing, ring), packing, multipliers, permutations, bias })
    }

    /// The layer on encrypted inputs.
    pub(crate) fn apply<S>(
        &self,
        scheme: &S,
        inputs: &[S::Ciphertext],
    ) -> Result<Vec<S::Ciphertext>, S::Error>
    where
        S: PackedScheme<Multiplier = Multiplier>,
    {
        evaluate(scheme, &self.packing, &self.multipliers, inputs)
    }

    /// The server's share of the output: the client gets `y - r`, so the server keeps `r` and the bias.
    pub(crate) fn share(&self, masks: &Masks) -> Result<Share> {
        Ok(self.layout.unpack(&masks.slots())?.add(&self.bias)?)
    }

    /// Elements of the output.
    pub(crate) fn outputs(&self) -> usize {
        self.bias.len()
    }
}

impl ServerLayer {
    /// Encodes a layer's weights (as in [`lanner_step::Convolution`]) and its bias per output element, modulo `prime`.
    /// [`ServerLayer::bytes`] says what it keeps.
    ///
    /// # Errors
    /// [`ProtocolError::Length`] if the lengths do not fit; [`ProtocolError::Bfv`] if the prime or the noise does not
    /// fit the parameters.
    pub fn new(
        packing: Packing,
        parameters: &Parameters,
        prime: u64,
        weights: &[i64],
        bias: &[i64],
    ) -> Result<Self> {
        Self::in_form(WeightForm::Evaluation, packing, parameters, prime, weights.into(), bias)
    }

    /// As [`Self::new`], in the form of choice.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn in_form(
        form: WeightForm,
        packing: Packing,
        parameters: &Parameters,
        prime: u64,
        weights: LayerWeights<'_>,
        bias: &[i64],
    ) -> Result<Self> {
        let noise: NoiseBound = output_noise(&packing, parameters, prime)?;
        let [inputs, _] = packing.ciphertexts();
        let exchange = ServerExchange::new(parameters, prime, inputs, noise)?;
        Ok(Self { map: LinearMap::new(form, packing, parameters, prime, weights, bias)?, exchange })
    }

    /// Bytes of a layer's encoded weights modulo `prime`.
    #[must_use]
    pub fn bytes(packing: &Packing, parameters: &Parameters, prime: u64, form: WeightForm) -> u64 {
        packing.multipliers() as u64
            * Multiplier::bytes(parameters, prime, form == WeightForm::Evaluation) as u64
    }
}

impl Answer for ServerLayer {
    type Material = ServerMaterial;

    fn prepare(&self, Asked { channel, server, .. }: Asked<'_>) -> Result<(ServerMaterial, Option<Value>)> {
        let parameters = self.exchange.parameters();
        let keys = server.keys.of(parameters)?;
        let inputs = self.exchange.receive_ahead(channel)?;
        let evaluated = self.map.apply(&EncryptedSlots::new(parameters, &keys.evaluation), &inputs)?;
        let evaluated = evaluated.into_iter().map(Ok);
        let (sealed, masks) = self.exchange.send_ahead(channel, &keys.public, evaluated, &mut server.rng)?;
        let share = self.map.share(&masks)?;
        Ok((ServerMaterial { sealed, share: share.clone() }, Some(Value::Shared(share))))
    }

    fn encode(&self, material: &ServerMaterial, writer: &mut Writer) {
        material.sealed.encode(writer);
        write_share(&material.share, writer);
    }

    fn decode(&self, reader: &mut Reader<'_>) -> Result<ServerMaterial, DecodeError> {
        let [_, ciphertexts] = self.map.packing.ciphertexts();
        let sealed = self.exchange.decode(reader, ciphertexts).map_err(undecodable)?;
        let share = read_share(reader, self.map.bias.ring(), self.map.outputs())?;
        Ok(ServerMaterial { sealed, share })
    }

    fn online(&self, channel: &mut dyn Channel, material: ServerMaterial, inputs: &Inputs) -> Result<Value> {
        let slots = self.map.layout.pack(inputs.share()?)?;
        let mut inputs = Vec::with_capacity(slots.len());
        for slots in slots {
            // Encoded before the wait.
            let own = self.exchange.encoder().encode(&slots)?;
            let mut half = self.exchange.receive(channel)?;
            half.add_plain(&own)?;
            inputs.push(half);
        }
        // [y] = W [x_C + x_S]
        let scheme = FirstHalfSlots::new(self.exchange.parameters(), &self.map.permutations);
        let outputs = self.map.apply(&scheme, &inputs)?;
        material.sealed.send(channel, outputs.into_iter().map(Ok))?;
        Ok(Value::Shared(material.share))
    }
}
