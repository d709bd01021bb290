//! The algorithms of Falcon spectral ([LLHJ20](https://proceedings.neurips.cc/paper/2020), Algorithms 1 to 3) and those of LoLa
//! ([BEG19](https://proceedings.mlr.press/v97/brutzkus19a.html)) that it replaces, step by step, with their operations counted. They stand beside the
//! programs of [`lanner_spectral::Program`], which take fewer rotations for weights of any form; no plan chooses them.
//!
//! | paper | here |
//! |---|---|
//! | block-circulant weights, section 2.4 | [`BlockCirculant`] |
//! | Algorithm 1, HDFT | [`Hdft`] |
//! | Algorithm 2, HFC | [`Hfc`] |
//! | Algorithm 3, homomorphic convolution | [`HConv`] |
//! | LoLa's products with a stacked, a dense, an interleaved and a convolution vector | [`StackedRows`], [`Rows`], [`Planes`] |
//!
//! Weights and values are residues modulo a prime `t = 1 mod 2N`, and the transform is that of `Z_t`: roots of unity of every order `k` that divides
//! `2N` are residues themselves, and `1/k` is one. The paper takes complex roots, scales and rounds them, and computes real and imaginary parts apart: twice the
//! rotations, and an error. Here the transform is exact.
//!
//! An algorithm is public: its rotations, its number of products and the slots that it reads and writes follow from shapes. It runs on any [`SlotScheme`],
//! by way of [`Counted`]. What it computes is the product without bias, and nothing is sealed: nobody may send its results to a client as they are.

mod bounds;
mod encrypted;
mod hconv;
mod hdft;
mod hfc;
mod lola;
mod operations;
mod scheme;
mod weights;
mod window;

pub use bounds::Bounds;
pub use encrypted::EncryptedSlots;
pub use hconv::{HConv, HConvFactors};
pub use hdft::{Digit, Hdft};
pub use hfc::{Hfc, HfcFactors};
pub use lola::{Planes, Rows, StackedRows};
pub use operations::Operations;
pub use scheme::{Counted, SlotScheme};
pub use weights::{BlockCirculant, Spectrum};
