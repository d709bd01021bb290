//! The handshake of either party, from the first byte: a model is agreed on, or there is an error. The server's greeting, request and
//! answer have whatever content the bytes say; the frames around them are the bytes' own.
#![no_main]

use lanner_attacks::script::{End, Script};
use lanner_primitives::{Prg, Seed};
use lanner_session::handshake::{Greeting, ModelEntry, ModelRequest, Offer, answer};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, &[u8])| {
    let (party, bytes) = input;
    let mut channel = Script::channel(bytes.to_vec(), End::Departure);
    let mut rng = Prg::new(Seed::from_bytes([7; 16]));
    match party % 4 {
        0 | 1 => {
            let model = ModelEntry { name: "m".to_owned(), commitment: [1; 32] };
            let offer = Offer { model, parameters: [2; 32], manifest: b"{}".to_vec() };
            let offers = [offer.clone(), offer];
            let _ = answer(&mut channel, None, &offers[usize::from(party % 2)..], &mut rng);
        }
        kind => {
            let Ok(mut greeting) = Greeting::send(&mut channel, &mut rng) else { return };
            if kind == 2 && greeting.list(&mut channel).is_err() {
                return;
            }
            if let Ok(welcomed) = greeting.request(&mut channel, None, &ModelRequest::default()) {
                assert!(welcomed.manifest().len() <= bytes.len());
            }
        }
    }
});
