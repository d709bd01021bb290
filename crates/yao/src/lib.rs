//! Nonlinear layers by garbled circuits on shares, in GAZELLE's arrangement (Juvekar et al. 2018, section V).
//!
//! The server garbles ahead of time: its share is the mask that it drew for the linear layer before. Its input is known to the
//! garbler, so no label of it is sent.
//!
//! ```text
//! C (Evaluator)                               S (Garbler), share s known
//! offline:
//!   r, t_i = q_i xor r_i Delta   <- COT ->    q_i, Delta
//!                                             D_i uniform; zero-label of input wire i: q_i xor D_i
//!        <----------------------------------  tables; permute bits a stay with S
//!   r', v_j                      <- COT ->    u_j with u_j + v_j = a_j r'_j
//! online, share c:
//!   d = bits(c) xor r  --------------------->
//!        <----------------------------------  D_i xor d_i Delta
//!   labels t_i xor (D_i xor d_i Delta)
//!   evaluate: colour bits b
//!   e = b xor r'  -------------------------->
//!   share of f(c + s) from b, e, v            share of f(c + s) from a, e, u
//! ```
//!
//! Tables and labels are made and sent in parts of some hundred instances, so that a part is evaluated while the next is on its
//! way, and several at once. `e` needs no answer and costs no round. The transfers of all layers are asked for before
//! the first answer is received, so the offline phase is one round.
//!
//! Threat model: semi-honest; the server sees uniform bits only, the client one label of each wire. Deviations from the
//! paper: the circuit adds shares, pools, applies ReLU, rescales and clips in one ([`lanner_gc::library`]; 44 AND gates
//! instead of 8b + 2 = 162 for ReLU with rescaling by 7 bits at b = 20); its output bits become shares by transfers
//! instead of by an adder inside; the garbler's inputs have all-zero labels, known to both, and the transfers' correlation is the
//! garbling's delta, so neither sends labels in the clear; sixteen instances share a gate's key schedule ([`lanner_gc`]).
#![allow(clippy::doc_markdown, reason = "ReLU is the field's name, not code")]

pub mod bits_to_ring;
mod client;
mod cost;
mod evaluating;
mod function;
mod garbling;
pub mod labels_to_ring;
mod parts;
mod revealed;
mod scores;
mod server;
pub mod softmax;
mod step;

pub use client::{ClientLayer, ClientMaterial};
pub use evaluating::ClientRequest;
pub use function::Layer;
pub use revealed::{
    ClientRevealed, ClientRevealedMaterial, Reading, Revealed, ServerRevealed, ServerRevealedMaterial,
};
pub use scores::{AboveZero, Best, Largest, Learnt, Scores};
pub use server::{ServerLayer, ServerMaterial};
pub use step::{Activation, AnyZero};
