//! What a server offers, asked for without a session.

use lanner_primitives::Prg;
use lanner_session::handshake::Greeting;
use serde::Serialize;

use crate::connect::open;
use crate::hex::hex;
use crate::{ClientConfig, Error, ErrorKind, Result};

/// A model that a server offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OfferedModel {
    /// The name to ask for, as the server chose it.
    pub name: String,
    /// The model's identity, which a client pins, in hexadecimal.
    pub commitment: String,
}

/// The models that a server offers, in its order.
///
/// # Errors
/// [`ErrorKind::Misuse`] if nothing says whom to trust; [`ErrorKind::Transport`] or [`ErrorKind::Peer`] about the server.
pub fn list_models(config: &ClientConfig) -> Result<Vec<OfferedModel>> {
    let mut rng = Prg::from_entropy().map_err(|error| Error::new(ErrorKind::Misuse, error.to_string()))?;
    let mut channel = open(config, &config.address.parse()?)?;
    let listed = Greeting::send(&mut channel, &mut rng)?.list(&mut channel)?;
    let offered = |model: lanner_session::handshake::ModelEntry| OfferedModel {
        name: model.name,
        commitment: hex(&model.commitment),
    };
    Ok(listed.into_iter().map(offered).collect())
}
