//! The float graph that an importer writes: whatever is read is written back the same.
#![no_main]

use lanner_graph::Graph;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|json: &str| {
    if let Ok(graph) = Graph::from_json(json) {
        // Infinities parse from large literals and have no JSON form: a refusal is fine, a change is not.
        if let Ok(written) = graph.to_json() {
            assert_eq!(Graph::from_json(&written).ok().as_ref(), Some(&graph));
        }
    }
});
