//! The client: a packed layer whose input is its share and the square of its share.

use lanner_bfv::Parameters;
use lanner_share::Ring;

use super::Target;
use crate::ProtocolError;
use crate::linear::gazelle::ClientLayer;

/// The client's side of squares modulo `prime`: online it sends `[c]`, then `[c^2]`, and receives its share of the target.
///
/// # Errors
/// [`ProtocolError::Bfv`] if the prime does not fit the parameters.
pub fn client(target: &Target, parameters: &Parameters, prime: u64) -> Result<ClientLayer, ProtocolError> {
    let layout = target.layout(parameters, Ring::Prime(prime));
    ClientLayer::squaring(layout, parameters, prime, target.ciphertexts(parameters))
}
