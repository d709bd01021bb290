//! Neural-network graphs, shape inference, passes and the exact fixed-point reference.
//!
//! A model passes through two representations, and this crate holds both with everything between them:
//!
//! 1. [`Graph`]: the network in floating point, as the ONNX importer writes it. [`FloatExecutor`] gives its ONNX meaning.
//! 2. [`Network`]: the network over integers, which both parties compute. [`compile`] makes it from a graph, its weights and
//!    calibration samples; [`FixedExecutor`] is the reference that every protocol must equal, integer for integer.
//!
//! The client sees a [`PublicNetwork`]: operators, shapes, rings and shifts, without weights, biases or ranges.
//!
//! There is no cryptography here and no input or output: callers read and write the files. Graphs, tensors and networks may come
//! from untrusted files; each is checked when it is read, and a damaged one is an error, never a panic.
//! The normative text on the arithmetic is `docs/numerics.md`.

mod accumulator;
mod arch;
mod cores;
pub mod elementwise;
mod equalise;
mod error;
mod fit;
mod fixed;
mod float;
pub mod graph;
mod grid;
mod integer;
mod kernel;
mod movement;
pub mod network;
mod pass;
mod policy;
mod product;
mod quantize;
pub mod repeats;
mod replace;
mod tensor;
#[cfg(test)]
mod tests;
mod window;

pub use accumulator::Accumulator;
pub use equalise::equalised;
pub use error::{CompileError, InputError};
pub use fixed::{Beyond, FixedExecutor, FixedRun, arg_max, rescale};
pub use float::FloatExecutor;
pub use graph::{Graph, Node, Op};
pub use grid::GridFactor;
pub use integer::Integers;
pub use movement::Source;
pub use network::{FixedNode, FixedOp, Head, LinearWeights, Network, NetworkManifest, PublicNetwork};
pub use pass::joined;
pub use policy::Policy;
pub use quantize::{
    Aim, Calibration, OneCore, Outline, OutlinedNode, OwnCores, Precision, QuantizationOptions, Reached,
    Told, Trace, Tracer, compile, compile_to, outline,
};
pub use replace::{Replaced, replace_relu};
pub use tensor::{Tensor, Tensors};
pub use window::{ConvGeometry, Window};
