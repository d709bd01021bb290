//! How parties that met find that they did, and prove it to each other.
//!
//! ```text
//! C                                           S
//! for up to 8 pairings: name, proof_C  -->
//!                                      <--    the number of the first whose proof is right, proof_S; or none
//! ```
//!
//! A proof is a pseudorandom function, under the pairing's secret, of a value that only the two ends of this session derive, and of who proves:
//! it serves once, between these two. The secret is derived from the handshake of the session that made the pairing, whose key only its two ends know (under TLS).

use hkdf::Hkdf;
use lanner_step::Party;
use lanner_store::{Pairing, PairingId, Secret};
use lanner_wire::{Channel, ChannelError};
use sha2::Sha256;
use subtle::ConstantTimeEq;
use tracing::warn;

use super::{PAIRINGS, RESUMED, Shelf};
use crate::executor::ExecutionError;

/// Pairings that a client offers at once, the rest being zeros: with replicas of one server, one with each.
const OFFERED: usize = 8;

/// The client offers pairings; whether the server knows one.
pub(super) fn offer(
    channel: &mut dyn Channel,
    shelf: &mut Shelf,
    offered: &[Pairing],
) -> Result<bool, ExecutionError> {
    let mut message = [[0; 16 + PROOF_BYTES]; OFFERED];
    for (entry, Pairing { id, secret, .. }) in message.iter_mut().zip(offered) {
        entry[..16].copy_from_slice(id.as_bytes());
        entry[16..].copy_from_slice(&proof(secret, &shelf.meeting.challenge, Party::Client));
    }
    channel.send(PAIRINGS, message.as_flattened())?;
    let mut answer = [0; 1 + PROOF_BYTES];
    channel.receive_into(RESUMED, &mut answer)?;
    if answer == NONE {
        return Ok(false);
    }
    let Pairing { id, secret, .. } =
        offered.get(usize::from(answer[0])).ok_or(ChannelError::Malformed { what: "pairing's number" })?;
    if !bool::from(proof(secret, &shelf.meeting.challenge, Party::Server).ct_eq(&answer[1..])) {
        return Err(ChannelError::Malformed { what: "pairing's proof" }.into());
    }
    shelf.resume(*id);
    Ok(true)
}

/// The client's pairings with this server over this model, as many as it may offer; none where the disk fails, without which a session goes on.
pub(super) fn candidates(shelf: &Shelf) -> Vec<Pairing> {
    let Pairing { peer, model, .. } = &shelf.meeting.pairing;
    let names = shelf.stock.pairings_with(peer, model).unwrap_or_else(|error| {
        warn!(%error, "pairings cannot be read");
        Vec::new()
    });
    // One that is damaged serves nobody, and the next may.
    names.into_iter().filter_map(|id| shelf.stock.pairing(id, model).ok().flatten()).take(OFFERED).collect()
}

/// The server takes the first pairing that it knows and that is proved. Without a shelf it knows none.
pub(super) fn accept(channel: &mut dyn Channel, shelf: Option<&mut Shelf>) -> Result<(), ExecutionError> {
    let mut message = [[0; 16 + PROOF_BYTES]; OFFERED];
    channel.receive_into(PAIRINGS, message.as_flattened_mut())?;
    let mut answer = NONE;
    if let Some(shelf) = shelf {
        for (number, entry) in message.iter().enumerate() {
            let (id, proved) = entry.split_at(16);
            let id = PairingId::from_bytes(id.try_into().unwrap_or_default());
            let Some(secret) = known(shelf, id) else { continue };
            if bool::from(proof(&secret, &shelf.meeting.challenge, Party::Client).ct_eq(proved)) {
                answer[0] = number as u8;
                answer[1..].copy_from_slice(&proof(&secret, &shelf.meeting.challenge, Party::Server));
                shelf.resume(id);
                break;
            }
        }
    }
    channel.send(RESUMED, &answer)?;
    Ok(channel.flush()?)
}

/// The secret of a pairing with this very client.
fn known(shelf: &Shelf, id: PairingId) -> Option<Secret> {
    let Pairing { model, certificate, .. } = &shelf.meeting.pairing;
    let pairing = shelf.stock.pairing(id, model).ok().flatten()?;
    (pairing.certificate == *certificate).then_some(pairing.secret)
}

fn proof(secret: &Secret, challenge: &[u8; 32], party: Party) -> [u8; PROOF_BYTES] {
    let info: &[u8] = match party {
        Party::Client => b"lanner pairing, the client",
        Party::Server => b"lanner pairing, the server",
    };
    let mut proof = [0; PROOF_BYTES];
    let expanded = Hkdf::<Sha256>::new(Some(challenge), &secret.0).expand(info, &mut proof);
    debug_assert!(expanded.is_ok(), "HKDF-SHA256 gives up to 8160 bytes");
    proof
}

const PROOF_BYTES: usize = 16;
/// The answer where the server knows no pairing.
const NONE: [u8; 1 + PROOF_BYTES] = {
    let mut none = [0; 1 + PROOF_BYTES];
    none[0] = 255;
    none
};
