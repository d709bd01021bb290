//! What a stranger may send first: whatever decodes has exactly one wire form.
#![no_main]

use lanner_session::handshake::{ModelEntry, ModelRequest};
use lanner_wire::{Decode, Encode};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(request) = ModelRequest::from_bytes(bytes) {
        assert_eq!(request.to_bytes(), bytes);
    }
    if let Ok(entry) = ModelEntry::from_bytes(bytes) {
        assert_eq!(entry.to_bytes(), bytes);
    }
});
