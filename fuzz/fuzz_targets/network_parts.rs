//! A model file's manifest and weights: damaged or contradicting parts are refused.
#![no_main]

use lanner_network::{Network, NetworkManifest};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, &[u8])| {
    let (json, weights) = input;
    let Ok(manifest) = NetworkManifest::from_json(json) else { return };
    if let Ok(network) = Network::from_parts(manifest, weights) {
        let (manifest, weights) = network.to_parts().unwrap();
        assert!(Network::from_parts(manifest, &weights).is_ok());
    }
});
