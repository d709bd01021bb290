//! What a peer sends after the handshake, in every mode: an honest party's messages with any bytes of them changed, left out or added.
//! Whoever hears them ends with a result or an error. Messages are those of `attacks/`, which changes each in every way that it lists; here
//! changes are combined as the fuzzer likes.
#![no_main]

use std::sync::LazyLock;

use lanner_attacks::models::{circuits, encrypted, frequency, lookups, probability, products, transfers};
use lanner_attacks::script::{End, Frame, Script, bytes_of};
use lanner_attacks::session::{Conversation, Victim};
use libfuzzer_sys::fuzz_target;

/// A conversation, and what each party hears in it.
struct Said {
    conversation: Conversation,
    heard: [Vec<Frame>; 2],
}

const VICTIMS: [Victim; 2] = [Victim::Client, Victim::Server];

static SAID: LazyLock<Vec<Said>> = LazyLock::new(|| {
    let conversations = [
        Conversation::predictions(&circuits()),
        Conversation::predictions(&frequency()),
        Conversation::session(&probability()),
        Conversation::session(&transfers()),
        Conversation::session(&products()),
        Conversation::session(&lookups()),
        Conversation::session(&encrypted()),
        Conversation::kept(&transfers()),
        Conversation::uploading(&circuits()),
        Conversation::silent_transfers(),
    ];
    let said = |conversation: Conversation| {
        let record = conversation.record();
        Said { heard: VICTIMS.map(|victim| record.heard_by(victim).to_vec()), conversation }
    };
    conversations.into_iter().map(said).collect()
});

// Recording is the start of all, and no part of the first input's time.
fuzz_target!(init: { LazyLock::force(&SAID); }, |input: (u8, Vec<(u16, u16, u8, u8)>)| {
    let (chosen, changes) = input;
    let (said, victim) = (&SAID[usize::from(chosen >> 1) % SAID.len()], usize::from(chosen & 1));
    let mut frames = said.heard[victim].clone();
    for change in changes {
        make(&mut frames, change);
    }
    let mut channel = Script::channel(bytes_of(&frames), End::Departure);
    let _ = (said.conversation.party(VICTIMS[victim]))(&mut channel);
});

/// Changes one of the messages: `what` at a place in it, to or by a value.
fn make(frames: &mut Vec<Frame>, (number, place, what, value): (u16, u16, u8, u8)) {
    let number = usize::from(number) % frames.len().max(1);
    let Some(frame) = frames.get_mut(number) else { return };
    let place = usize::from(place) % (frame.payload.len() + 1);
    match what % 8 {
        0 => frame.payload.truncate(place),
        1 => frame.payload.insert(place, value),
        2 => frame.kind.0 ^= u16::from(value),
        3 => drop(frames.remove(number)),
        4 => frames.insert(number, frames[number].clone()),
        5 => frame.payload.fill(value),
        _ => {
            if let Some(byte) = frame.payload.get_mut(place) {
                *byte ^= value;
            }
        }
    }
}
