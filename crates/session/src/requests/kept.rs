//! Material that a session keeps for another: where it lies, and how the server answers requests about it.
//!
//! ```text
//! C                                 S
//! keep                 -->
//!                      <--          ready, or refused
//!           offline phase of one prediction
//!                                   keeps its material
//!                      <--          ready, or refused
//! keeps its material
//!
//! takes its material
//! predict kept, name   -->
//!                                   takes its material
//!                      <--          ready, or refused
//!           online phase of one prediction
//! ```
//!
//! The server keeps before the client does, and either takes before it says anything that depends on the material: whoever fails in
//! between, material is lost and none is used twice. A refusal gives the reason [`Refusal::Material`] and the session goes on.

use std::sync::Arc;

use lanner_protocol::step::PartyState;
use lanner_wire::{Channel, ChannelError, Kind, Refusal};

use super::name;
use crate::executor::{ExecutionError, PartyPlan, Prepared};
use crate::store::{MaterialId, Store, StoreError};

const READY: Kind = Kind(0x22);

/// A store as one session uses it.
pub(super) struct Shelf {
    store: Arc<dyn Store>,
    /// What material is for.
    identity: [u8; 32],
    transcript: [u8; 32],
    /// Names given.
    given: u64,
}

impl Shelf {
    pub(super) fn new(store: Arc<dyn Store>, identity: [u8; 32], transcript: [u8; 32]) -> Self {
        Self { store, identity, transcript, given: 0 }
    }

    /// The next name, the same on both sides.
    pub(super) fn next(&mut self) -> MaterialId {
        self.given += 1;
        name(self.transcript, "kept", self.given - 1)
    }

    /// Keeps material; it is durable on return.
    pub(super) fn put<P: PartyState>(
        &self,
        id: MaterialId,
        prepared: Prepared,
        plan: &PartyPlan<P>,
    ) -> Result<(), ExecutionError> {
        Ok(self.store.put(id, prepared.encode(plan, &self.identity)?)?)
    }

    /// Takes material; that it is gone is durable on return, whatever was found.
    pub(super) fn take<P: PartyState>(
        &self,
        id: MaterialId,
        plan: &PartyPlan<P>,
    ) -> Result<Prepared, ExecutionError> {
        plan.decode(self.store.take(id)?.as_bytes(), &self.identity)
    }
}

/// The shelf of a session that keeps material of this plan.
pub(super) fn shelf<'s, P: PartyState>(
    shelf: &'s mut Option<Shelf>,
    plan: &PartyPlan<P>,
) -> Result<&'s mut Shelf, ExecutionError> {
    plan.check_kept()?;
    shelf.as_mut().ok_or(ExecutionError::NoStore)
}

/// Tells the client that the server goes on.
pub(super) fn say_ready(channel: &mut dyn Channel) -> Result<(), ExecutionError> {
    channel.send(READY, &[])?;
    Ok(channel.flush()?)
}

/// Tells the client that the server does not. What a client can bring about by asking is no failure of the session.
pub(super) fn refuse(channel: &mut dyn Channel, error: ExecutionError) -> Result<(), ExecutionError> {
    channel.send(Kind::REFUSED, &[Refusal::Material.code()])?;
    channel.flush()?;
    match error {
        ExecutionError::NoStore
        | ExecutionError::NotKept { .. }
        | ExecutionError::OtherMaterial { .. }
        | ExecutionError::Store(
            StoreError::Absent { .. } | StoreError::Duplicate { .. } | StoreError::Full { .. },
        ) => Ok(()),
        error => Err(error),
    }
}

/// Waits until the server goes on. If it does not, the exchange is at its end, and none is broken.
pub(super) fn await_ready(channel: &mut dyn Channel, broken: &mut bool) -> Result<(), ExecutionError> {
    let heard = channel.receive_into(READY, &mut []);
    if matches!(heard, Err(ChannelError::Refused(Refusal::Material))) {
        *broken = false;
    }
    Ok(heard?)
}
