//! The float graph: the form in which a network arrives.
//!
//! # File format (version 2)
//!
//! A graph is one JSON document; its tensors lie in a safetensors file of their own and are referred to by name. Shapes never include
//! the batch axis; everything is row-major. Unknown fields and operators are errors.
//!
//! ```json
//! {"format_version": 2,
//!  "inputs": [{"name": "x", "shape": [1, 28, 28]}],
//!  "nodes": [{"name": "conv1",
//!             "op": {"Conv": {"weight": "conv1.w", "bias": "conv1.b", "strides": [2, 2], "pads": [1, 1, 1, 1],
//!                             "dilations": [1, 1], "groups": 1}},
//!             "inputs": ["x"]},
//!            {"name": "relu1", "op": "Relu", "inputs": ["conv1"]}],
//!  "output": "relu1"}
//! ```
//!
//! There is exactly one input. Nodes come in an order in which each uses only values before it; each has one output, which bears the
//! node's name, and which any number of later nodes may use. Names are unique and not empty. [`Op`] lists the operators with their
//! attributes; axes, too, are counted without the batch axis.
//!
//! ```json
//! {"name": "sum", "op": "Add", "inputs": ["conv2", "relu1"]}
//! {"name": "half", "op": {"Slice": {"starts": [0, 0, 0], "sizes": [16, 16, 16], "steps": [1, 2, 2]}}, "inputs": ["sum"]}
//! {"name": "wide", "op": {"Pad": {"before": [8, 0, 0], "after": [8, 0, 0]}}, "inputs": ["half"]}
//! {"name": "channels_last", "op": {"Transpose": {"axes": [1, 2, 0]}}, "inputs": ["wide"]}
//! {"name": "joined", "op": {"Concat": {"axis": 2}}, "inputs": ["channels_last", "channels_last"]}
//! ```
//!
//! Version 1 had no `Square`, `Transpose`, `Slice`, `Pad` and `Concat`.

mod op;
mod shape;

use lanner_network::CompileError;
use lanner_network::version::check_version;
use serde::{Deserialize, Serialize};

pub use op::Op;
pub use shape::{Shapes, conv_geometry, infer, infer_added};

/// The version of the format that this build reads and writes.
pub const FORMAT_VERSION: u32 = 2;

/// A float network: nodes over named values, without the tensors.
///
/// The fields are as written in the file; [`compile`](crate::compile) and [`FloatExecutor`](crate::FloatExecutor) check names, wiring
/// and shapes before they use it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Graph {
    /// The format's version.
    pub format_version: u32,
    /// The inputs; exactly one.
    pub inputs: Vec<GraphInput>,
    /// The nodes in an order in which each uses only values before it.
    pub nodes: Vec<Node>,
    /// The node whose value is the network's output.
    pub output: String,
}

/// A named input and its shape without the batch axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraphInput {
    /// The name by which nodes refer to it.
    pub name: String,
    /// Its shape without the batch axis, in the model's own layout.
    pub shape: Vec<usize>,
}

/// One operator applied to named values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// Its name, and that of its output.
    pub name: String,
    /// The operator and its attributes.
    pub op: Op,
    /// The values it takes, by name and in the operator's order.
    pub inputs: Vec<String>,
}

impl Graph {
    /// Reads the JSON form.
    ///
    /// # Errors
    /// [`CompileError::Json`], [`CompileError::FormatVersion`], or [`CompileError::Shape`] for an attribute that is not finite.
    pub fn from_json(json: &str) -> Result<Self, CompileError> {
        check_version("graph", &[FORMAT_VERSION], json)?;
        let graph: Self = serde_json::from_str(json).map_err(|reason| unreadable(&reason))?;
        graph.check_attributes()?;
        Ok(graph)
    }

    /// Checks that the graph has the version that this build reads.
    ///
    /// # Errors
    /// [`CompileError::FormatVersion`] if it has another one.
    pub fn check_version(&self) -> Result<(), CompileError> {
        match self.format_version {
            FORMAT_VERSION => Ok(()),
            found => Err(CompileError::FormatVersion { what: "graph", found, expected: FORMAT_VERSION }),
        }
    }

    /// Writes the JSON form.
    ///
    /// # Errors
    /// [`CompileError::Shape`] for an attribute that is not finite.
    pub fn to_json(&self) -> Result<String, CompileError> {
        self.check_attributes()?;
        serde_json::to_string(self).map_err(|reason| unreadable(&reason))
    }

    /// Refuses attributes that are NaN or infinite, which JSON cannot hold.
    fn check_attributes(&self) -> Result<(), CompileError> {
        match self.nodes.iter().find(|node| !node.op.is_finite()) {
            Some(node) => {
                let reason = "an attribute is NaN or beyond the range of its type".to_owned();
                Err(CompileError::Shape { node: node.name.clone(), operator: node.op.name(), reason })
            }
            None => Ok(()),
        }
    }
}

fn unreadable(reason: &serde_json::Error) -> CompileError {
    CompileError::Json { what: "graph", reason: reason.to_string() }
}
