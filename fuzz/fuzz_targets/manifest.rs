//! The public half of a model with its plan, as a client takes it from a server: refused, or written back the same.
#![no_main]

use lanner::Manifest;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|json: &str| {
    if let Ok(manifest) = Manifest::from_json(json) {
        let written = manifest.to_json().unwrap();
        assert_eq!(Manifest::from_json(&written).unwrap(), manifest);
    }
});
