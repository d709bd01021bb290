//! Layers that transfers compute.

use std::ops::RangeInclusive;

use lanner_protocol::Protocol;
use lanner_transfers::{ComputedAhead, RingSelect, RingSparse};

/// The bits of rings modulo powers of two in which layers of ciphertexts are; what is in others is for transfers alone.
pub(super) const ENCRYPTED_BITS: RangeInclusive<u32> = 16..=41;

/// A layer that transfers compute for less than ciphertexts.
#[derive(Clone, Debug)]
pub(super) enum ByTransfers {
    /// Of blocks.
    Blocks(RingSparse),
    /// One that picks elements.
    Picks(RingSelect),
}

impl ByTransfers {
    /// The layer as the plan has it, or as it is computed ahead of time.
    pub(super) fn protocol(&self, is_ahead: bool) -> Protocol {
        match self.clone() {
            Self::Blocks(layer) if is_ahead => ComputedAhead(layer).into(),
            Self::Blocks(layer) => layer.into(),
            Self::Picks(layer) if is_ahead => ComputedAhead(layer).into(),
            Self::Picks(layer) => layer.into(),
        }
    }
}
