//! What parties keep on disk: one-time material of either, and files of keys. Whatever decodes is written back the same.
//!
//! Files are sealed, and keys have a check sum, which nobody forges by chance: both are passed here, so that what is behind is reached.
#![no_main]

use std::sync::LazyLock;

use lanner_attacks::models::{Subject, lookups, products, transfers};
use lanner_session::requests::OwnKeys;
use libfuzzer_sys::fuzz_target;
use sha2::{Digest, Sha256};

static SUBJECTS: LazyLock<[Subject; 3]> = LazyLock::new(|| [transfers(), products(), lookups()]);

const IDENTITY: [u8; 32] = [3; 32];
const VERSION: [u8; 4] = 2_u32.to_le_bytes();

fuzz_target!(|input: (u8, &[u8])| {
    let (kind, bytes) = input;
    let Some(subject) = SUBJECTS.get(usize::from(kind >> 1)) else { return keys(bytes) };
    let material = [&VERSION[..], &[1 - (kind & 1)], &IDENTITY, bytes].concat();
    if kind & 1 == 1 {
        if let Ok(prepared) = subject.plan.decode(&material, &IDENTITY) {
            assert_eq!(prepared.encode(&subject.plan, &IDENTITY).unwrap().as_bytes(), material);
        }
    } else if let Ok(prepared) = subject.served.decode(&material, &IDENTITY) {
        assert_eq!(prepared.encode(&subject.served, &IDENTITY).unwrap().as_bytes(), material);
    }
});

fn keys(bytes: &[u8]) {
    let _ = OwnKeys::from_bytes(bytes);
    let content = [&b"lanner keys\r\n\x01\0\0\0"[..], bytes].concat();
    let summed = [&content[..], &Sha256::digest(&content)[..]].concat();
    if let Ok(keys) = OwnKeys::from_bytes(&summed) {
        assert_eq!(keys.to_bytes().as_slice(), summed);
    }
}
