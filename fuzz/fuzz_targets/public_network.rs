//! The public half of a model, which a client takes from a server: whatever is accepted can be walked, and is written
//! back the same.
#![no_main]

use lanner_graph::PublicNetwork;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|json: &str| {
    if let Ok(network) = PublicNetwork::from_json(json) {
        for value in 0..=network.nodes().len() {
            assert!(!network.shape(value).is_empty());
            assert!(network.limit(value) >= 0);
        }
        let written = network.to_json().unwrap();
        assert_eq!(PublicNetwork::from_json(&written).unwrap().to_json().unwrap(), written);
    }
});
