//! The circuits of the nonlinear layers, each with its number of AND gates.
//!
//! Every circuit takes additive shares of its inputs in a [`Ring`](lanner_primitives::Ring): the evaluator's as input bits, the garbler's as
//! constants that are prepared from its share when the circuit is garbled ([`MaskedCircuit::garbler_bits`]). Integers are
//! in two's complement, words are lowest bit first, and `rescale(x, d) = floor((x + 2^(d-1)) / 2^d)` with
//! `rescale(x, 0) = x`. The circuits that tell results take values with bits of guard below their own, too ([`Sharing`]), of which they see none.
//!
//! Inputs must be within the range of [`signed_bound`]; outside it the output is meaningless, not an error,
//! since neither party could notice.
//!
//! The output is shared by XOR.

mod any_zero;
mod argmax;
mod exponential;
mod leaky;
mod masked;
mod pool;
mod positive;
mod reconstruct;
mod relu;
mod rescale;
mod softmax;
mod top_k;

pub use any_zero::any_zero;
pub use argmax::{argmax, argmax_with_max};
pub use exponential::{Exponential, Mantissa};
pub use leaky::leaky_relu_rescale;
pub use masked::{MaskedCircuit, Sharing};
pub use pool::{max_pool_relu_clip, max_pool_relu_rescale, max_pool_rescale};
pub use positive::positive;
pub use reconstruct::signed_bound;
pub use relu::{relu_clip, relu_rescale};
pub use rescale::rescale;
pub use softmax::{softmax, softmax_parts};
pub use top_k::top_k;
