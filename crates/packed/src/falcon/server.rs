//! The server's side of a frequency-domain layer.

use lanner_bfv::halves::C0;
use lanner_bfv::{Evaluator, Multiplier, MultiplierForm, Parameters, Plaintext};
use lanner_primitives::Share;
use lanner_step::encoding::{read_share, undecodable, write_share};
use lanner_step::{Answer, Asked, Inputs, LayerWeights, ProtocolError, Result, Value, WeightForm, moduli};
use lanner_wire::{Channel, DecodeError, Reader, Writer};

use super::noise::output_noise;
use super::packing::Packing;
use super::scheme::{EncryptedProducts, FirstHalfProducts, evaluate};
use super::spectrum::Spectrum;
use crate::exchange::{Sealed, ServerExchange};

/// A layer with the transforms of its filters, made once and shared by all sessions.
pub struct ServerLayer {
    spectrum: Spectrum,
    exchange: ServerExchange,
    multipliers: Vec<Multiplier>,
    bias: Share,
}

/// One-time material of a layer: its outputs, evaluated, masked and blinded but for the message.
///
/// It is used up by value and cannot be copied:
///
/// ```compile_fail
/// fn twice(material: lanner_packed::falcon::ServerMaterial) {
///     let copy = material.clone();
/// }
/// ```
pub struct ServerMaterial {
    sealed: Sealed,
    share: Share,
    /// Whether the server's share of the input is in it.
    complete: bool,
}

impl ServerLayer {
    /// Transforms and encodes a layer's weights (as in [`lanner_step::Convolution`]), with its bias per output element.
    ///
    /// # Errors
    /// [`ProtocolError::Length`] if the lengths do not fit; [`ProtocolError::Bfv`] if the prime or the noise does not
    /// fit the parameters.
    pub fn new(packing: &Packing, parameters: &Parameters, weights: &[i64], bias: &[i64]) -> Result<Self> {
        Self::in_form(WeightForm::Evaluation, packing, parameters, weights.into(), bias)
    }

    /// As [`Self::new`], in the form of choice.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn in_form(
        form: WeightForm,
        packing: &Packing,
        parameters: &Parameters,
        weights: LayerWeights<'_>,
        bias: &[i64],
    ) -> Result<Self> {
        let shape = packing.shape();
        ProtocolError::check_length("weights of a linear layer", shape.weights(), weights.len())?;
        ProtocolError::check_length("biases of a linear layer", shape.outputs()?, bias.len())?;
        ProtocolError::check_length("slots of a packing", parameters.degree(), packing.slots())?;
        let [inputs, _] = packing.ciphertexts();
        let noise = output_noise(packing, parameters);
        let exchange = ServerExchange::new(parameters, packing.prime(), inputs, noise)?;
        let spectrum = Spectrum::new(packing)?;
        let kept = MultiplierForm::new(exchange.encoder().modulus());
        let kept = if form == WeightForm::Evaluation { kept.prepare() } else { kept };
        let (purpose, count) =
            (("spectrum", packing, moduli(parameters), form), packing.operations().multiplications);
        let multipliers = weights.encoded_by(&purpose, &kept, count, || {
            let mut multipliers = Vec::with_capacity(count);
            for output in packing.outputs() {
                for slots in spectrum.multipliers(output, &weights) {
                    let compact = exchange.encoder().compact_multiplier(&slots)?;
                    multipliers.push(if form == WeightForm::Evaluation {
                        compact.prepare()
                    } else {
                        compact
                    });
                }
            }
            Ok(multipliers)
        })?;
        let bias = Share::embed(spectrum.ring(), bias);
        Ok(Self { spectrum, exchange, multipliers, bias })
    }

    /// Bytes of a layer's encoded weights.
    #[must_use]
    pub fn bytes(packing: &Packing, parameters: &Parameters, form: WeightForm) -> u64 {
        let each = Multiplier::bytes(parameters, packing.prime(), form == WeightForm::Evaluation);
        packing.operations().multiplications as u64 * each as u64
    }

    /// `F x` in the slots of the layer's inputs.
    fn transformed(&self, share: &Share) -> Result<Vec<Plaintext>> {
        let packed = self.spectrum.pack(share)?;
        packed.iter().map(|slots| Ok(self.exchange.encoder().encode(slots)?)).collect()
    }
}

impl Answer for ServerLayer {
    type Material = ServerMaterial;

    /// Where the server's share of the input is known by now, only the client's is left for the online phase.
    fn prepare(
        &self,
        Asked { channel, server, known }: Asked<'_>,
    ) -> Result<(ServerMaterial, Option<Value>)> {
        let parameters = self.exchange.parameters();
        let key = &server.keys.of(parameters)?.public;
        let mut inputs = self.exchange.receive_ahead(channel)?;
        let complete = known.complete();
        if complete {
            let evaluator = Evaluator::new(parameters);
            for (input, own) in inputs.iter_mut().zip(self.transformed(known.share()?)?) {
                *input = evaluator.add_plain(input, &own)?;
            }
        }
        let scheme = EncryptedProducts { parameters };
        let evaluated = evaluate(&scheme, self.spectrum.packing(), &self.multipliers, &inputs);
        let (sealed, masks) = self.exchange.send_ahead(channel, key, evaluated, &mut server.rng)?;
        // The client gets F y - r: what it makes of that, the server makes of r.
        let share = self.spectrum.unpack(&masks.slots())?.add(&self.bias)?;
        Ok((ServerMaterial { sealed, share: share.clone(), complete }, Some(Value::Shared(share))))
    }

    fn encode(&self, material: &ServerMaterial, writer: &mut Writer) {
        material.sealed.encode(writer);
        write_share(&material.share, writer);
        writer.bool(material.complete);
    }

    fn decode(&self, reader: &mut Reader<'_>) -> Result<ServerMaterial, DecodeError> {
        let [_, ciphertexts] = self.spectrum.packing().ciphertexts();
        let sealed = self.exchange.decode(reader, ciphertexts).map_err(undecodable)?;
        let share = read_share(reader, self.bias.ring(), self.bias.len())?;
        Ok(ServerMaterial { sealed, share, complete: reader.bool()? })
    }

    fn online(&self, channel: &mut dyn Channel, material: ServerMaterial, inputs: &Inputs) -> Result<Value> {
        let input = inputs.share()?;
        // Transformed and encoded before the wait.
        let own = if material.complete { Vec::new() } else { self.transformed(input)? };
        let own: Vec<_> = own.iter().map(C0::of).collect();
        let [count, _] = self.spectrum.packing().ciphertexts();
        let mut inputs = Vec::with_capacity(count);
        for index in 0..count {
            let mut half = self.exchange.receive(channel)?;
            if let Some(own) = own.get(index) {
                half.add_assign(own)?;
            }
            inputs.push(half);
        }
        // [F y] = [F x_C + F x_S] * F W
        let scheme = FirstHalfProducts { parameters: self.exchange.parameters() };
        let outputs = evaluate(&scheme, self.spectrum.packing(), &self.multipliers, &inputs);
        material.sealed.send(channel, outputs)?;
        Ok(Value::Shared(material.share))
    }
}
