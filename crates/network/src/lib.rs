//! Networks over integers: what the two parties compute, its exact reference, and what its values stay within.
//!
//! A [`Network`] has operators over integers in rings, weights, and the ranges of its values; [`FixedExecutor`] is the reference that every protocol must
//! equal, integer for integer. The client sees a [`PublicNetwork`]: operators, shapes, rings and shifts, without weights, biases or ranges.
//!
//! There is no floating-point network here, no cryptography and no input or output: callers read and write the files. Networks and tensors may come from
//! untrusted files; each is checked when it is read, and a damaged one is an error, never a panic. The normative text is `docs/numerics.md`.

mod accumulator;
mod arch;
pub mod elementwise;
mod error;
mod field;
mod fixed;
pub mod grid;
mod integer;
pub mod kernel;
mod matrices;
pub mod movement;
mod network;
mod outline;
mod policy;
mod precision;
pub mod product;
pub mod repeats;
pub mod shape;
mod stage;
mod stages;
pub mod tensor;
pub mod version;
pub mod window;

pub use accumulator::{Accumulator, rounding_constant};
pub use error::{CompileError, ENCRYPTED_VALUES, InputError};
pub use field::{Field, in_words};
pub use fixed::{Beyond, FixedExecutor, FixedRun, arg_max};
pub use grid::GridFactor;
pub use integer::{Integers, MOST_NEAREST, nearest, rescale};
pub use movement::Source;
pub use network::{
    Bound, Calibrated, Ending, Evidence, FORMAT_VERSION, Features, FixedNode, FixedOp, FunctionFit, Head,
    InputScale, LinearWeights, Lookup, MAX_BIAS_BITS, MAX_CENTRE, MAX_EXPONENT, MAX_FACTOR, MAX_INPUTS,
    Network, NetworkInput, NetworkManifest, Preprocessing, PublicNetwork, REPEATING_FORMAT_VERSION,
    ValueReport, WeightReport, linear_interval, position,
};
pub use outline::{Outline, OutlinedNode};
pub use policy::Policy;
pub use precision::{Precision, Reached, percent};
pub use stage::{Stage, alike};
pub use tensor::{Tensor, Tensors};
pub use window::{ConvGeometry, Window};
