//! The client's side of a layer that is encrypted ahead of time.

use lanner_primitives::Share;
use lanner_step::encoding::{read_share, write_share};
use lanner_step::messages::send_share;
use lanner_step::{Client, Inputs, Result, Step, Value, kind};
use lanner_wire::{Channel, DecodeError, Reader, Writer};

use crate::cheetah::{self, Scheme};

/// A layer as the client runs it.
pub struct ClientLayer {
    layer: cheetah::ClientLayer,
    inputs: usize,
    outputs: usize,
}

/// The share that was encrypted in place of the input's.
pub struct ClientRequest(Share);

/// One-time material of one run.
///
/// It is used up by value and cannot be copied:
///
/// ```compile_fail
/// fn twice(material: lanner_coefficient::delphi::ClientMaterial) {
///     let copy = material.clone();
/// }
/// ```
pub struct ClientMaterial {
    /// The share that was encrypted in place of the input's: it masks that one.
    mask: Share,
    share: Share,
}

impl ClientLayer {
    /// Lays the layer out.
    ///
    /// # Errors
    /// None: what does not fit was refused when the scheme was made.
    pub fn new(scheme: Scheme) -> Result<Self> {
        Self::of(cheetah::ClientLayer::new(scheme)?)
    }

    /// The layer that runs that one ahead of time.
    pub(super) fn of(layer: cheetah::ClientLayer) -> Result<Self> {
        let shape = layer.scheme().packing().shape();
        let (inputs, outputs) = (shape.inputs(), shape.outputs()?);
        Ok(Self { layer, inputs, outputs })
    }
}

impl Step<Client> for ClientLayer {
    type Request = ClientRequest;
    type Material = ClientMaterial;

    fn request(&self, channel: &mut dyn Channel, client: &mut Client) -> Result<ClientRequest> {
        let mask = Share::random(self.layer.scheme().input_ring(), self.inputs, &mut client.rng);
        // C -> S: seeds of c1, c0 of the mask
        let request = self.layer.request(channel, client)?;
        self.layer.send(channel, request, &mask)?;
        Ok(ClientRequest(mask))
    }

    fn prepare(
        &self,
        channel: &mut dyn Channel,
        client: &mut Client,
        ClientRequest(mask): ClientRequest,
        _: &Inputs,
    ) -> Result<(ClientMaterial, Option<Value>)> {
        // S -> C: c1 of each output, then c0
        let phases = self.layer.receive_phases(channel, client)?;
        let share = self.layer.open(channel, phases)?;
        Ok((ClientMaterial { mask, share: share.clone() }, Some(Value::Shared(share))))
    }

    fn encode(&self, material: &ClientMaterial, writer: &mut Writer) {
        write_share(&material.mask, writer);
        write_share(&material.share, writer);
    }

    fn decode(&self, reader: &mut Reader<'_>) -> Result<ClientMaterial, DecodeError> {
        let scheme = self.layer.scheme();
        let mask = read_share(reader, scheme.input_ring(), self.inputs)?;
        Ok(ClientMaterial { mask, share: read_share(reader, scheme.ring(), self.outputs)? })
    }

    fn online(&self, channel: &mut dyn Channel, material: ClientMaterial, inputs: &Inputs) -> Result<Value> {
        let share = inputs.share()?;
        self.layer.scheme().check_input(share)?;
        // C -> S: x_C - r
        send_share(channel, kind::LINEAR_DIFFERENCE, &share.sub(&material.mask)?)?;
        channel.flush()?;
        Ok(Value::Shared(material.share))
    }
}
