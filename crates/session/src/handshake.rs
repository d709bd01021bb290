//! The first messages of a session: what both parties speak, which model is served, and the keys that bind them.
//!
//! ```text
//! Client                                   Server
//! Hello{version, role, nonce}         -->
//! ListModels | ModelRequest{name, pin}-->
//!                                     <--  Hello{version, role, nonce}
//!                                     <--  Models                        (then the client asks again)
//!                                     <--  Welcome{name, commitment, parameters, id, manifest}
//!                                     <--  Confirm
//! Confirm                             -->
//! ```
//!
//! Before it wants a model, a client may ask for the list and, to measure the network, for bytes that mean nothing:
//!
//! ```text
//! Probe{length, bytes}                -->
//!                                     <--  Probed: so many zeros
//! ```
//!
//! One round. The server's Hello comes before any refusal, so that a client of another version can name both. All of
//! these bytes and the TLS exporter's value go into one key: parties that saw different messages, or that sit on two
//! connections with somebody between them, get different confirmations.
//!
//! Threat model: everything here is public between the parties; a peer may send anything. Without TLS the key hides
//! nothing from the network.

mod client;
mod messages;
mod server;

use hkdf::Hkdf;
use lanner_primitives::{Direction, Label, Seed, derive_seed};
use lanner_store::{PairingId, Secret};
use lanner_wire::{Channel, ChannelError, DecodeError, Kind, Refusal};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use thiserror::Error;
use zeroize::Zeroizing;

pub use client::{Greeting, Welcomed};
use messages::HELLO_LIMIT;
pub use messages::{MANIFEST_LIMIT, ModelEntry, ModelRequest, SessionId};
pub use server::{Offer, answer};

/// The version of everything that crosses the wire: a party speaks exactly one.
pub const WIRE_VERSION: u32 = 6;

/// Why no session came about.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HandshakeError {
    /// The peer speaks another version.
    #[error("this side speaks wire version {ours}, the peer {theirs}")]
    Version {
        /// The version of this side.
        ours: u32,
        /// The version of the peer.
        theirs: u32,
    },
    /// The peer's first message is not this protocol's.
    #[error("the peer does not speak this protocol")]
    Stranger,
    /// The peer's first bytes are TLS, and this side does without.
    #[error("the peer speaks TLS, and this side does without")]
    Tls,
    /// The client asked for the models' names and left: nothing is wrong.
    #[error("the client asked which models there are, and left")]
    OnlyListed,
    /// The peer plays this party's own part.
    #[error("the peer is also a {role}")]
    Role {
        /// The part that both play.
        role: &'static str,
    },
    /// The server does not serve the model, or not only one when none was named.
    #[error("{}", if name.is_empty() { "no model was named, and there are several".into() } else { format!("there is no model {name:?}") })]
    UnknownModel {
        /// The name in the request.
        name: String,
    },
    /// The model is not the pinned one.
    #[error("the model's commitment is {got}, not the pinned {expected}")]
    WrongModel {
        /// The pinned commitment, in hexadecimal.
        expected: String,
        /// The commitment of the model served, in hexadecimal.
        got: String,
    },
    /// The parties derive different parameters from the same model.
    #[error("client and server derive different parameters from the model")]
    Parameters,
    /// The parties saw different handshakes.
    #[error("client and server saw different handshakes")]
    Confirmation,
    /// The connection failed, or the peer refused.
    #[error(transparent)]
    Channel(#[from] ChannelError),
}

impl HandshakeError {
    /// That a model has another commitment than the pinned one.
    #[must_use]
    pub fn wrong_model(pinned: &[u8; 32], got: &[u8; 32]) -> Self {
        Self::WrongModel { expected: hex(pinned), got: hex(got) }
    }
}

impl From<DecodeError> for HandshakeError {
    fn from(error: DecodeError) -> Self {
        Self::Channel(error.into())
    }
}

/// What the parties agreed on: a name for the session and a secret that both have.
///
/// The secret is known to both parties by design: it seeds what both derive, never what one hides from the other.
pub struct Agreement {
    id: SessionId,
    transcript: [u8; 32],
    secret: Zeroizing<[u8; 32]>,
}

impl Agreement {
    /// The random name under which both parties log the session.
    #[must_use]
    pub const fn id(&self) -> SessionId {
        self.id
    }

    /// The hash of the whole handshake: the session's part of every [`Label`].
    #[must_use]
    pub const fn transcript(&self) -> [u8; 32] {
        self.transcript
    }

    /// The name and the secret of a pairing that the parties may make of this session, and what an earlier one's proofs in it are over.
    #[must_use]
    pub fn pairing(&self) -> (PairingId, Secret, [u8; 32]) {
        let seed = |op, index| self.seed(0, op, index, Direction::ServerToClient);
        let long = |op| {
            let mut bytes = [0; 32];
            bytes[..16].copy_from_slice(seed(op, 0).as_bytes());
            bytes[16..].copy_from_slice(seed(op, 1).as_bytes());
            bytes
        };
        let id = PairingId::from_bytes(*seed("pairing name", 0).as_bytes());
        (id, Secret(long("pairing secret")), long("pairing challenge"))
    }

    /// The seed that both parties derive for one purpose.
    #[must_use]
    pub fn seed(&self, layer: u32, op: &str, index: u64, direction: Direction) -> Seed {
        let label = Label { session: self.transcript, layer, op, index, direction };
        derive_seed(self.secret.as_slice(), &label)
    }
}

/// Both parties' keys: `messages` are the four messages of the handshake in their order.
fn derive(binding: Option<[u8; 32]>, id: SessionId, messages: [&[u8]; 4]) -> (Agreement, Confirmations) {
    let mut hash = Sha256::new_with_prefix(b"lanner handshake v1");
    for message in messages {
        hash.update((message.len() as u64).to_le_bytes());
        hash.update(message);
    }
    let transcript: [u8; 32] = hash.finalize().into();
    let input = binding.map(Zeroizing::new);
    let hkdf = Hkdf::<Sha256>::new(Some(&transcript), input.as_ref().map_or(&[], |input| input.as_slice()));
    let mut secret = Zeroizing::new([0; 32]);
    let mut confirmations = Confirmations { client: [0; 16], server: [0; 16] };
    let expanded = [
        hkdf.expand(b"lanner session secret", secret.as_mut_slice()),
        hkdf.expand(b"lanner client confirmation", &mut confirmations.client),
        hkdf.expand(b"lanner server confirmation", &mut confirmations.server),
    ];
    debug_assert!(expanded.iter().all(Result::is_ok), "HKDF-SHA256 gives up to 8160 bytes");
    (Agreement { id, transcript, secret }, confirmations)
}

/// What each party shows to prove that it saw the same handshake.
struct Confirmations {
    client: [u8; 16],
    server: [u8; 16],
}

fn check_confirmation(channel: &mut dyn Channel, expected: &[u8; 16]) -> Result<(), HandshakeError> {
    let mut got = [0; 16];
    channel.receive_into(CONFIRM, &mut got)?;
    if bool::from(got.ct_eq(expected)) {
        return Ok(());
    }
    refuse(channel, Refusal::Refused);
    Err(HandshakeError::Confirmation)
}

/// Tells the peer why there is no session. The caller fails anyway, so that a failure to tell adds nothing.
fn refuse(channel: &mut dyn Channel, refusal: Refusal) {
    let _ = channel.send(Kind::REFUSED, &[refusal.code()]).and_then(|()| channel.flush());
}

/// Receives the peer's Hello, without a look at what is in it.
fn receive_hello(channel: &mut dyn Channel) -> Result<Vec<u8>, HandshakeError> {
    match channel.receive_bounded(HELLO, HELLO_LIMIT) {
        Err(ChannelError::Unexpected { got_length, .. }) if is_tls(got_length) => Err(HandshakeError::Tls),
        received => Ok(received?),
    }
}

/// Whether what was read as a frame's length begins a TLS record: an alert or a handshake, and the version's first byte. No Hello is so
/// long.
const fn is_tls(length: usize) -> bool {
    matches!(length & 0xffff, 0x0315 | 0x0316)
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

const HELLO: Kind = Kind(0x01);
const LIST_MODELS: Kind = Kind(0x02);
const MODELS: Kind = Kind(0x03);
const MODEL_REQUEST: Kind = Kind(0x04);
const WELCOME: Kind = Kind(0x05);
const CONFIRM: Kind = Kind(0x06);
const PROBE: Kind = Kind(0x07);
const PROBED: Kind = Kind(0x08);
/// Most bytes that a probe has in either direction, without the four that say how long its answer is to be.
pub const PROBE_LIMIT: usize = 1 << 20;
