//! The client: evaluator of the circuit.

use lanner_ot::CorrelatedReceiver;
use lanner_share::Share;
use lanner_wire::{Channel, ChannelError, DecodeError, Reader};

use super::function::{Likely, Softmax};
use crate::ProtocolError;
use crate::nonlinear::yao::{self, EvaluationSession, Revealing};

/// The transfers of a softmax, asked for; the server's answer is still to be received.
pub struct ClientRequest(yao::ClientRequest);

/// One-time material: the garbled circuit, labels of random bits, and what decodes the outputs.
///
/// It is used up by value and cannot be copied:
///
/// ```compile_fail
/// fn twice(material: lanner_protocol::nonlinear::softmax::ClientMaterial) {
///     let copy = material.clone();
/// }
/// ```
pub struct ClientMaterial(pub(super) Revealing);

/// A softmax on the client's side.
pub struct ClientSoftmax(Softmax);

impl ClientSoftmax {
    /// Prepares a softmax.
    #[must_use]
    pub fn new(softmax: Softmax) -> Self {
        Self(softmax)
    }

    /// Offline, first half: asks for the transfers.
    ///
    /// # Errors
    /// Those of the channel.
    pub fn request<R: CorrelatedReceiver>(
        &self,
        channel: &mut dyn Channel,
        session: &mut EvaluationSession<R>,
    ) -> Result<ClientRequest, ProtocolError> {
        session.request_revealing(channel, self.0.circuit()).map(ClientRequest)
    }

    /// Offline, second half: receives the circuit and what decodes it.
    ///
    /// # Errors
    /// [`ProtocolError::Channel`] if the peer's messages are not the ones due.
    pub fn receive(
        &self,
        channel: &mut dyn Channel,
        request: ClientRequest,
    ) -> Result<ClientMaterial, ProtocolError> {
        request.0.receive_revealing(channel, self.0.circuit()).map(ClientMaterial)
    }

    pub(super) fn decode(&self, reader: &mut Reader<'_>) -> Result<ClientMaterial, DecodeError> {
        Revealing::decode(reader, self.0.circuit()).map(ClientMaterial)
    }

    /// Online: the label and its probability.
    ///
    /// # Errors
    /// [`ProtocolError::Shape`] if `share` does not fit; [`ProtocolError::Channel`] if the peer's message is not the one due, the label is
    /// not of a class, or the probability is above one.
    pub fn online(
        &self,
        channel: &mut dyn Channel,
        material: ClientMaterial,
        share: &Share,
    ) -> Result<Likely, ProtocolError> {
        let input = self.0.evaluator_bits(share)?;
        let outputs = material.0.reveal(channel, self.0.circuit(), &input)?;
        let malformed = ChannelError::Malformed { what: "garbled tables" };
        self.0.likely(&outputs).ok_or(malformed.into())
    }
}
