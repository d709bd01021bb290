//! Public halves of networks, as a server describes them.
#![allow(clippy::unwrap_used, unreachable_pub)]

use lanner_graph::PublicNetwork;

/// A network of nodes, each as JSON, on an input of this shape whose integers are 0 to `high`.
pub fn network(shape: &str, high: u64, modulus: u64, nodes: &str) -> PublicNetwork {
    let json = format!(
        r#"{{"format_version":5,"input":{{"name":"x","shape":{shape},"scale":{{"grid":0}},"low":0,"high":{high},"modulus":{modulus}}},"nodes":[{nodes}],"output_scale":0,"head":"scores"}}"#
    );
    PublicNetwork::from_json(&json).unwrap()
}
