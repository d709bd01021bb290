//! Set-up: the client's keys of a parameter set, once a session and for all its linear layers.

use lanner_bfv::{EvaluationKeys, NeededKey, Parameters, PublicKey, SecretKey};
use lanner_wire::{Channel, ChannelError, Encode, Reader, Writer};
use rand_core::CryptoRng;

use crate::{Cost, ProtocolError, kind};

/// A client's keys of one parameter set, as the server holds them.
pub struct ClientKeys {
    /// For fresh encryptions of zero.
    pub public: PublicKey,
    /// For rotations.
    pub evaluation: EvaluationKeys,
}

/// The client makes its keys, for what all layers need, and sends what the server needs of them. The secret key is the first that
/// is drawn from `rng`: see [`secret_key`].
///
/// # Errors
/// Those of the channel; [`ProtocolError::Bfv`] for a key of another degree, or any where the parameters have none.
pub fn send_keys(
    channel: &mut dyn Channel,
    parameters: &Parameters,
    needed: &[NeededKey],
    rng: &mut impl CryptoRng,
) -> Result<SecretKey, ProtocolError> {
    let key = secret_key(parameters, rng);
    let ClientKeys { public, evaluation } = ClientKeys::generate(&key, needed, rng)?;
    // C -> S: the public key, the evaluation keys
    channel.send(kind::PUBLIC_KEY, &public.to_bytes())?;
    channel.send(kind::EVALUATION_KEYS, &evaluation.to_bytes())?;
    Ok(key)
}

/// The secret key that [`send_keys`] makes of the same generator.
#[must_use]
pub fn secret_key(parameters: &Parameters, rng: &mut impl CryptoRng) -> SecretKey {
    SecretKey::generate(parameters, rng)
}

/// The server receives the client's keys for what all layers need.
///
/// # Errors
/// [`ProtocolError::Channel`] if the peer's messages are not the ones due.
pub fn receive_keys(
    channel: &mut dyn Channel,
    parameters: &Parameters,
    needed: &[NeededKey],
) -> Result<ClientKeys, ProtocolError> {
    let bytes = channel.receive(kind::PUBLIC_KEY, PublicKey::encoded_len(parameters))?;
    let public = PublicKey::from_bytes(parameters, &bytes)?;
    let bytes = channel.receive(kind::EVALUATION_KEYS, EvaluationKeys::encoded_len(parameters, needed)?)?;
    let evaluation = EvaluationKeys::from_bytes(parameters, needed, &bytes)?;
    Ok(ClientKeys { public, evaluation })
}

impl Encode for ClientKeys {
    fn encode(&self, writer: &mut Writer) {
        self.public.encode(writer);
        self.evaluation.encode(writer);
    }
}

impl ClientKeys {
    /// What the server needs of a secret key, for what all layers need.
    ///
    /// # Errors
    /// As [`send_keys`], but for the channel's.
    pub fn generate(
        key: &SecretKey,
        needed: &[NeededKey],
        rng: &mut impl CryptoRng,
    ) -> Result<Self, ProtocolError> {
        let public = PublicKey::generate(key, rng);
        Ok(Self { public, evaluation: EvaluationKeys::generate(key, needed, rng)? })
    }

    /// The length of what [`Encode`] writes.
    ///
    /// # Errors
    /// As [`keys_cost`].
    pub fn encoded_len(parameters: &Parameters, needed: &[NeededKey]) -> Result<usize, ProtocolError> {
        Ok(PublicKey::encoded_len(parameters) + EvaluationKeys::encoded_len(parameters, needed)?)
    }

    /// Reads what [`Encode`] writes, for what all layers need.
    ///
    /// # Errors
    /// [`ProtocolError::Bfv`] unless it is exactly that.
    pub fn read(
        reader: &mut Reader<'_>,
        parameters: &Parameters,
        needed: &[NeededKey],
    ) -> Result<Self, ProtocolError> {
        let public = reader.bytes(PublicKey::encoded_len(parameters)).map_err(ChannelError::from)?;
        let length = EvaluationKeys::encoded_len(parameters, needed)?;
        let evaluation = reader.bytes(length).map_err(ChannelError::from)?;
        Ok(Self {
            public: PublicKey::from_bytes(parameters, public)?,
            evaluation: EvaluationKeys::from_bytes(parameters, needed, evaluation)?,
        })
    }
}

/// The cost of sending the keys.
///
/// # Errors
/// [`ProtocolError::Bfv`] for a key of another degree, or any where the parameters have none.
pub fn keys_cost(parameters: &Parameters, needed: &[NeededKey]) -> Result<Cost, ProtocolError> {
    let evaluation = EvaluationKeys::encoded_len(parameters, needed)?;
    Ok(Cost::NONE.client(PublicKey::encoded_len(parameters)).client(evaluation))
}
