//! The server's side of a coefficient-encoded layer.

use std::fmt::Debug;
use std::sync::Arc;

use lanner_bfv::function_privacy::PhaseSealing;
use lanner_bfv::halves::{C0, C1};
use lanner_bfv::{BfvError, Ciphertext, CoefficientFactor, Interleaving};
use lanner_primitives::{Prg, Share, parallel};
use lanner_step::encoding::{read_share, undecodable, write_share};
use lanner_step::{
    Answer, Asked, Inputs, LayerWeights, ProtocolError, Result, Server, Value, WeightForm, in_turns, kind,
};
use lanner_wire::{Channel, DecodeError, Reader, Writer};
use zeroize::Zeroizing;

use super::client::{coefficients, scatter};
use super::packing::Place;
use super::scheme::Scheme;

/// A layer as the server runs it, shared by all sessions.
pub struct ServerLayer {
    scheme: Scheme,
    filters: Arc<Filters>,
    bias: Share,
    inputs: Vec<Vec<Place>>,
    outputs: Vec<Vec<Place>>,
    /// Where answers are packed.
    interleaving: Option<Interleaving>,
}

/// A layer's filters, which layers with the same weights share.
pub(super) enum Filters {
    /// Transformed once: for each output ciphertext of a bundle of groups, bundle by bundle, the filters of its inputs, one after the other.
    Transformed(Vec<CoefficientFactor>),
    /// The layer's weights, of at most 17 bits each, whose filters are transformed whenever they are needed.
    Weights(Zeroizing<Vec<i32>>),
}

/// One-time material of one run.
pub struct ServerMaterial {
    sealings: Vec<PhaseSealing>,
    share: Share,
}

impl ServerLayer {
    /// Transforms the filters; `bias` has one integer for each output element.
    ///
    /// # Errors
    /// [`ProtocolError::Length`] if weights or bias do not fit the shape, or a weight has more than [`Scheme::weight_bits`] bits.
    pub fn new(scheme: Scheme, weights: &[i64], bias: &[i64]) -> Result<Self> {
        Self::in_form(WeightForm::Evaluation, scheme, weights, bias)
    }

    /// As [`Self::new`], with weights kept in the form of choice.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn in_form(form: WeightForm, scheme: Scheme, weights: &[i64], bias: &[i64]) -> Result<Self> {
        let filters = Arc::new(Filters::new(form, &scheme, weights.into(), &())?);
        Self::with_filters(scheme, filters, bias)
    }

    /// A layer with filters that were made for the same scheme.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub(super) fn with_filters(scheme: Scheme, filters: Arc<Filters>, bias: &[i64]) -> Result<Self> {
        let packing = &scheme.packing;
        ProtocolError::check_length("biases of a linear layer", packing.shape().outputs()?, bias.len())?;
        let (inputs, outputs) = (packing.inputs(), packing.outputs());
        let samples = packing.elements()[1] / bias.len();
        // The ring has room for a bias, and so has the wider one for its multiple.
        let bias: Zeroizing<Vec<i64>> =
            Zeroizing::new(bias.iter().map(|bias| bias << scheme.guard).collect());
        let bias = Share::embed(scheme.ring(), &Zeroizing::new(bias.repeat(samples)));
        let interleaving = match packing.packed() {
            1 => None,
            packed => Some(Interleaving::new(&scheme.parameters, packed, packing.first_output())?),
        };
        Ok(Self { scheme, filters, bias, inputs, outputs, interleaving })
    }

    /// All that both parties know of the layer.
    pub(crate) fn scheme(&self) -> &Scheme {
        &self.scheme
    }

    /// Offline: receives the second halves of the inputs.
    pub(crate) fn receive_seeds(&self, channel: &mut dyn Channel) -> Result<Vec<Ciphertext>> {
        // C -> S: seeds of c1
        let seeds = channel.receive(kind::LINEAR_SEEDS, self.inputs.len() * C1::ENCODED_LEN)?;
        let expand = |seed| Ok(C1::from_bytes(seed)?.expand(&self.scheme.parameters));
        parallel::map(seeds.chunks(C1::ENCODED_LEN), expand).into_iter().collect()
    }

    /// Offline: sends the second halves of the outputs.
    pub(crate) fn answer_seeds(
        &self,
        channel: &mut dyn Channel,
        server: &mut Server,
        announced: &[Ciphertext],
    ) -> Result<ServerMaterial> {
        let keys = server.keys.of(&self.scheme.parameters)?;
        let Scheme { modulus, norm, noise, .. } = &self.scheme;
        let mut values = Zeroizing::new(self.bias.values().to_vec());
        let ring = self.bias.ring();
        let mut sealings = Vec::with_capacity(self.outputs.len());
        for numbers in in_turns(self.outputs.len()) {
            let seeds = parallel::seeds(numbers.len(), &mut server.rng);
            let tasks = numbers.clone().zip(seeds.iter());
            let made = parallel::map(tasks, |(number, seed)| {
                let products = self.products(number, announced, |inputs, factors| {
                    Ciphertext::inner_product_ahead(inputs, factors, *norm)
                })?;
                let answer = match &self.interleaving {
                    None => only(products)?,
                    Some(interleaving) => interleaving.ciphertexts(products, &keys.evaluation)?,
                };
                let count = self.outputs[number].len();
                let rng = &mut Prg::new(seed.clone());
                Ok::<_, ProtocolError>(PhaseSealing::new(modulus, &answer, &keys.public, *noise, count, rng)?)
            });
            for (made, wanted) in made.into_iter().zip(&self.outputs[numbers]) {
                let (bytes, sealing) = made?;
                // S -> C: c1 of an output
                channel.send(kind::LINEAR_SECOND_HALF, &bytes)?;
                for ((_, element), share) in wanted.iter().zip(sealing.shares().iter()) {
                    values[*element] = ring.add(values[*element], *share);
                }
                sealings.push(sealing);
            }
        }
        channel.flush()?;
        Ok(ServerMaterial { sealings, share: Share::new(ring, std::mem::take(&mut values))? })
    }

    /// Receives the inputs, and adds this party's share of them.
    pub(crate) fn receive_inputs(&self, channel: &mut dyn Channel, share: &Share) -> Result<Vec<C0>> {
        let Scheme { parameters, inputs: form, .. } = &self.scheme;
        self.scheme.check_input(share)?;
        let mut inputs = Vec::with_capacity(self.inputs.len());
        for numbers in in_turns(self.inputs.len()) {
            // C -> S: c0 of an input
            let receive = |_| channel.receive(kind::LINEAR_INPUT, form.encoded_len(parameters));
            let received = numbers.clone().map(receive).collect::<Result<Vec<_>, _>>()?;
            let tasks = received.into_iter().zip(&self.inputs[numbers]);
            let read = parallel::map(tasks, |(bytes, places)| {
                form.read(parameters, &bytes, &scatter(places, share.values(), &self.scheme))
            });
            for input in read {
                inputs.push(input?);
            }
        }
        Ok(inputs)
    }

    /// Sends the outputs.
    pub(crate) fn answer_inputs(
        &self,
        channel: &mut dyn Channel,
        material: ServerMaterial,
        inputs: &[C0],
    ) -> Result<Share> {
        let mut sealings = material.sealings.into_iter();
        for numbers in in_turns(self.outputs.len()) {
            let made = parallel::map(numbers.zip(sealings.by_ref()), |(number, sealing)| {
                let products = self.products(number, inputs, |inputs, factors| {
                    C0::inner_product(inputs, factors, self.scheme.norm)
                })?;
                let answer = match &self.interleaving {
                    None => only(products)?,
                    Some(interleaving) => interleaving.halves(products)?,
                };
                Ok::<_, ProtocolError>(sealing.seal(&answer, &coefficients(&self.outputs[number]))?)
            });
            for made in made {
                // S -> C: c0 of an output, where it holds one
                channel.send(kind::LINEAR_OUTPUT, &made?)?;
            }
            channel.flush()?;
        }
        Ok(material.share)
    }

    /// The products that an answer is made of.
    fn products<T>(
        &self,
        answer: usize,
        inputs: &[T],
        product: impl Fn(&[T], &[CoefficientFactor]) -> Result<T, BfvError>,
    ) -> Result<Vec<T>> {
        let packing = &self.scheme.packing;
        let first = answer * packing.packed();
        let last = (first + packing.packed()).min(packing.products_apart());
        (first..last).map(|number| self.evaluate(number, inputs, &product)).collect()
    }

    /// The sum of the products of some of the inputs and their filters.
    fn evaluate<T>(
        &self,
        number: usize,
        inputs: &[T],
        product: impl Fn(&[T], &[CoefficientFactor]) -> Result<T, BfvError>,
    ) -> Result<T> {
        let [in_blocks, out_blocks] = self.scheme.packing.per_bundle();
        let (spread, block) = (number / out_blocks, number % out_blocks);
        let inputs = &inputs[spread * in_blocks..(spread + 1) * in_blocks];
        let of_bundle = spread % self.scheme.packing.bundles() * out_blocks + block;
        Ok(match &*self.filters {
            Filters::Transformed(all) => {
                product(inputs, &all[of_bundle * in_blocks..(of_bundle + 1) * in_blocks])?
            }
            Filters::Weights(weights) => {
                product(inputs, &factors(&self.scheme, of_bundle, |weight| weights[weight])?)?
            }
        })
    }
}

impl Answer for ServerLayer {
    type Material = ServerMaterial;

    fn prepare(&self, Asked { channel, server, .. }: Asked<'_>) -> Result<(ServerMaterial, Option<Value>)> {
        let announced = self.receive_seeds(channel)?;
        let material = self.answer_seeds(channel, server, &announced)?;
        let share = material.share.clone();
        Ok((material, Some(Value::Shared(share))))
    }

    fn encode(&self, material: &ServerMaterial, writer: &mut Writer) {
        material.sealings.iter().for_each(|sealing| sealing.encode(writer));
        write_share(&material.share, writer);
    }

    fn decode(&self, reader: &mut Reader<'_>) -> Result<ServerMaterial, DecodeError> {
        let Scheme { modulus, noise, .. } = &self.scheme;
        let sealing = |wanted: &Vec<Place>| PhaseSealing::decode(modulus, *noise, wanted.len(), reader);
        let sealings = self.outputs.iter().map(sealing).collect::<Result<_, _>>().map_err(undecodable)?;
        Ok(ServerMaterial { sealings, share: read_share(reader, self.bias.ring(), self.bias.len())? })
    }

    fn online(&self, channel: &mut dyn Channel, material: ServerMaterial, inputs: &Inputs) -> Result<Value> {
        let inputs = self.receive_inputs(channel, inputs.share()?)?;
        self.answer_inputs(channel, material, &inputs).map(Value::Shared)
    }
}

/// The only product of an answer that is not packed.
fn only<T>(products: Vec<T>) -> Result<T> {
    products.into_iter().next().ok_or(ProtocolError::Parameters("an answer without a product"))
}

impl Filters {
    /// The filters of a layer's weights. `purpose` says all that they depend on besides.
    ///
    /// # Errors
    /// [`ProtocolError::Length`] if there are too few or many of them, or one has more than [`Scheme::weight_bits`] bits.
    pub(super) fn new(
        form: WeightForm,
        scheme: &Scheme,
        weights: LayerWeights<'_>,
        purpose: &dyn Debug,
    ) -> Result<Self> {
        let packing = &scheme.packing;
        let bound = 1_i64 << (Scheme::weight_bits(scheme.bits) - 1);
        let fits = |weight: &i64| (-bound..=bound).contains(weight);
        ProtocolError::check_length("weights of a linear layer", packing.shape().weights(), weights.len())?;
        ProtocolError::refuse_if(!weights.iter().all(fits), "a weight has too many bits")?;
        Ok(match form {
            WeightForm::Coefficient => {
                Self::Weights(Zeroizing::new(weights.iter().map(|weight| *weight as i32).collect()))
            }
            WeightForm::Evaluation => {
                let [inputs, outputs] = packing.per_bundle();
                let (outputs, values) = (packing.bundles() * outputs, &weights[..]);
                let make = || {
                    let each = parallel::map(0..outputs, |output| {
                        factors(scheme, output, |weight| values[weight] as i32)
                    });
                    let mut all = Vec::with_capacity(outputs * inputs);
                    for factors in each {
                        all.extend(factors?);
                    }
                    Ok(all)
                };
                let count = outputs * inputs;
                Self::Transformed(weights.encoded_by(purpose, &scheme.parameters, count, make)?)
            }
        })
    }
}

/// The filters of an output ciphertext, counted bundle by bundle, transformed.
fn factors(
    scheme: &Scheme,
    output: usize,
    weight_of: impl Fn(usize) -> i32,
) -> Result<Vec<CoefficientFactor>> {
    let [inputs, outputs] = scheme.packing.per_bundle();
    let mut polynomial = Zeroizing::new(vec![0; scheme.parameters.degree()]);
    let factor = |input| {
        polynomial.fill(0);
        for (place, weight) in scheme.packing.filter(output / outputs, input, output % outputs) {
            polynomial[place] = weight_of(weight);
        }
        Ok(CoefficientFactor::new(&scheme.parameters, &polynomial)?)
    };
    (0..inputs).map(factor).collect()
}
