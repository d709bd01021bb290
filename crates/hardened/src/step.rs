//! A whole network as one step of a plan.

use std::sync::Arc;

use lanner_bfv::function_privacy::Distance;
use lanner_bfv::halves::{C0, C1};
use lanner_bfv::{CoefficientFactor, KeyChallenge, KeyProof};
use lanner_coefficient::cheetah;
use lanner_gc::chunk_lengths;
use lanner_ot::softspoken;
use lanner_primitives::{Bits, Block, Ring};
use lanner_step::{
    Answers, BoxedStep, Built, Client as ClientState, Cost, CotSupply, Inputs, LABEL, Memory, ModelParts,
    Needs, OfflineCost, ProtocolError, Result, Server as ServerState, Sets, Spec, Step, StepCost, Value,
    ValueType, WORD, Windows, Work, limb,
};
use lanner_wire::{Channel, DecodeError, Reader, Writer, packed_len};
use lanner_yao::labels_to_ring::TERMS;
use serde::{Deserialize, Serialize};

use crate::checks::EQUATIONS;
use crate::scheme::{Behind, Scheme, Stage};
use crate::spec::Network;
use crate::{Client, ClientMaterial, LABELS_OF_A_MESSAGE, Server, ServerMaterial};

/// A network, from the client's input to what it is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Whole {
    /// The network.
    pub network: Network,
}

/// What both parties build of it.
struct BuiltWhole {
    network: Network,
    scheme: Arc<Scheme>,
}

impl Spec for Whole {
    fn infer(&self, inputs: &[ValueType]) -> Result<ValueType> {
        let first = self.network.layers.first().ok_or(NO_LAYER)?;
        ValueType::only(inputs, Ring::Prime(self.network.prime), first.inputs())?;
        Ok(ValueType::Revealed)
    }

    fn work(&self) -> Work {
        let mut all = Work::default();
        for layer in &self.network.layers {
            let linear = cheetah::work(&layer.shape);
            let windows = layer.activation.as_ref().map(|activation| activation.windows.work());
            let circuits = windows.unwrap_or_default();
            let summed = layer.summed.as_ref().map(Windows::work).unwrap_or_default();
            // Every mask multiplies every input ciphertext.
            let masked = linear.ciphertexts.saturating_mul(crate::scheme::MASKS as u64);
            all.products = all.products.saturating_add(linear.products).saturating_add(masked);
            all.ciphertexts = all.ciphertexts.saturating_add(linear.ciphertexts);
            let elements = circuits.window_elements.saturating_add(summed.window_elements);
            all.window_elements = all.window_elements.saturating_add(elements);
            all.circuit_values = all.circuit_values.max(circuits.circuit_values);
            all.taps = all.taps.saturating_add(circuits.taps);
        }
        all
    }

    fn build(&self, _: &Sets) -> Result<Box<dyn Built>> {
        let scheme = Arc::new(Scheme::new(&self.network)?);
        Ok(Box::new(BuiltWhole { network: self.network.clone(), scheme }))
    }
}

impl Built for BuiltWhole {
    fn needs(&self) -> Result<Needs> {
        Ok(Needs { own_keys: true, garbling: true, conversation: true, ..Needs::default() })
    }

    fn cost(&self, _: &mut CotSupply) -> Result<StepCost> {
        let answer = self.scheme.offline_cost();
        Ok(StepCost {
            offline: OfflineCost { request: Cost::NONE, answer },
            online: self.scheme.online_cost(),
        })
    }

    fn answers(&self) -> Result<Answers> {
        let layers = self.scheme.layers.iter().map(|stage| stage.linear.outputs.len());
        let ciphertexts = (layers.sum::<usize>() + self.scheme.masks) as u64;
        Ok(Answers { ciphertexts, each: Distance::NONE })
    }

    fn memory(&self) -> Result<Memory> {
        let scheme = &*self.scheme;
        let half = limb(&scheme.parameters) * scheme.parameters.limbs() as u64;
        let (mut client, mut server, mut model, mut inputs) = (0, 0, 0, 0);
        for Stage { linear, behind, .. } in &scheme.layers {
            let (ciphertexts, answers) = (linear.inputs.len() as u64, linear.outputs.len() as u64);
            let masks = 2 * WORD * linear.wanted.iter().map(Vec::len).sum::<usize>() as u64;
            let tables = behind.circuit().map_or(0, |circuit| circuit.table_bytes(behind.instances()));
            client += ciphertexts * half + masks + tables as u64;
            client += LABEL * behind.wires() as u64 + TERMS as u64 * WORD * behind.converted() as u64;
            server += answers * half + masks;
            inputs += ciphertexts;
            let factors = (linear.factors() * CoefficientFactor::bytes(&scheme.parameters)) as u64;
            // And modulo the prime, with the transpose.
            model += factors + 2 * linear.factors() as u64 * limb(&scheme.parameters);
        }
        let committed = EQUATIONS as u64 * WORD * scheme.transfers() as u64;
        // For each equation what multiplies every coefficient, and of some masks what they are and their products.
        let working = inputs * (EQUATIONS as u64 * limb(&scheme.parameters) + 16 * half) + 8 * half;
        Ok(Memory {
            model,
            client_material: client + committed,
            server_material: server + committed,
            working,
            client_working: 8 * half,
            ..Memory::default()
        })
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        let scheme = &*self.scheme;
        let sum = |of: &dyn Fn(&Stage) -> usize| scheme.layers.iter().map(of).sum::<usize>() as u64;
        let gates = |stage: &Stage| {
            stage.behind.circuit().map_or(0, |circuit| circuit.and_count() * stage.behind.instances())
        };
        vec![
            ("degree", scheme.parameters.degree() as u64),
            // With the proof of the key, which takes as long whatever the network is.
            ("checks", scheme.masks as u64),
            ("input_ciphertexts", scheme.ciphertexts() as u64),
            ("output_ciphertexts", sum(&|stage| stage.linear.outputs.len())),
            ("instances", sum(&|stage| stage.behind.instances())),
            ("and_gates", sum(&gates)),
        ]
    }

    fn client(self: Box<Self>, _: &str, _: &dyn ModelParts) -> BoxedStep<ClientState> {
        Ok(Box::new(Client::new(self.scheme)))
    }

    fn server(self: Box<Self>, _: &str, model: &dyn ModelParts) -> BoxedStep<ServerState> {
        let mut layers = Vec::with_capacity(self.network.layers.len());
        for layer in &self.network.layers {
            let weights = model.weights(&layer.node, layer.shape.outputs()?)?;
            let bias = weights.small_bias()?;
            layers.push((weights.weight, bias));
        }
        Ok(Box::new(Server::new(self.scheme, &layers)?))
    }
}

impl Scheme {
    /// What is said before the input is known.
    pub(crate) fn offline_cost(&self) -> Cost {
        let ring_bits = self.ring.bits();
        let terms = |count: usize, each: usize| packed_len(count * each, ring_bits);
        let key = Cost::NONE
            .server(SEED)
            .client(KeyProof::announced_len(&self.parameters))
            .server(KeyChallenge::ENCODED_LEN)
            .client(KeyProof::answer_len(&self.parameters));
        let asked = key
            .client(self.ciphertexts() * C1::ENCODED_LEN)
            .transfer(softspoken::random_extension_cost(self.transfers()));
        let second = self.check.second_half_len();
        let mut cost = (0..self.masks).fold(asked.server(2 * Block::BYTES), |cost, _| cost.server(second));
        for Stage { linear, behind, .. } in &self.layers {
            let second = linear.modulus.second_half_len();
            cost = linear.outputs.iter().fold(cost, |cost, _| cost.server(second));
            if let Some(circuit) = behind.circuit() {
                cost = cost.server(terms(behind.wires(), EQUATIONS));
                cost = chunk_lengths(circuit, behind.instances()).fold(cost, Cost::server);
            }
            if behind.converted() > 0 {
                cost = cost.server(terms(behind.converted(), TERMS));
            }
        }
        cost.server(terms(self.input_bits(), EQUATIONS))
    }

    /// What is said when it is.
    pub(crate) fn online_cost(&self) -> Cost {
        let mut cost = Cost::NONE.client(Bits::byte_len(self.input_bits()));
        let last = self.layers.len() - 1;
        let half = C0::encoded_len(&self.parameters);
        for (number, Stage { linear, behind, .. }) in self.layers.iter().enumerate() {
            cost = linear.inputs.iter().fold(cost, |cost, _| cost.client(half));
            for wanted in &linear.wanted {
                cost = cost.server(linear.modulus.c0_len(wanted.len()));
            }
            if number == last {
                cost = cost.server(self.masks * self.check.c0_len(1));
            }
            if behind.wires() > 0 {
                cost = cost.client(Bits::byte_len(behind.wires()));
                let mut left = behind.wires();
                while left > 0 {
                    let labels = left.min(LABELS_OF_A_MESSAGE);
                    cost = cost.server(labels * Block::BYTES);
                    left -= labels;
                }
            }
        }
        let told = self.layers.last().map_or(0, |Stage { linear, behind, .. }| match behind {
            Behind::Scores => packed_len(linear.elements()[1], self.ring.bits()),
            _ => Bits::byte_len(behind.output_bits()),
        });
        cost.server(SEED).client(HASH).server(told)
    }
}

impl Step<ClientState> for Client {
    type Request = ();
    type Material = ClientMaterial;

    fn request(&self, _: &mut dyn Channel, _: &mut ClientState) -> Result<()> {
        Ok(())
    }

    fn prepare(
        &self,
        channel: &mut dyn Channel,
        client: &mut ClientState,
        (): (),
        _: &Inputs,
    ) -> Result<(ClientMaterial, Option<Value>)> {
        let mut rng = lanner_primitives::Prg::new(client.rng.seed());
        Ok((self.offline(channel, client.evaluation_mut()?, &mut rng)?, None))
    }

    fn encode(&self, material: &ClientMaterial, writer: &mut Writer) {
        material.encode(&self.scheme, writer);
    }

    fn decode(&self, reader: &mut Reader<'_>) -> Result<ClientMaterial, DecodeError> {
        ClientMaterial::decode(&self.scheme, reader)
    }

    fn online(&self, channel: &mut dyn Channel, material: ClientMaterial, inputs: &Inputs) -> Result<Value> {
        self.online(channel, material, inputs.share()?).map(Value::Revealed)
    }
}

impl Step<ServerState> for Server {
    type Request = ();
    type Material = ServerMaterial;

    fn request(&self, _: &mut dyn Channel, _: &mut ServerState) -> Result<()> {
        Ok(())
    }

    fn prepare(
        &self,
        channel: &mut dyn Channel,
        server: &mut ServerState,
        (): (),
        _: &Inputs,
    ) -> Result<(ServerMaterial, Option<Value>)> {
        let (garbling, rng) = server.garbling_mut()?;
        Ok((self.offline(channel, garbling, rng)?, None))
    }

    fn encode(&self, material: &ServerMaterial, writer: &mut Writer) {
        material.encode(&self.scheme, writer);
    }

    fn decode(&self, reader: &mut Reader<'_>) -> Result<ServerMaterial, DecodeError> {
        ServerMaterial::decode(&self.scheme, reader)
    }

    fn online(&self, channel: &mut dyn Channel, material: ServerMaterial, _: &Inputs) -> Result<Value> {
        self.online(channel, material)?;
        Ok(Value::AtPeer)
    }
}

const NO_LAYER: ProtocolError = ProtocolError::Parameters("a hardened network without layers");
/// Bytes of a seed.
const SEED: usize = 16;
/// Bytes of a hash.
const HASH: usize = 32;
