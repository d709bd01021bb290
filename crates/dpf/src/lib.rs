//! Distributed comparison functions: keys of two parties for `f(x) = b if x < a, else 0`, which hide `a` and `b`.
//!
//! Each party evaluates its key at any public `x`, alone; both results add up to `f(x)`. The parties make the keys together, from a shared `a`
//! and `b` that neither knows. Messages in, messages out: nothing here touches a channel.
//!
//! The trees are those of [GYWZXLZ23](https://eprint.iacr.org/2022/1431), "Half-Tree: Halving the Cost of Tree Expansion in COT and DPF"
//! (sections 4 and 5), with one hash for two children:
//!
//! ```text
//! node s, control bit t = lsb(s)        on the way to a both parties' s differ by Delta, and so t; elsewhere s and t are alike
//! children of s:  H(s) xor t CW_i,  H(s) xor s xor t CW_i
//! CW_i = H(s_0) xor H(s_1) xor not(a_i) Delta         for the nodes on the way to a, s_0 and s_1, at level i
//! ```
//!
//! so the child that is not on the way becomes alike: the left one where `a_i` is 1. A value is due where a way leaves that to a to the left, at a node of
//! the way to a whose bit `a_i` is 1 while `x_i` is 0. At each level whose `x_i` is 0 a party adds what its node hashes to, and where t says so a
//! correction:
//!
//! ```text
//! (-1)^party (G(s) + t V_i),   V_i = (t_0 - t_1) (a_i b - (G(s_0) - G(s_1)))
//! ```
//!
//! which cancel where nodes are alike, and add up to `a_i b` on the way to a. As all nodes off the way cancel, both corrections follow from sums over all nodes
//! of a level: parties that know neither a nor the way exchange their own sums ([`Growth`]). Domains are small, so whole trees are grown.
//!
//! Where values are a bit modulo `2^16` the last three levels are one ([`Tail`]): a node above them hashes to a value for each of the eight points below it, of
//! which a party adds that of its point, with a correction of its own. So trees are an eighth as large.
//!
//! Roots are the parties' own parts of Delta, the same for all keys; so hashes are tweaked by the key's number. `H` and `G` are one circular
//! correlation-robust hash with different tweaks ([`CorrelationRobustHash`](lanner_primitives::CorrelationRobustHash)).
//!
//! Threat model: semi-honest. A party's key hides a and b from it as long as the hash is correlation robust under the other's part of Delta.

mod growth;
mod keys;

pub use growth::{Growth, Sums, TailSums};
pub use keys::{Keys, Level, Tail};

/// Bits of computational security. Of the other party's part of Delta one bit is known, and one is lost; and whoever evaluates the hash's cipher once tries
/// one guess at all hashes under its salt that have Delta in them, of which there may be `2^26` for [`MAX_KEYS`] keys.
pub const SECURITY_BITS: u32 = 100;

/// The most keys under one salt.
pub const MAX_KEYS: usize = 1 << 20;

/// The most bits of an `x`: whole trees are grown to make keys.
pub const MAX_BITS: u32 = 16;

/// Numbers of a value: two words, added by themselves.
pub const WORDS: usize = 2;

/// Bits of a point below the node of a tail.
pub const TAIL_BITS: u32 = 3;

/// Points below the node of a tail, the last of which is below no threshold.
pub const POINTS: usize = 1 << TAIL_BITS;

/// What distinguishes the tweaks of values from those of children: no key has a number as large.
const VALUES: u64 = 1 << 62;

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DpfError {
    /// Lengths that do not fit together, or are out of range.
    #[error("the shape does not fit: {what}")]
    Shape {
        /// What does not fit.
        what: &'static str,
    },
}
