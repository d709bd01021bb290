//! The client's side of a coefficient-encoded layer.

use lanner_bfv::BfvError;
use lanner_bfv::function_privacy::PreparedPhase;
use lanner_primitives::{Prg, Share, parallel};
use lanner_step::encoding::undecodable;
use lanner_step::{Client, Inputs, Result, Step, Value, in_turns, kind};
use lanner_wire::{Channel, DecodeError, Reader, Writer};
use zeroize::Zeroizing;

use super::input::{Prepared, announce};
use super::packing::Place;
use super::scheme::Scheme;

/// A layer as the client runs it.
pub struct ClientLayer {
    scheme: Scheme,
    inputs: Vec<Vec<Place>>,
    outputs: Vec<Vec<Place>>,
}

/// Encryptions whose second halves were announced.
pub struct ClientRequest(Vec<Prepared>);

/// One-time material of one run.
pub struct ClientMaterial {
    encryptions: Vec<Prepared>,
    phases: Vec<PreparedPhase>,
}

impl ClientLayer {
    /// Lays the layer out.
    ///
    /// # Errors
    /// None: what does not fit was refused when the scheme was made.
    pub fn new(scheme: Scheme) -> Result<Self> {
        let (inputs, outputs) = (scheme.packing.inputs(), scheme.packing.outputs());
        Ok(Self { scheme, inputs, outputs })
    }

    /// All that both parties know of the layer.
    pub(crate) fn scheme(&self) -> &Scheme {
        &self.scheme
    }

    /// Offline: receives the second halves of the outputs.
    pub(crate) fn receive_phases(
        &self,
        channel: &mut dyn Channel,
        client: &Client,
    ) -> Result<Vec<PreparedPhase>> {
        let key = client.keys.of(&self.scheme.parameters)?;
        let mut phases = Vec::with_capacity(self.outputs.len());
        for numbers in in_turns(self.outputs.len()) {
            // S -> C: c1 of an output
            let length = self.scheme.modulus.second_half_len();
            let receive = |_| channel.receive(kind::LINEAR_SECOND_HALF, length);
            let received = numbers.clone().map(receive).collect::<Result<Vec<_>, _>>()?;
            let tasks = received.into_iter().zip(&self.outputs[numbers]);
            let prepared = parallel::map(tasks, |(bytes, wanted)| {
                key.prepare_phase(&self.scheme.modulus, &bytes, &coefficients(wanted))
            });
            for phase in prepared {
                phases.push(phase?);
            }
        }
        Ok(phases)
    }

    /// Sends the inputs. It needs nothing that the server has answered.
    pub(crate) fn send(
        &self,
        channel: &mut dyn Channel,
        request: ClientRequest,
        share: &Share,
    ) -> Result<()> {
        self.scheme.check_input(share)?;
        let mut encryptions = request.0.into_iter();
        for numbers in in_turns(self.inputs.len()) {
            // What is left to do takes less than sharing it would.
            for (places, encryption) in self.inputs[numbers].iter().zip(encryptions.by_ref()) {
                let message = scatter(places, share.values(), &self.scheme);
                // C -> S: c0 of an input
                channel.send(kind::LINEAR_INPUT, &self.scheme.inputs.encrypt(encryption, &message)?)?;
            }
            channel.flush()?;
        }
        Ok(())
    }

    /// Receives the outputs.
    pub(crate) fn open(&self, channel: &mut dyn Channel, phases: Vec<PreparedPhase>) -> Result<Share> {
        let mut values = Zeroizing::new(vec![0; self.scheme.packing.elements()[1]]);
        for (wanted, phase) in self.outputs.iter().zip(phases) {
            // S -> C: c0 of an output, where it holds one
            let bytes = channel.receive(kind::LINEAR_OUTPUT, self.scheme.modulus.c0_len(wanted.len()))?;
            for ((_, element), value) in wanted.iter().zip(phase.open(&bytes)?.iter()) {
                values[*element] = *value;
            }
        }
        Ok(Share::new(self.scheme.ring(), std::mem::take(&mut values))?)
    }

    fn read(&self, reader: &mut Reader<'_>) -> Result<ClientMaterial, BfvError> {
        let Scheme { parameters, modulus, inputs, .. } = &self.scheme;
        let encryption = |_: &_| inputs.decode(parameters, reader);
        let encryptions = self.inputs.iter().map(encryption).collect::<Result<_, _>>()?;
        let phase = |wanted: &Vec<Place>| PreparedPhase::decode(modulus, wanted.len(), reader);
        Ok(ClientMaterial { encryptions, phases: self.outputs.iter().map(phase).collect::<Result<_, _>>()? })
    }
}

impl Step<Client> for ClientLayer {
    type Request = ClientRequest;
    type Material = ClientMaterial;

    fn request(&self, channel: &mut dyn Channel, client: &mut Client) -> Result<ClientRequest> {
        let key = client.keys.of(&self.scheme.parameters)?;
        let prepare = |_, rng: &mut Prg| self.scheme.inputs.prepare(key, rng);
        announce(channel, self.inputs.len(), &mut client.rng, prepare).map(ClientRequest)
    }

    fn prepare(
        &self,
        channel: &mut dyn Channel,
        client: &mut Client,
        ClientRequest(encryptions): ClientRequest,
        _: &Inputs,
    ) -> Result<(ClientMaterial, Option<Value>)> {
        Ok((ClientMaterial { encryptions, phases: self.receive_phases(channel, client)? }, None))
    }

    fn encode(&self, material: &ClientMaterial, writer: &mut Writer) {
        material.encryptions.iter().for_each(|encryption| encryption.encode(writer));
        material.phases.iter().for_each(|phase| phase.encode(writer));
    }

    fn decode(&self, reader: &mut Reader<'_>) -> Result<ClientMaterial, DecodeError> {
        self.read(reader).map_err(undecodable)
    }

    fn online(&self, channel: &mut dyn Channel, material: ClientMaterial, inputs: &Inputs) -> Result<Value> {
        self.send(channel, ClientRequest(material.encryptions), inputs.share()?)?;
        self.open(channel, material.phases).map(Value::Shared)
    }
}

/// A share's elements at their coefficients.
pub(super) fn scatter(places: &[Place], values: &[u64], scheme: &Scheme) -> Zeroizing<Vec<u64>> {
    scattered(places, values, scheme.parameters.degree())
}

/// As [`scatter`], among so many coefficients.
pub(crate) fn scattered(places: &[Place], values: &[u64], degree: usize) -> Zeroizing<Vec<u64>> {
    let mut coefficients = Zeroizing::new(vec![0; degree]);
    for (place, element) in places {
        coefficients[*place] = values[*element];
    }
    coefficients
}

pub(crate) fn coefficients(places: &[Place]) -> Vec<usize> {
    places.iter().map(|(coefficient, _)| *coefficient).collect()
}
