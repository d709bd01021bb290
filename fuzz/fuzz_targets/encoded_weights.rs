//! Head and entries of a file of encoded weights, which a server maps.
//!
//! They have a digest, which nobody forges by chance: it is set right here, so that what is behind it is reached.
#![no_main]

use lanner_store::Contents;
use libfuzzer_sys::fuzz_target;
use sha2::{Digest, Sha256};

const IDENTITY: [u8; 32] = [3; 32];

fuzz_target!(|bytes: &[u8]| {
    let mut words: Vec<u64> = bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
    let _ = Contents::parse(&words, &IDENTITY);
    if words.len() < 16 {
        return;
    }
    let start = usize::try_from(words[2]).unwrap_or(usize::MAX).min(words.len());
    words[0] = u64::from_le_bytes(*b"LANNERW1");
    words[3..7].fill(u64::from_ne_bytes([3; 8]));
    words[11..16].fill(0);
    let digested = words[..7].iter().chain(&words[start..]).flat_map(|word| word.to_ne_bytes());
    let digest = Sha256::digest(digested.collect::<Vec<u8>>());
    for (word, bytes) in words[7..11].iter_mut().zip(digest.as_chunks().0) {
        *word = u64::from_ne_bytes(*bytes);
    }
    let _ = Contents::parse(&words, &IDENTITY);
});
