//! The server: garbler of the circuit.

use lanner_ot::CorrelatedSender;
use lanner_primitives::Prg;
use lanner_share::Share;
use lanner_wire::{Channel, DecodeError, Reader};

use super::function::Softmax;
use crate::ProtocolError;
use crate::nonlinear::yao::{GarblingSession, InputLabels};

/// One-time material: what answers the client with labels.
///
/// It is used up by value and cannot be copied:
///
/// ```compile_fail
/// fn twice(material: lanner_protocol::nonlinear::softmax::ServerMaterial) {
///     let copy = material.clone();
/// }
/// ```
pub struct ServerMaterial(pub(super) InputLabels);

/// A softmax on the server's side.
pub struct ServerSoftmax(Softmax);

impl ServerSoftmax {
    /// Prepares a softmax.
    #[must_use]
    pub fn new(softmax: Softmax) -> Self {
        Self(softmax)
    }

    /// Offline: garbles for the server's share of the scores and sends what decodes the outputs.
    ///
    /// # Errors
    /// [`ProtocolError::Shape`] if `share` does not fit; any failure of the channel.
    pub fn offline<S: CorrelatedSender>(
        &self,
        channel: &mut dyn Channel,
        session: &mut GarblingSession<S>,
        share: &Share,
        rng: &mut Prg,
    ) -> Result<ServerMaterial, ProtocolError> {
        let garbler_bits = self.0.garbler_bits(share)?;
        session.garble_revealing(channel, self.0.circuit(), &garbler_bits, rng).map(ServerMaterial)
    }

    pub(super) fn decode(&self, reader: &mut Reader<'_>) -> Result<ServerMaterial, DecodeError> {
        let circuit = self.0.circuit();
        InputLabels::decode(reader, circuit, circuit.evaluator_inputs()).map(ServerMaterial)
    }

    /// Online: answers the client's input; the client learns the label and the digits.
    ///
    /// # Errors
    /// [`ProtocolError::Channel`] if the peer's message is not the one due.
    pub fn online(&self, channel: &mut dyn Channel, material: ServerMaterial) -> Result<(), ProtocolError> {
        material.0.answer(channel)
    }
}
