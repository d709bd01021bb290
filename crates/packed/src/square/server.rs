//! The server: completes the squares, and applies the layer after.

use lanner_bfv::halves::{C0, C0Combinations};
use lanner_bfv::{Ciphertext, Evaluator, Multiplier, Parameters, Plaintext, Product};
use lanner_primitives::{Ring, Share};
use lanner_step::encoding::{read_share, undecodable, write_share};
use lanner_step::{Answer, Asked, Inputs, LayerWeights, Result, Value, WeightForm};
use lanner_wire::{Channel, DecodeError, Reader, Writer};

use super::{Target, squared};
use crate::exchange::{Sealed, ServerExchange};
use crate::gazelle::packing::Packing;
use crate::gazelle::{EncryptedSlots, FirstHalfSlots, Layout, LinearMap};

/// Squares as the server knows them.
pub struct ServerSquare {
    map: Map,
    target: Target,
    exchange: ServerExchange,
    prime: u64,
}

/// What is done with the squares.
enum Map {
    Identity(Layout),
    Linear(Box<LinearMap>),
}

/// One-time material: the server's share in the clear slots, and the outputs but for the message.
///
/// It is used up by value and cannot be copied:
///
/// ```compile_fail
/// fn twice(material: lanner_packed::square::ServerMaterial) {
///     let copy = material.clone();
/// }
/// ```
pub struct ServerMaterial {
    /// `s`, and `2 s` and `s^2` for each ciphertext.
    input: Share,
    own: Vec<(Multiplier, Plaintext)>,
    sealed: Sealed,
    share: Share,
}

impl ServerSquare {
    /// Squares of a given number of values modulo `prime`, which are shared.
    ///
    /// # Errors
    /// [`lanner_step::ProtocolError::Bfv`] if the prime or the noise does not fit the parameters.
    pub fn new(values: usize, parameters: &Parameters, prime: u64) -> Result<Self> {
        let target = Target::Shares(values);
        let map = Map::Identity(target.layout(parameters, Ring::Prime(prime)));
        Self::with(target, map, parameters, prime)
    }

    /// Squares that a linear layer reads, with its weights, kept in this form, and its bias per output element.
    ///
    /// # Errors
    /// [`lanner_step::ProtocolError::Length`] if the lengths do not fit; [`lanner_step::ProtocolError::Bfv`] if the prime or the noise does not fit the
    /// parameters: see [`Target::fits`].
    pub fn before(
        form: WeightForm,
        packing: Packing,
        parameters: &Parameters,
        prime: u64,
        weights: LayerWeights<'_>,
        bias: &[i64],
    ) -> Result<Self> {
        let map = LinearMap::new(form, packing.clone(), parameters, prime, weights, bias)?;
        Self::with(Target::Layer(Box::new(packing)), Map::Linear(Box::new(map)), parameters, prime)
    }

    fn with(target: Target, map: Map, parameters: &Parameters, prime: u64) -> Result<Self> {
        let [inputs, _] = target.ciphertexts(parameters);
        let exchange = ServerExchange::new(parameters, prime, inputs, target.noise(parameters, prime)?)?;
        Ok(Self { map, target, exchange, prime })
    }

    /// `2 s` and `s^2` in the slots of every ciphertext.
    fn own(&self, share: &Share) -> Result<Vec<(Multiplier, Plaintext)>> {
        let layout = match &self.map {
            Map::Identity(layout) => layout,
            Map::Linear(map) => &map.layout,
        };
        let encoder = self.exchange.encoder();
        let doubled = layout.pack(&share.add(share)?)?;
        let squares = layout.pack(&squared(share, self.prime)?)?;
        let pairs = doubled.iter().zip(&squares);
        pairs.map(|(doubled, square)| Ok((encoder.multiplier(doubled)?, encoder.encode(square)?))).collect()
    }
}

impl Answer for ServerSquare {
    type Material = ServerMaterial;

    fn prepare(
        &self,
        Asked { channel, server, known }: Asked<'_>,
    ) -> Result<(ServerMaterial, Option<Value>)> {
        let parameters = self.exchange.parameters();
        let (keys, input) = (server.keys.of(parameters)?, known.share()?);
        let own = self.own(input)?;
        let received = self.exchange.receive_ahead(channel)?;
        let (first, second) = received.split_at(own.len());
        let evaluator = Evaluator::new(parameters);
        let complete = |((c, square), (doubled, _)): ((&Ciphertext, &Ciphertext), &(Multiplier, _))| {
            // a' + 2 s a
            let mut sum = evaluator.mul_plain(c, doubled)?;
            evaluator.add_assign(&mut sum, square)?;
            Ok(sum)
        };
        let inputs = first.iter().zip(second).zip(&own).map(complete).collect::<Result<Vec<_>>>()?;
        let evaluated = match &self.map {
            Map::Identity(_) => inputs,
            Map::Linear(map) => map.apply(&EncryptedSlots::new(parameters, &keys.evaluation), &inputs)?,
        };
        let evaluated = evaluated.into_iter().map(Ok);
        let (sealed, masks) = self.exchange.send_ahead(channel, &keys.public, evaluated, &mut server.rng)?;
        let share = match &self.map {
            Map::Identity(layout) => layout.unpack(&masks.slots())?,
            Map::Linear(map) => map.share(&masks)?,
        };
        let material = ServerMaterial { input: input.clone(), own, sealed, share: share.clone() };
        Ok((material, Some(Value::Shared(share))))
    }

    fn encode(&self, material: &ServerMaterial, writer: &mut Writer) {
        write_share(&material.input, writer);
        material.sealed.encode(writer);
        write_share(&material.share, writer);
    }

    fn decode(&self, reader: &mut Reader<'_>) -> Result<ServerMaterial, DecodeError> {
        let ring = Ring::Prime(self.prime);
        let input = read_share(reader, ring, self.target.inputs())?;
        let own = self.own(&input).map_err(|_| DecodeError::Invalid { what: "share of squares" })?;
        let [_, ciphertexts] = self.target.ciphertexts(self.exchange.parameters());
        let sealed = self.exchange.decode(reader, ciphertexts).map_err(undecodable)?;
        let elements = match &self.map {
            Map::Identity(_) => input.len(),
            Map::Linear(map) => map.outputs(),
        };
        Ok(ServerMaterial { share: read_share(reader, ring, elements)?, input, own, sealed })
    }

    fn online(&self, channel: &mut dyn Channel, material: ServerMaterial, _: &Inputs) -> Result<Value> {
        let parameters = self.exchange.parameters();
        let mut inputs = Vec::with_capacity(material.own.len());
        for (factor, _) in &material.own {
            // 2 s [c]
            let half = self.exchange.receive(channel)?;
            let mut product = C0Combinations::new(parameters, 1);
            product.add_products(&[half], &[Product { operand: 0, row: 0, factor: factor.into() }])?;
            inputs.extend(product.finish());
        }
        for (input, (_, square)) in inputs.iter_mut().zip(&material.own) {
            // [x^2] = [c^2] + 2 s [c] + s^2
            let half: C0 = self.exchange.receive(channel)?;
            input.add_assign(&half)?;
            input.add_plain(square)?;
        }
        let outputs = match &self.map {
            Map::Identity(_) => inputs,
            Map::Linear(map) => map.apply(&FirstHalfSlots::new(parameters, &map.permutations), &inputs)?,
        };
        material.sealed.send(channel, outputs.into_iter().map(Ok))?;
        Ok(Value::Shared(material.share))
    }
}
