//! The bounded reader: any sequence of reads ends in values or in an error.
#![no_main]

use lanner_wire::{DecodeError, Reader};
use libfuzzer_sys::fuzz_target;

const LIMIT: usize = 1 << 12;

fuzz_target!(|input: (&[u8], &[u8])| {
    let (reads, bytes) = input;
    let mut reader = Reader::new(bytes);
    if reads.iter().all(|read| take(*read, &mut reader).is_ok()) {
        // Only a reader at its end may finish; either answer is fine.
        let _ = reader.finish();
    }
});

fn take(read: u8, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
    match read % 9 {
        0 => reader.u8().map(drop),
        1 => reader.u16().map(drop),
        2 => reader.u32().map(drop),
        3 => reader.u64().map(drop),
        4 => reader.u128().map(drop),
        5 => reader.bool().map(drop),
        6 => reader.count(LIMIT).map(|count| assert!(count <= LIMIT)),
        7 => reader.prefixed(LIMIT).map(|bytes| assert!(bytes.len() <= LIMIT)),
        _ => reader.text(LIMIT).map(|text| assert!(text.len() <= LIMIT)),
    }
}
