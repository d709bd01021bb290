//! Public halves of networks, as a server describes them.

use lanner_network::{CompileError, PublicNetwork};

/// A network of nodes, each as JSON, on an input of this shape whose integers are 0 to `high`.
pub fn network(shape: &str, high: u64, modulus: u64, nodes: &str) -> PublicNetwork {
    read(shape, high, modulus, nodes).unwrap()
}

/// The same, which may be none.
#[allow(dead_code, reason = "not all tests describe what may be refused")]
pub fn read(shape: &str, high: u64, modulus: u64, nodes: &str) -> Result<PublicNetwork, CompileError> {
    let json = format!(
        r#"{{"format_version":7,"input":{{"name":"x","shape":{shape},"scale":{{"grid":0}},"low":0,"high":{high},"modulus":{modulus}}},"nodes":[{nodes}],"output_scale":0,"head":"scores"}}"#
    );
    PublicNetwork::from_json(&json)
}
