//! The kinds of this crate's messages: `0x10` to `0x1f`.

use lanner_wire::Kind;

/// Base OT: the sender's points.
pub(crate) const BASE_SENDER: Kind = Kind(0x10);
/// Base OT: the receiver's pairs of points.
pub(crate) const BASE_RECEIVER: Kind = Kind(0x11);
/// SoftSpoken setup: the public key of the hash.
pub(crate) const SALT: Kind = Kind(0x12);
/// SoftSpoken setup: the sums that complete the punctured trees, and what proves them.
pub(crate) const PUNCTURE: Kind = Kind(0x13);
/// SoftSpoken extension: one chunk of corrections.
pub(crate) const CORRECTIONS: Kind = Kind(0x14);
/// SoftSpoken extension: the receiver's proof of one batch.
pub(crate) const PROOF: Kind = Kind(0x16);
/// Silent OT: the receiver's choices against its random ones.
pub(crate) const FLIPS: Kind = Kind(0x15);
/// Arithmetic correlated OT: one chunk of corrections.
pub(crate) const ARITHMETIC: Kind = Kind(0x17);
/// Silent extension: the left sums of the trees of one message.
pub(crate) const TREES: Kind = Kind(0x18);
