//! The circuits of the nonlinear layers, each with its number of AND gates.
//!
//! Every circuit takes additive shares of its inputs in a [`ShareRing`]: the evaluator's as input bits, the garbler's as
//! constants that are prepared from its share when the circuit is garbled ([`MaskedCircuit::garbler_bits`]). Integers are
//! in two's complement, words are lowest bit first, and `rescale(x, d) = floor((x + 2^(d-1)) / 2^d)` with
//! `rescale(x, 0) = x`.
//!
//! Inputs must be within the range of [`ShareRing::signed_bound`]; outside it the output is meaningless, not an error,
//! since neither party could notice.
//!
//! The output is shared by XOR. Circuits that reshare add a mask of the garbler's; their output is meant to be revealed to
//! the evaluator, whose share it then is.

mod argmax;
mod exponential;
mod falcon;
mod leaky;
mod masked;
mod paper;
mod pool;
mod relu;
mod rescale;
mod reshare;
mod ring;
mod softmax;
mod top_k;

pub use argmax::{argmax, argmax_with_max};
pub use exponential::Exponential;
pub use falcon::{falcon_max_pool, falcon_max_pool_relu, falcon_prepare, falcon_relu};
pub use leaky::leaky_relu_rescale;
pub use masked::MaskedCircuit;
pub use paper::paper_relu_reshare;
pub use pool::{max_pool_relu_clip, max_pool_relu_rescale, max_pool_rescale};
pub use relu::{relu_clip, relu_rescale};
pub use rescale::rescale;
pub use reshare::{max_pool_relu_rescale_reshare, relu_rescale_reshare};
pub use ring::ShareRing;
pub use softmax::{softmax, softmax_parts};
pub use top_k::top_k;
