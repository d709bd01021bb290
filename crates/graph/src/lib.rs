//! Neural networks in floating point: graphs as the ONNX importer writes them, their shapes, their meaning, and the passes that bring them to the form that
//! fixed point has.
//!
//! [`FloatExecutor`] gives a [`Graph`] its ONNX meaning. Graphs and tensors may come from untrusted files; each is checked when it is read, and a damaged one is
//! an error, never a panic.

pub mod cores;
pub mod elementwise;
mod equalise;
mod float;
pub mod graph;
pub mod pass;
pub mod trees;

pub use equalise::equalised;
pub use float::FloatExecutor;
pub use graph::{Graph, Node, Op};
pub use pass::joined;
