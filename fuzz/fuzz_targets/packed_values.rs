//! Values packed to their bit width: whatever decodes has exactly one wire form.
#![no_main]

use lanner_wire::{pack_bits, unpack_bits};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u16, u8, &[u8])| {
    let (count, bits, bytes) = input;
    let bits = u32::from(bits % 65);
    if let Ok(values) = unpack_bits(bytes, usize::from(count), bits) {
        assert_eq!(values.len(), usize::from(count));
        assert_eq!(pack_bits(&values, bits), bytes);
    }
});
