//! Files of float tensors: whatever is read is written back and read again the same.
#![no_main]

use lanner_network::Tensors;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(tensors) = Tensors::from_safetensors(bytes) {
        let written = tensors.to_safetensors().unwrap();
        assert_eq!(Tensors::from_safetensors(&written).unwrap().to_safetensors().unwrap(), written);
    }
});
