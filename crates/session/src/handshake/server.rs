//! The server's side of the handshake.

use lanner_wire::{Channel, ChannelError, Decode, Encode, Kind, Refusal};
use rand_core::CryptoRng;

use super::messages::{Hello, Models, REQUEST_LIMIT, Role, SessionId, Welcome};
use super::{
    Agreement, CONFIRM, HELLO, HandshakeError, LIST_MODELS, MODEL_REQUEST, MODELS, ModelEntry, ModelRequest,
    PROBE, PROBE_LIMIT, PROBED, WELCOME, check_confirmation, derive, receive_hello, refuse,
};

/// A model that a server serves.
#[derive(Clone)]
pub struct Offer {
    /// Its name and commitment; the name has at most 256 bytes.
    pub model: ModelEntry,
    /// The digest of everything that both parties must derive alike from the manifest.
    pub parameters: [u8; 32],
    /// Its public half, at most 4 MiB.
    pub manifest: Vec<u8>,
}

/// Answers a client until it has one of the offers: its index, and what was agreed.
///
/// The client is told why it is refused, where that is public.
///
/// # Errors
/// [`HandshakeError`] about the client's messages, or the model that it wants.
pub fn answer(
    channel: &mut dyn Channel,
    binding: Option<[u8; 32]>,
    offers: &[Offer],
    rng: &mut impl CryptoRng,
) -> Result<(usize, Agreement), HandshakeError> {
    let result = converse(channel, binding, offers, rng);
    if let Err(error) = &result
        && let Some(refusal) = error.refusal()
    {
        refuse(channel, refusal);
    }
    result
}

fn converse(
    channel: &mut dyn Channel,
    binding: Option<[u8; 32]>,
    offers: &[Offer],
    rng: &mut impl CryptoRng,
) -> Result<(usize, Agreement), HandshakeError> {
    let peer = receive_hello(channel)?;
    let mut nonce = [0; 32];
    rng.fill_bytes(&mut nonce);
    let own = Hello { role: Role::Server, nonce }.to_bytes();
    channel.send(HELLO, &own)?;
    Hello::check(&peer, Role::Server)?;
    let question = receive_request(channel, offers)?;
    let index = choose(offers, &ModelRequest::from_bytes(&question)?)?;
    let mut id = SessionId([0; 16]);
    rng.fill_bytes(&mut id.0);
    let Offer { model, parameters, manifest } = offers[index].clone();
    let answer = Welcome { model, parameters, id, manifest }.to_bytes();
    let (agreement, confirmations) = derive(binding, id, [&peer, &own, &question, &answer]);
    channel.send(WELCOME, &answer)?;
    channel.send(CONFIRM, &confirmations.server)?;
    check_confirmation(channel, &confirmations.client)?;
    Ok((index, agreement))
}

/// Lists the models and answers probes as often as the client asks (within reason), until it wants a model.
fn receive_request(channel: &mut dyn Channel, offers: &[Offer]) -> Result<Vec<u8>, HandshakeError> {
    for asked in 0..QUESTION_LIMIT {
        match channel.receive_header() {
            Err(ChannelError::Disconnected) if asked > 0 => return Err(HandshakeError::OnlyListed),
            header => match header? {
                (LIST_MODELS, 0) => {
                    let models = Models(offers.iter().map(|offer| offer.model.clone()).collect());
                    channel.send(MODELS, &models.to_bytes())?;
                }
                (PROBE, length) if (4..=4 + PROBE_LIMIT).contains(&length) => {
                    answer_probe(channel, length)?;
                }
                (MODEL_REQUEST, length) if length <= REQUEST_LIMIT => {
                    let mut question = vec![0; length];
                    channel.receive_body(&mut question)?;
                    return Ok(question);
                }
                (got, got_length) => return Err(unexpected(got, got_length)),
            },
        }
    }
    Err(ChannelError::Malformed { what: "handshake: too many questions" }.into())
}

/// Answers a probe with as many zeros as it wants, which nothing on the way makes fewer: TLS does not compress. Who sends more before it has
/// the answer measures nothing, and would have the server keep it.
fn answer_probe(channel: &mut dyn Channel, length: usize) -> Result<(), HandshakeError> {
    let mut wanted = [0; 4];
    channel.receive_body(&mut wanted)?;
    let wanted = u32::from_le_bytes(wanted) as usize;
    if wanted > PROBE_LIMIT {
        return Err(ChannelError::Malformed { what: "handshake: a probe's length" }.into());
    }
    let (mut left, mut piece) = (length - 4, [0; 4096]);
    while left > 0 {
        let count = left.min(piece.len());
        channel.receive_body(&mut piece[..count])?;
        left -= count;
    }
    if let Some(divisible) = channel.divisible()
        && divisible.peek_header()?.is_some()
    {
        return Err(ChannelError::Malformed { what: "handshake: more behind a probe" }.into());
    }
    channel.send(PROBED, &vec![0; wanted])?;
    Ok(channel.flush()?)
}

fn unexpected(got: Kind, got_length: usize) -> HandshakeError {
    ChannelError::Unexpected { expected: MODEL_REQUEST, expected_length: REQUEST_LIMIT, got, got_length }
        .into()
}

fn choose(offers: &[Offer], request: &ModelRequest) -> Result<usize, HandshakeError> {
    let unknown = || HandshakeError::UnknownModel { name: request.name.clone() };
    let index = if request.name.is_empty() {
        if offers.len() == 1 { Some(0) } else { None }
    } else {
        offers.iter().position(|offer| offer.model.name == request.name)
    };
    let index = index.ok_or_else(unknown)?;
    let got = &offers[index].model.commitment;
    match request.pin {
        Some(pin) if pin != *got => Err(HandshakeError::wrong_model(&pin, got)),
        _ => Ok(index),
    }
}

impl HandshakeError {
    /// What a client may know about a failure; nothing if the connection is gone or the client itself refused.
    const fn refusal(&self) -> Option<Refusal> {
        match self {
            Self::Version { .. } => Some(Refusal::Version),
            Self::UnknownModel { .. } | Self::WrongModel { .. } => Some(Refusal::Model),
            Self::Parameters => Some(Refusal::Parameters),
            Self::Channel(ChannelError::Unexpected { expected, got, .. }) if expected.0 == got.0 => {
                Some(Refusal::Size)
            }
            Self::Stranger
            | Self::Tls
            | Self::Role { .. }
            | Self::Channel(ChannelError::Unexpected { .. } | ChannelError::Malformed { .. }) => {
                Some(Refusal::Refused)
            }
            Self::Channel(_) | Self::Confirmation | Self::OnlyListed => None,
        }
    }

    /// Whether [`answer`] told the client: a second refusal would be one too many.
    pub(crate) const fn is_told(&self) -> bool {
        self.refusal().is_some() || matches!(self, Self::Confirmation)
    }
}

/// Messages before the client must have chosen a model.
const QUESTION_LIMIT: usize = 16;
