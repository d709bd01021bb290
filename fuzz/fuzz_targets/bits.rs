//! A vector of bits: whatever decodes has exactly one wire form.
#![no_main]

use lanner_primitives::Bits;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u16, &[u8])| {
    let (length, bytes) = input;
    if let Ok(bits) = Bits::from_bytes(usize::from(length), bytes) {
        assert_eq!(bits.len(), usize::from(length));
        assert_eq!(bits.to_bytes(), bytes);
    }
});
