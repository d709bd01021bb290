//! Silent correlated OT: many transfers from few, with almost no bytes.
//!
//! [YWLZW20](https://eprint.iacr.org/2020/924): Yang, Weng, Lan, Zhang, Wang, "Ferret: Fast Extension for Correlated OT with Small
//! Communication", its protocol for uniform transfers with regular noise (Figure 5 there); its trees are the correlated ones of
//! [GYWZXLZ23](https://eprint.iacr.org/2022/1431), "Half-Tree: Halving the Cost of Tree Expansion in COT and DPF" (Figure 4 there).
//!
//! ```text
//! S: delta, k + t d transfers q                    R: the same transfers (x, u = q xor x delta)
//!    for each of t trees of 2^d leaves, from d transfers:
//!      (v_j), the xor of each level's nodes = delta
//!      q_l xor (left nodes of level l)  ----------->  (w_j): w_j = v_j, but w_alpha = v_alpha xor delta;
//!      what checks the trees                          bit l of alpha is the complement of x_l
//!    from the k others, with the public sparse matrix A:
//!      out = (q) A xor (v_j)                         out = (u) A xor (w_j); choices (x) A xor noise
//! ```
//!
//! The choices are the low bits: the sender's blocks have low bit 0, delta has 1. The noise has one 1 in each run of `2^d` choices;
//! that it hides the rest is the learning parity with noise assumption for the sets of [`Parameters`]. A set's iteration gives
//! `t 2^d` transfers of which `k + t d` are kept to begin the next. Only the sender sends: no round.
//!
//! Deviations: trees are grown, and their message sent, when their leaves are asked for; the first iteration starts from
//! [`softspoken`](crate::softspoken) transfers, of the smallest set, which then starts the larger ones. The paper's check of trees takes a message of the
//! receiver's and an answer; here the sender sends all that one takes, with the trees (`check`).

mod check;
mod engine;
mod parameters;
mod receiver;
mod sender;
mod tree;

pub use parameters::{Parameters, SECURITY_BITS, Supply};
pub use receiver::SilentReceiver;
pub use sender::SilentSender;
