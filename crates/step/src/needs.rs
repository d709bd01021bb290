//! What steps need of a session.

use std::collections::BTreeMap;

use lanner_bfv::ParameterSet;

use super::Rotation;

/// What one step needs of the session's set-up, and how long its material lives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a need of its own")]
pub struct Needs {
    /// The parameter set whose keys it needs, with the evaluation keys.
    pub keys: Option<(ParameterSet, EvaluationNeeds)>,
    /// Whether the client makes a key for each prediction, which is none of the session's.
    pub own_keys: bool,
    /// Whether circuits are garbled.
    pub garbling: bool,
    /// Silent transfers that the client and the server send in one visit.
    pub transfers: [usize; 2],
    /// Whether keys of transfers are stretched that hide numbers of which the peer may know the high bits, as where the input itself is
    /// read: one evaluation of the cipher tries a guess at all of them.
    pub stretched_keys: bool,
    /// Whether it makes comparison keys: a conversation, in which the client speaks, too, so that it is prepared by itself.
    pub comparison_keys: bool,
    /// Whether the client speaks in its preparation, too, so that it is prepared by itself.
    pub conversation: bool,
    /// How long its material can be kept.
    pub material: Lifetime,
}

/// Evaluation keys by what they are for, with the most limbs of ciphertexts that they serve: a set's all, where it has fewer.
pub type EvaluationNeeds = BTreeMap<KeyUse, usize>;

/// What an evaluation key is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyUse {
    /// A rotation of slots.
    Rotation(Rotation),
    /// Products of ciphertexts.
    Product,
    /// The automorphism that takes `X` to this power: [packed answers](lanner_bfv::Interleaving).
    Power(usize),
}

/// How long material can be kept, which says what the online phase needs besides it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lifetime {
    /// As long as anyone likes: it needs a channel.
    #[default]
    Free,
    /// As long as the parties keep the keys of their pairing.
    Pairing,
    /// Until the session ends.
    Session,
}
