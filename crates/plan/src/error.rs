//! Why a network cannot be planned.

use lanner_protocol::ProtocolError;
use thiserror::Error;

/// Why a network cannot be planned.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The mode has no protocol for a node.
    #[error("node {node}: {operator} is not supported: {reason}")]
    Unsupported {
        /// The node.
        node: String,
        /// Its operator.
        operator: &'static str,
        /// What is missing.
        reason: String,
    },
    /// The output policy does not fit the network's scores.
    #[error("the output policy {policy} does not fit: {reason}")]
    Policy {
        /// The policy asked for.
        policy: &'static str,
        /// What does not fit, and what would.
        reason: String,
    },
    /// The network is larger than either party may be made to prepare for.
    #[error(
        "node {node}: the network has {count} {what} up to here, and the limit is {limit}; make it smaller"
    )]
    TooLarge {
        /// The node.
        node: String,
        /// What there is too much of.
        what: &'static str,
        /// How much.
        count: u64,
        /// The limit.
        limit: u64,
    },
    /// A layer does not fit the protocol.
    #[error("node {node}: {source}")]
    Layer {
        /// The node.
        node: String,
        /// What does not fit.
        source: ProtocolError,
    },
}
