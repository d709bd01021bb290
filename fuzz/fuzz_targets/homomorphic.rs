//! Keys and ciphertexts of BFV: whatever decodes has exactly one wire form. Run with `-max_len=65536`.
#![no_main]

use std::sync::LazyLock;

use lanner_bfv::halves::{C0, C1};
use lanner_bfv::function_privacy::{SealedC0, SealedC1};
use lanner_bfv::{
    EvaluationKeys, GaloisElement, NeededKey, Parameters, PlaintextModulus, PublicKey, SealedCiphertext,
    SecretKey, SeededCiphertext,
};
use lanner_wire::{Encode, Writer};
use libfuzzer_sys::fuzz_target;

struct Context {
    parameters: Parameters,
    modulus: PlaintextModulus,
    element: GaloisElement,
}

/// The smallest secure parameters with a special modulus: one limb.
static CONTEXT: LazyLock<Context> = LazyLock::new(|| {
    let parameters = Parameters::new(4096, &[1_125_899_903_827_969], Some(1_125_899_902_124_033)).unwrap();
    let modulus = PlaintextModulus::new(&parameters, 114_689).unwrap();
    let element = GaloisElement::row_swap(4096).unwrap();
    Context { parameters, modulus, element }
});

fuzz_target!(|input: (u8, &[u8])| {
    let (kind, bytes) = input;
    let Context { parameters, modulus, element } = &*CONTEXT;
    let encoded = match kind % 9 {
        0 => SeededCiphertext::from_bytes(parameters, bytes).map(|ciphertext| ciphertext.to_bytes()),
        1 => SealedCiphertext::from_bytes(modulus, bytes).map(|ciphertext| ciphertext.to_bytes()),
        2 => PublicKey::from_bytes(parameters, bytes).map(|key| key.to_bytes()),
        3 => C0::from_bytes(parameters, bytes).map(|half| half.to_bytes()),
        4 => C1::from_bytes(bytes).map(|half| half.to_bytes()),
        5 => SealedC0::from_bytes(modulus, bytes).map(|half| half.to_bytes()),
        6 => SealedC1::from_bytes(modulus, bytes).map(|half| half.to_bytes()),
        7 => SecretKey::from_bytes(parameters, bytes).map(|key| {
            let mut writer = Writer::new();
            key.encode(&mut writer);
            writer.into_bytes()
        }),
        _ => {
            let needed = [NeededKey::automorphism(*element), NeededKey::product()];
            EvaluationKeys::from_bytes(parameters, &needed, bytes).map(|keys| keys.to_bytes())
        }
    };
    if let Ok(encoded) = encoded {
        assert_eq!(encoded, bytes);
    }
});
