//! Nonlinear layers on shares over `Z_2^l` by oblivious transfer: comparison, multiplexer, truncation, extension, maximum.
//!
//! After [RRKCGRS20](https://eprint.iacr.org/2020/1002), "CrypTFlow2: Practical 2-Party Secure Inference" (comparison, Algorithm 1;
//! multiplexer, Algorithm 6), and [HLHD22](https://eprint.iacr.org/2022/207), "Cheetah: Lean and Fast Secure Two-Party Deep Neural
//! Network Inference" (section 4: silent transfers, and truncation where the sign is known). Both parties run the same steps, called
//! *moves*; in each, one speaks first:
//!
//! ```text
//! F (first)                                         G (second)
//! leaves: a; blocks of x = not a, of 3 bits or 4    b, perhaps two; blocks of y
//!   x xor r  ---------------------------------->
//!        <--------------------------------------    [j < y] and [j = y] for all 16 j, masked by the keys of 1-of-16 transfers
//! products of bits: shares of u and of some v       the products u v
//!   u xor a, v xor b  <------------------------>    the same: the opened bits are uniform
//! mux: shares of a bit c and of a value z           c z, as shares mod 2^l
//!   c xor r  ---------------------------------->
//!        <--------------------------------------    its own c xor r; the correction of F's product
//!   the correction of G's product  ------------>
//! products: F's value x, often one bit, G's y       x y, as shares mod 2^l
//!   x xor r  ---------------------------------->
//!        <--------------------------------------    a correction for each bit of x, of l bits, l - 1, ...
//! ```
//!
//! Products of [`matrices`] go as those of a multiplexer do, with a row of corrections for each bit of a number.
//!
//! A carry `[a + b >= 2^m]` is `[not a < b]`: leaves, then a tree of products of bits. The sign of a shared value is the sum of both top bits
//! and the carry of the others; the same tree has the carry of the low bits that a rescale drops ([`scale`]). Who speaks last in one turn
//! is ready to speak first in the next, so half of the messages travel with others: every step takes half a round or one, and moves that
//! need not wait for each other are made in one turn, message by message. A layer is written once, over a driver that makes the moves or
//! counts them: costs and material follow from the count.
//!
//! Threat model: semi-honest; each party sees uniform bits and ring elements only. All of a move's values go in one message, whose
//! length follows from the shapes. Deviations from the papers: a 1-of-16 transfer comes from four correlated ones combined over
//! `GF(2^128)`, all key material is expanded ahead of time to the few bits that are used, and triples come from two random
//! transfers without any message, up to four products with the same bit from the same two. What a truncation does is said in [`Rounding`].
#![allow(clippy::doc_markdown, reason = "ReLU is the field's name, not code")]

mod activation;
mod bit_products;
mod both_ways;
mod by_choices;
mod chosen;
mod comparison;
mod counter;
mod curve;
mod division;
mod driver;
mod function;
mod horner;
mod known;
mod lanes;
mod layer;
mod leaf;
mod lookup;
mod material;
mod matrices;
mod moves;
mod polynomials;
mod preparation;
mod probability;
mod product;
mod role;
mod run;
mod scale;
mod select;
mod softmax;
mod source;
mod sparse;
mod step;
mod tournament;
mod units;

/// What layers are made of, for protocols that the library has not: see [`Layer::of`].
pub mod blocks {
    pub use super::comparison::{carry, compare};
    pub use super::driver::{Driver, Part, Program, Task, xor};
    pub use super::lanes::Lanes;
    pub use super::layer::Standard;
    pub use super::lookup::{Table, TableShape};
    pub use super::matrices::Shape;
    pub use super::moves::{Compared, Move};
}

pub use activation::Rounding;
pub use by_choices::{ComputedAhead, FromChoices};
pub use chosen::RingChosen;
pub use function::End;
pub use layer::Layer;
pub use material::Material;
pub use polynomials::{Factors, Polynomials};
pub use preparation::Request;
pub use select::RingSelect;
pub use softmax::RingSoftmax;
pub use sparse::RingSparse;
pub use step::{DropGuard, RingActivation, RingFunction, RingMatrixProduct, RingProduct, RingSquare};

#[cfg(test)]
mod tests;
