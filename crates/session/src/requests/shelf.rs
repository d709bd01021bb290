//! Where a party keeps what it makes in a session for others, and with whom.

use std::sync::Arc;

use lanner_primitives::{Direction, Label};
use lanner_step::PartyState;
use lanner_store::{Material, MaterialId, Pairing, PairingId, Stock};
use tracing::warn;

use crate::executor::{ExecutionError, PartyPlan, Prepared};
use crate::handshake::{Agreement, ModelEntry};

/// Who meets over what, as one party sees it.
pub struct Meeting {
    /// The hash of the handshake.
    pub transcript: [u8; 32],
    /// What only the two ends of this session know: the proofs in it are over that.
    pub challenge: [u8; 32],
    /// What is kept if a pairing is made in this session. An earlier one is resumed if it is about the same model and, as a client sees it, with
    /// the same peer, or, as a server sees it, with the same certificate.
    pub pairing: Pairing,
}

impl Meeting {
    /// What a party knows once it has agreed with a peer on a model.
    #[must_use]
    pub fn new(agreement: &Agreement, model: &ModelEntry, peer: String, certificate: Option<String>) -> Self {
        let (id, secret, challenge) = agreement.pairing();
        let (model, model_name) = (model.commitment, model.name.clone());
        let pairing = Pairing { id, secret, model, model_name, peer, certificate };
        Self { transcript: agreement.transcript(), challenge, pairing }
    }
}

/// A stock as one session uses it.
pub struct Shelf {
    pub(super) stock: Arc<Stock>,
    pub(super) meeting: Meeting,
    /// The pairing of this session, resumed or made.
    paired: Option<PairingId>,
    /// Names given.
    given: u64,
}

impl Shelf {
    /// The stock of a party in a session.
    #[must_use]
    pub const fn new(stock: Arc<Stock>, meeting: Meeting) -> Self {
        Self { stock, meeting, paired: None, given: 0 }
    }

    /// The pairing of this session.
    ///
    /// # Errors
    /// [`ExecutionError::Store`] if there is none.
    pub(super) fn pairing(&self) -> Result<PairingId, ExecutionError> {
        Ok(self.paired.ok_or(lanner_store::StoreError::Unpaired)?)
    }

    pub(super) const fn is_paired(&self) -> bool {
        self.paired.is_some()
    }

    /// Goes on with a pairing of an earlier session.
    pub(super) fn resume(&mut self, id: PairingId) {
        if let Err(error) = self.stock.touch(id) {
            warn!(%error, "a pairing's use is not noted");
        }
        self.paired = Some(id);
    }

    /// Keeps a new pairing; it is durable on return.
    pub(super) fn pair(&mut self, keys: Option<Material>) -> Result<(), ExecutionError> {
        self.stock.pair(&self.meeting.pairing, keys)?;
        self.paired = Some(self.meeting.pairing.id);
        Ok(())
    }

    /// The keys of the pairing, if any are kept.
    pub(super) fn keys(&self) -> Result<Option<Material>, ExecutionError> {
        Ok(self.stock.keys(self.pairing()?, &self.meeting.pairing.model)?)
    }

    /// The next name, the same on both sides.
    pub(super) fn next(&mut self) -> MaterialId {
        let session = self.meeting.transcript;
        self.given += 1;
        let direction = Direction::ServerToClient;
        MaterialId::of(&Label { session, layer: 0, op: "kept", index: self.given - 1, direction })
    }

    /// The names of what is kept of the pairing, the oldest first.
    pub(super) fn available(&self) -> Result<Vec<MaterialId>, ExecutionError> {
        Ok(self.stock.available(self.pairing()?)?)
    }

    /// Keeps material; it is durable on return.
    pub(super) fn put<P: PartyState>(
        &self,
        id: MaterialId,
        prepared: Prepared,
        plan: &PartyPlan<P>,
    ) -> Result<(), ExecutionError> {
        Ok(self.stock.put(self.pairing()?, id, prepared.encode(plan, &self.meeting.pairing.model)?)?)
    }

    /// Uses up whatever is kept of this session's pairing: its peer is not honest.
    pub(super) fn destroy(&self) {
        let Some(pairing) = self.paired else { return };
        let discard = |ids: Vec<MaterialId>| ids.into_iter().try_for_each(|id| self.stock.discard(id));
        if let Err(error) = self.stock.available(pairing).and_then(discard) {
            warn!(%error, "material kept with a peer that is not honest cannot be removed: remove the state directory's folder material");
        }
    }

    /// Takes material; that it is gone is durable on return, whatever was found.
    pub(super) fn take<P: PartyState>(
        &self,
        id: MaterialId,
        plan: &PartyPlan<P>,
    ) -> Result<Prepared, ExecutionError> {
        plan.decode(self.stock.take(self.pairing()?, id)?.as_bytes(), &self.meeting.pairing.model)
    }
}
