//! The client's side of the handshake.

use lanner_wire::{Channel, Decode, Encode, Refusal};
use rand_core::CryptoRng;

use super::messages::{Hello, MODELS_LIMIT, Models, Role, WELCOME_LIMIT, Welcome};
use super::{
    Agreement, CONFIRM, HELLO, HandshakeError, LIST_MODELS, MODEL_REQUEST, MODELS, ModelEntry, ModelRequest,
    PROBE, PROBED, WELCOME, check_confirmation, derive, receive_hello, refuse,
};

/// A client that has introduced itself.
pub struct Greeting {
    own: Vec<u8>,
    /// The server's Hello, once it came.
    peer: Option<Vec<u8>>,
}

impl Greeting {
    /// Queues the client's Hello; it leaves with the first question.
    ///
    /// # Errors
    /// [`HandshakeError::Channel`] if the connection fails.
    pub fn send(channel: &mut dyn Channel, rng: &mut impl CryptoRng) -> Result<Self, HandshakeError> {
        let mut nonce = [0; 32];
        rng.fill_bytes(&mut nonce);
        let own = Hello { role: Role::Client, nonce }.to_bytes();
        channel.send(HELLO, &own)?;
        Ok(Self { own, peer: None })
    }

    /// Asks which models there are.
    ///
    /// # Errors
    /// [`HandshakeError::Version`] and the like about the server's Hello; [`HandshakeError::Channel`] if it refuses.
    pub fn list(&mut self, channel: &mut dyn Channel) -> Result<Vec<ModelEntry>, HandshakeError> {
        channel.send(LIST_MODELS, &[])?;
        self.receive_hello(channel)?;
        let models = channel.receive_bounded(MODELS, MODELS_LIMIT)?;
        Ok(Models::from_bytes(&models)?.0)
    }

    /// Sends bytes that mean nothing, and waits for as many zeros as are wanted: each at most [`PROBE_LIMIT`](super::PROBE_LIMIT).
    ///
    /// # Errors
    /// As [`Greeting::list`].
    pub fn probe(
        &mut self,
        channel: &mut dyn Channel,
        bytes: &[u8],
        wanted: u32,
    ) -> Result<(), HandshakeError> {
        channel.send(PROBE, &[&wanted.to_le_bytes(), bytes].concat())?;
        self.receive_hello(channel)?;
        Ok(channel.receive(PROBED, wanted as usize).map(drop)?)
    }

    /// Asks for a model. `binding` is the connection's own value, where it has one.
    ///
    /// # Errors
    /// [`HandshakeError::WrongModel`] if the model is not the pinned one; as [`Greeting::list`].
    pub fn request(
        mut self,
        channel: &mut dyn Channel,
        binding: Option<[u8; 32]>,
        request: &ModelRequest,
    ) -> Result<Welcomed, HandshakeError> {
        let question = request.to_bytes();
        channel.send(MODEL_REQUEST, &question)?;
        let peer = self.receive_hello(channel)?;
        let answer = channel.receive_bounded(WELCOME, WELCOME_LIMIT)?;
        let welcome = Welcome::from_bytes(&answer)?;
        check_model(channel, request, &welcome.model)?;
        let (agreement, confirmations) = derive(binding, welcome.id, [&self.own, &peer, &question, &answer]);
        check_confirmation(channel, &confirmations.server)?;
        Ok(Welcomed { welcome, agreement, confirmation: confirmations.client })
    }

    fn receive_hello(&mut self, channel: &mut dyn Channel) -> Result<Vec<u8>, HandshakeError> {
        if let Some(peer) = &self.peer {
            return Ok(peer.clone());
        }
        let peer = receive_hello(channel)?;
        Hello::check(&peer, Role::Client)?;
        self.peer = Some(peer.clone());
        Ok(peer)
    }
}

fn check_model(
    channel: &mut dyn Channel,
    request: &ModelRequest,
    model: &ModelEntry,
) -> Result<(), HandshakeError> {
    if let Some(pin) = request.pin.filter(|pin| *pin != model.commitment) {
        refuse(channel, Refusal::Model);
        return Err(HandshakeError::wrong_model(&pin, &model.commitment));
    }
    if !request.name.is_empty() && request.name != model.name {
        refuse(channel, Refusal::Model);
        return Err(HandshakeError::UnknownModel { name: request.name.clone() });
    }
    Ok(())
}

/// A client that was granted a model and has yet to find that it derives the server's parameters from it.
pub struct Welcomed {
    welcome: Welcome,
    agreement: Agreement,
    confirmation: [u8; 16],
}

impl Welcomed {
    /// The model's name and commitment.
    #[must_use]
    pub const fn model(&self) -> &ModelEntry {
        &self.welcome.model
    }

    /// The public half of the model, as the server sent it: at most 4 MiB, not parsed yet.
    #[must_use]
    pub fn manifest(&self) -> &[u8] {
        &self.welcome.manifest
    }

    /// Ends the handshake. `parameters` is the digest of everything that the client derived from the manifest and that both
    /// parties must derive alike.
    ///
    /// # Errors
    /// [`HandshakeError::Parameters`] if the server's digest differs; the server is told.
    pub fn agree(self, channel: &mut dyn Channel, parameters: [u8; 32]) -> Result<Agreement, HandshakeError> {
        if parameters != self.welcome.parameters {
            refuse(channel, Refusal::Parameters);
            return Err(HandshakeError::Parameters);
        }
        channel.send(CONFIRM, &self.confirmation)?;
        Ok(self.agreement)
    }
}
