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
//! so the child that is not on the way becomes alike: the left one where `a_i` is 1. Both children of the root need no correction: with shares of `a_1 Delta`
//! as right ones, and those and the parts of Delta as left ones, they are what they should be ([`Growth::restart`]).
//!
//! Where a way leaves that to a to the left, a is behind a node to its right. At every third depth, a *stop*, a party adds what all nodes hash to that are to
//! the right of its way and behind the same node of the stop before, and where t says so a correction:
//!
//! ```text
//! (-1)^party (G(s) + t V),   V = (t_0 - t_1) (b - (G(s_0) - G(s_1)))        of the nodes on the way to a at the stop
//! ```
//!
//! which cancel where nodes are alike, and add up to b for the node on the way to a, if it is among them: at one stop at most. As all nodes off the way
//! cancel, both corrections follow from sums over all nodes of a level: parties that know neither a nor the way exchange their own sums ([`Growth`]).
//! Domains are small, so whole trees are grown, but for the last levels: the last stop's nodes hash to as many numbers as go into a block, one for
//! themselves and one for each point below but the last, with the value `b [point < low bits of a]`, of which a party adds that of its point ([`Shape`]).
//!
//! `H` and `G` are one circular correlation-robust hash with different tweaks ([`CorrelationRobustHash`](lanner_primitives::CorrelationRobustHash)),
//! with a key of the cipher for each [`GROUP`] of keys ([`Salts`]).
//!
//! Threat model: semi-honest. A party's key hides a and b from it as long as the hash is correlation robust under the other's part of Delta.

mod growth;
mod keys;
mod point;
mod salts;
mod shape;

pub use growth::{Growth, Sums};
pub use keys::{Corrections, Keys};
pub use point::{POINT_WORDS, PointGrowth, PointKeys, PointShape, PointSums};
pub use salts::{GROUP, Salts};
pub use shape::Shape;

/// Bits of computational security. Of the other party's part of Delta one bit is known, and one is lost; and whoever evaluates the hash's cipher once tries
/// one guess at all hashes under one key of it that have Delta in them, of which there are `2^11` at most: [`Shape::hashes`] for each of a [`GROUP`].
pub const SECURITY_BITS: u32 = 115;

/// The most bits of an `x`: whole trees are grown to make keys.
pub const MAX_BITS: u32 = 16;

/// The most numbers of a value, added by themselves.
pub const WORDS: usize = 2;

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
