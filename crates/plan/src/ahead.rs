//! How far one party may be ahead of the other: bytes that it has sent while the other is still writing.
//!
//! A party reads what the peer sends while it waits to write, so that two that both write do not wait for each other. How much it must keep
//! for that follows from the plan. Both write at once only within one visit: a party that writes in a visit has received all that the peer
//! sends in those before it, so that the peer, in any of these, has nothing left to write. Of the visit, one party's bytes or the other's lie
//! unread; where either party has room for the fewer of the two, one of them can always read on, and so the other can write on. In the
//! offline phase the client asks for a run of visits before it receives, and a run takes the place of a visit; the set-up is one of them.

use lanner_step::{Cost, StepCost};

use crate::{BuiltPlan, PlanError};

/// Bytes that may lie unread while their receiver writes, phase by phase, without what a transport adds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ahead {
    /// In the set-up.
    pub setup: u64,
    /// In the offline phase.
    pub offline: u64,
    /// In the online phase.
    pub online: u64,
    /// All that one prediction's offline phase sends: phases that share a connection are ahead of each other by no less.
    pub offline_total: Cost,
    /// All that one prediction's online phase sends.
    pub online_total: Cost,
}

impl Ahead {
    /// The most of one phase.
    #[must_use]
    pub fn most(&self) -> u64 {
        self.setup.max(self.offline).max(self.online)
    }
}

impl BuiltPlan {
    /// How far one party may be ahead of the other, in set-up and in the first prediction of a session. Later ones may begin another iteration
    /// of silent transfers, which adds some 25 KB.
    ///
    /// # Errors
    /// As [`Self::cost`].
    pub fn ahead(&self) -> Result<Ahead, PlanError> {
        let (setup, visits) = self.visit_costs(&mut self.supply())?;
        let sum = |costs: &[StepCost]| {
            costs.iter().fold(Cost::NONE, |sum, StepCost { offline, .. }| {
                sum.beside(offline.request).beside(offline.answer)
            })
        };
        let offline = self.runs()?.into_iter().map(|run| fewer(sum(&visits[run])));
        let online = visits.iter().map(|visit| fewer(visit.online));
        Ok(Ahead {
            setup: fewer(setup),
            offline: offline.max().unwrap_or_default(),
            online: online.max().unwrap_or_default(),
            offline_total: sum(&visits),
            online_total: visits.iter().fold(Cost::NONE, |sum, visit| sum.beside(visit.online)),
        })
    }
}

/// The bytes of the party that sends fewer.
fn fewer(cost: Cost) -> u64 {
    cost.client_bytes().min(cost.server_bytes())
}
