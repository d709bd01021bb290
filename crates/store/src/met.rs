//! Parties that met.

use serde::Serialize;
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::PairingId;

/// What both parties of a pairing know, and nobody else: it proves in a later session who made the pairing.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Secret(pub [u8; 32]);

/// A client and a server that met over a model, as one of them keeps it.
pub struct Pairing {
    /// The name that both gave it.
    pub id: PairingId,
    /// What proves it.
    pub secret: Secret,
    /// What material is for: plan, parameters and weights. See `Manifest::identity`.
    pub model: [u8; 32],
    /// The model's name, for people.
    pub model_name: String,
    /// With whom: the server's fingerprint or address, the client's address.
    pub peer: String,
    /// The fingerprint of the client's certificate, where the server asked for one: only its owner may use the pairing then.
    pub certificate: Option<String>,
}

/// A pairing as people see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PairingEntry {
    /// Its name, as 32 hexadecimal digits.
    pub id: String,
    /// Which part this party plays: `client` or `server`.
    pub party: &'static str,
    /// The model's name.
    pub model: String,
    /// The model's identity, as 64 hexadecimal digits.
    pub commitment: String,
    /// With whom.
    pub peer: String,
    /// The fingerprint of the client's certificate, if it had one.
    pub certificate: Option<String>,
    /// When it was made, in seconds since 1970.
    pub created: u64,
    /// When it was last used.
    pub used: u64,
    /// Predictions for which material is kept.
    pub predictions: u64,
    /// Bytes kept: of material and of keys.
    pub bytes: u64,
}
