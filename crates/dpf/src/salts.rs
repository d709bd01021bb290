//! The keys of the hash's cipher.

use lanner_primitives::{Block, CorrelationRobustHash, HashGroups};

/// Keys of comparisons that share a key of the cipher: those of a whole group, from a multiple of this number on.
pub const GROUP: usize = 64;

/// Public salts of all groups of keys of one comparison, from one that is used once.
pub struct Salts {
    groups: HashGroups,
    first: u64,
}

impl Salts {
    /// Of a comparison that is the only one of its number with this salt.
    #[must_use]
    pub fn new(salt: Block, comparison: u32) -> Self {
        Self { groups: HashGroups::new(salt), first: u64::from(comparison) << 32 }
    }

    /// The hash of a group.
    pub(crate) fn group(&self, group: usize) -> CorrelationRobustHash {
        self.groups.group(self.first + group as u64)
    }
}

/// Tweak of what children are made of: of values the next ones.
pub(crate) const CHILDREN: u64 = 0;

/// Tweak of the values' first hash.
pub(crate) const VALUES: u64 = 1;
