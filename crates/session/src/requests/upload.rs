//! Keys that the server may have already, by the hash of what is sent of them.
//!
//! ```text
//! C                                           S
//! set up, hash                         -->
//!                                      <--    how many bytes it holds
//! the others, in chunks of 1 MiB       -->
//!                                             checks the hash, decodes, keeps
//!                                      <--    ready, or refused
//! ```
//!
//! How many bytes there are in all follows from the plan. They are no secret: who knows the hash may have the server use them, and can
//! decrypt nothing.

#[cfg(not(target_family = "wasm"))]
use lanner_store::{Upload, Uploads};
use lanner_wire::{Channel, ChannelError};
#[cfg(not(target_family = "wasm"))]
use tracing::warn;

use super::{OwnKeys, Request, UPLOAD_CHUNK, UPLOAD_HELD, is_ready};
use crate::executor::{ClientPlan, ExecutionError};

/// The client asks for a set-up with its keys, and sends what the server lacks of them; whether the server goes on.
pub(super) fn offer(
    channel: &mut dyn Channel,
    keys: &OwnKeys,
    plan: &ClientPlan,
    read: impl Fn() -> Option<Vec<u8>>,
) -> Result<bool, ExecutionError> {
    Request::SetUpUploaded(*keys.hash()).send(channel, plan.ahead())?;
    let mut held = [0; 8];
    channel.receive_into(UPLOAD_HELD, &mut held)?;
    let length = plan.set_up().encoded_keys_len()?;
    let held = usize::try_from(u64::from_le_bytes(held)).ok().filter(|held| *held <= length);
    let held = held.ok_or(ChannelError::Malformed { what: "bytes of an upload" })?;
    if held < length {
        let bytes = match read().filter(|bytes| keys.uploads(bytes)) {
            Some(bytes) => bytes,
            None => keys.upload(plan)?,
        };
        bytes[held..].chunks(CHUNK).try_for_each(|chunk| channel.send(UPLOAD_CHUNK, chunk))?;
    }
    Ok(is_ready(channel)?)
}

#[cfg(not(target_family = "wasm"))]
/// The server receives what it lacks of an upload. A disk that fails, or has no room, costs the next session another upload.
pub(super) fn receive(
    channel: &mut dyn Channel,
    uploads: Option<&Uploads>,
    hash: [u8; 32],
    length: usize,
) -> Result<Upload, ExecutionError> {
    let kept = uploads.and_then(|uploads| {
        uploads.open(hash, length).inspect_err(|error| warn!(%error, "an upload is not kept")).ok()
    });
    let mut upload = kept.unwrap_or_else(|| Upload::in_memory(hash, length));
    channel.send(UPLOAD_HELD, &(upload.held() as u64).to_le_bytes())?;
    channel.flush()?;
    while upload.missing() > 0 {
        let chunk = channel.receive(UPLOAD_CHUNK, upload.missing().min(CHUNK))?;
        if let Err(error) = upload.append(&chunk) {
            warn!(%error, "an upload is not kept");
        }
    }
    Ok(upload)
}

const CHUNK: usize = 1 << 20;
