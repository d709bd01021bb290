//! The public half of a model, which a client takes from a server: whatever is accepted can be walked, takes inputs or refuses
//! them, and is written back the same.
#![no_main]

use lanner_network::PublicNetwork;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|json: &str| {
    if let Ok(network) = PublicNetwork::from_json(json) {
        for value in 0..=network.nodes().len() {
            assert!(!network.shape(value).is_empty());
            assert!(network.limit(value) >= 0);
        }
        let input = network.input();
        assert!(input.limits().iter().all(|end| end.is_finite()));
        for value in [0.0, -1.0, f32::MIN_POSITIVE, f32::MAX, f32::MIN] {
            // Inputs of many elements differ in nothing from those of few.
            if input.len() < 1 << 12 && let Ok(integers) = input.quantize(&vec![value; input.len()]) {
                assert!(input.check(&integers).is_ok());
            }
        }
        let written = network.to_json().unwrap();
        assert_eq!(PublicNetwork::from_json(&written).unwrap().to_json().unwrap(), written);
    }
});
