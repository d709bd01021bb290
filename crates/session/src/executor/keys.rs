//! A session's keys: one for each parameter set that its plan uses.

use std::collections::BTreeMap;

use lanner_bfv::SecretKey;
use lanner_plan::NeededKeys;
use lanner_protocol::ProtocolError;
use lanner_protocol::linear::Set;
use lanner_protocol::linear::keys::{ClientKeys, receive_keys, send_keys};
use lanner_wire::Channel;
use rand_core::CryptoRng;

/// Keys by parameter set: the client's secret ones, or what the server holds of them.
pub(super) struct Keys<K>(BTreeMap<Set, K>);

impl<K> Keys<K> {
    /// The key of a set.
    ///
    /// # Errors
    /// [`ProtocolError::Shape`] if the plan did not name the set.
    pub(super) fn get(&self, set: Set) -> Result<&K, ProtocolError> {
        self.0.get(&set).ok_or(ProtocolError::Shape { what: "keys of another parameter set" })
    }
}

impl Keys<SecretKey> {
    /// Set-up: makes the keys and sends what the server needs of them.
    pub(super) fn send(
        channel: &mut dyn Channel,
        needed: &[NeededKeys],
        rng: &mut impl CryptoRng,
    ) -> Result<Self, ProtocolError> {
        let send = |keys: &NeededKeys| {
            Ok((keys.set, send_keys(channel, &keys.parameters, &keys.automorphisms, rng)?))
        };
        needed.iter().map(send).collect::<Result<_, _>>().map(Self)
    }
}

impl Keys<ClientKeys> {
    /// Set-up: receives the client's keys.
    pub(super) fn receive(channel: &mut dyn Channel, needed: &[NeededKeys]) -> Result<Self, ProtocolError> {
        let receive =
            |keys: &NeededKeys| Ok((keys.set, receive_keys(channel, &keys.parameters, &keys.automorphisms)?));
        needed.iter().map(receive).collect::<Result<_, _>>().map(Self)
    }
}
