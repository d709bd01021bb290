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
    Needs, OfflineCost, Result, Server as ServerState, Sets, Spec, Step, StepCost, Value, ValueType, WORD,
    Work, limb,
};
use lanner_wire::{Channel, DecodeError, Reader, Writer, packed_len};
use lanner_yao::labels_to_ring::TERMS;
use serde::{Deserialize, Serialize};

use crate::checks::EQUATIONS;
use crate::scheme::{Behind, Layer, Scheme, Stage};
use crate::spec::{Item, Network};
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
    scheme: Scheme,
}

impl Spec for Whole {
    fn infer(&self, inputs: &[ValueType]) -> Result<ValueType> {
        ValueType::only(inputs, Ring::Prime(self.network.prime), self.network.inputs()?)?;
        Ok(ValueType::Revealed)
    }

    fn work(&self) -> Work {
        let mut all = Work { window_elements: self.network.moved_elements(), ..Work::default() };
        for item in &self.network.layers {
            let linear = match item {
                Item::Layer(layer) => cheetah::work(&layer.shape),
                Item::Sum(_) => Work::default(),
            };
            let circuits = item.activation().map(|activation| activation.windows.work()).unwrap_or_default();
            // Every mask multiplies every input ciphertext.
            let masked = linear.ciphertexts.saturating_mul(crate::scheme::MASKS as u64);
            all.products = all.products.saturating_add(linear.products).saturating_add(masked);
            all.ciphertexts = all.ciphertexts.saturating_add(linear.ciphertexts);
            all.window_elements = all.window_elements.saturating_add(circuits.window_elements);
            all.circuit_values = all.circuit_values.saturating_add(circuits.circuit_values);
            all.taps = all.taps.saturating_add(circuits.taps);
        }
        all
    }

    fn build(&self, _: &Sets) -> Result<Box<dyn Built>> {
        let scheme = Scheme::new(&self.network)?;
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
        let layers = self.scheme.layers.iter().map(|layer| layer.linear.outputs.len());
        let ciphertexts = (layers.sum::<usize>() + self.scheme.masks) as u64;
        Ok(Answers { ciphertexts, each: Distance::NONE })
    }

    fn memory(&self) -> Result<Memory> {
        let scheme = &self.scheme;
        let half = limb(&scheme.parameters) * scheme.parameters.limbs() as u64;
        let (mut client, mut server, mut model, mut inputs) = (0, 0, 0, 0);
        for Layer { linear, .. } in &scheme.layers {
            let (ciphertexts, answers) = (linear.inputs.len() as u64, linear.outputs.len() as u64);
            let masks = 2 * WORD * linear.wanted.iter().map(Vec::len).sum::<usize>() as u64;
            client += ciphertexts * half + masks;
            server += answers * half + masks;
            inputs += ciphertexts;
            let factors = (linear.factors() * CoefficientFactor::bytes(&scheme.parameters)) as u64;
            // And modulo the prime, with the transpose.
            model += factors + 2 * linear.factors() as u64 * limb(&scheme.parameters);
        }
        // What each party knows of values while it needs them.
        let (mut values, mut multipliers) = (scheme.inputs as u64, scheme.inputs as u64);
        for stage in &scheme.stages {
            let behind = &stage.behind;
            let tables = behind.circuit().map_or(0, |circuit| circuit.table_bytes(behind.instances()));
            client += tables as u64;
            client += LABEL * behind.wires() as u64 + TERMS as u64 * WORD * behind.converted() as u64;
            multipliers += (stage.makes() + behind.elements(stage.sum.len()).len()) as u64;
            values += stage.makes() as u64;
        }
        let outputs: usize = scheme.layers.iter().map(|layer| layer.linear.elements()[1]).sum();
        let values = WORD * (values + 2 * outputs as u64);
        multipliers = EQUATIONS as u64 * WORD * (multipliers + outputs as u64);
        let committed = EQUATIONS as u64 * WORD * scheme.transfers() as u64;
        // For each equation what multiplies every coefficient, and of some masks what they are and their products.
        let working = inputs * (EQUATIONS as u64 * limb(&scheme.parameters) + 16 * half)
            + 8 * half
            + values
            + multipliers;
        Ok(Memory {
            model,
            client_material: client + committed,
            server_material: server + committed,
            working,
            client_working: 8 * half + values,
            ..Memory::default()
        })
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        let scheme = &self.scheme;
        let stages = |of: &dyn Fn(&Stage) -> usize| scheme.stages.iter().map(of).sum::<usize>() as u64;
        let gates = |stage: &Stage| {
            stage.behind.circuit().map_or(0, |circuit| circuit.and_count() * stage.behind.instances())
        };
        let outputs: usize = scheme.layers.iter().map(|layer| layer.linear.outputs.len()).sum();
        vec![
            ("degree", scheme.parameters.degree() as u64),
            // With the proof of the key, which takes as long whatever the network is.
            ("checks", scheme.masks as u64),
            ("input_ciphertexts", scheme.ciphertexts() as u64),
            ("output_ciphertexts", outputs as u64),
            ("instances", stages(&|stage| stage.behind.instances())),
            ("and_gates", stages(&gates)),
        ]
    }

    fn client(mut self: Box<Self>, _: &str, model: &dyn ModelParts) -> BoxedStep<ClientState> {
        self.scheme.resolve(model)?;
        Ok(Box::new(Client::new(Arc::new(self.scheme))))
    }

    fn server(mut self: Box<Self>, _: &str, model: &dyn ModelParts) -> BoxedStep<ServerState> {
        self.scheme.resolve(model)?;
        let mut layers = Vec::with_capacity(self.network.layers.len());
        for item in &self.network.layers {
            let Item::Layer(layer) = item else { continue };
            let weights = model.weights(&layer.node, layer.shape.outputs()?)?;
            let bias = weights.small_bias()?;
            layers.push((weights.weight, bias));
        }
        Ok(Box::new(Server::new(Arc::new(self.scheme), &layers)?))
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
        for stage in &self.stages {
            let behind = &stage.behind;
            for Layer { linear, .. } in self.layers_of(stage) {
                let second = linear.modulus.second_half_len();
                cost = linear.outputs.iter().fold(cost, |cost, _| cost.server(second));
            }
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
        let half = C0::encoded_len(&self.parameters);
        for stage in &self.stages {
            let behind = &stage.behind;
            cost = (0..self.ciphertexts_of(stage)).fold(cost, |cost, _| cost.client(half));
            for Layer { linear, .. } in self.layers_of(stage) {
                for wanted in &linear.wanted {
                    cost = cost.server(linear.modulus.c0_len(wanted.len()));
                }
            }
            if self.ends_ciphertexts(stage) {
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
        let told = self.stages.last().map_or(0, |stage| match &stage.behind {
            Behind::Scores => packed_len(stage.sum.len(), self.ring.bits()),
            behind => Bits::byte_len(behind.output_bits()),
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
        writer.u32(MATERIAL_VERSION);
        material.encode(&self.scheme, writer);
    }

    fn decode(&self, reader: &mut Reader<'_>) -> Result<ClientMaterial, DecodeError> {
        check_version(reader)?;
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
        writer.u32(MATERIAL_VERSION);
        material.encode(&self.scheme, writer);
    }

    fn decode(&self, reader: &mut Reader<'_>) -> Result<ServerMaterial, DecodeError> {
        check_version(reader)?;
        ServerMaterial::decode(&self.scheme, reader)
    }

    fn online(&self, channel: &mut dyn Channel, material: ServerMaterial, _: &Inputs) -> Result<Value> {
        self.online(channel, material)?;
        Ok(Value::AtPeer)
    }
}

/// Checks that material is of a build whose seeds give the same: otherwise honest clients would fail the checks.
fn check_version(reader: &mut Reader<'_>) -> Result<(), DecodeError> {
    match reader.u32()? {
        MATERIAL_VERSION => Ok(()),
        _ => {
            Err(DecodeError::Invalid { what: "version of the material of a network whose client is checked" })
        }
    }
}

/// Changes with what material holds, and with what its seeds give.
const MATERIAL_VERSION: u32 = 2;
/// Bytes of a seed.
const SEED: usize = 16;
/// Bytes of a hash.
const HASH: usize = 32;
