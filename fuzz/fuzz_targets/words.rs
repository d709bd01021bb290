//! What people and files of settings say: addresses, fingerprints, names of pairings, tables of times. Whatever is read is written the same.
#![no_main]

use lanner_net::{Address, Fingerprint};
use lanner_plan::Kernels;
use lanner_store::PairingId;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(address) = text.parse::<Address>() {
        assert!(address.to_string().parse::<Address>().is_ok());
    }
    if let Ok(fingerprint) = text.parse::<Fingerprint>() {
        assert_eq!(fingerprint.to_string().parse::<Fingerprint>().unwrap(), fingerprint);
    }
    if let Ok(pairing) = text.parse::<PairingId>() {
        assert!(pairing.to_string().eq_ignore_ascii_case(text));
    }
    let _ = Kernels::from_json(text);
});
