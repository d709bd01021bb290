//! The kinds of the executor's messages.

use lanner_wire::Kind;

/// The client's public key.
pub(super) const PUBLIC_KEY: Kind = Kind(0x30);
/// The client's evaluation keys.
pub(super) const EVALUATION_KEYS: Kind = Kind(0x31);
/// The salt of the session's garbling.
pub(super) const SALT: Kind = Kind(0x32);
