//! Base OT against its ideal twin, and against malformed points.

use crate::common::{TestChannel, rng, run, run_over};
use lanner_ot::{OtError, base};
use lanner_primitives::Bits;
use lanner_wire::{ChannelError, Kind};

const SENDER: Kind = Kind(0x10);
const RECEIVER: Kind = Kind(0x11);

#[test]
fn the_receiver_gets_the_key_of_its_choice_and_no_other() {
    for count in [0, 1, 5, 128] {
        let choices = Bits::random(count, &mut rng(1));
        let (pairs, keys) = run(
            |c| base::send(c, count, &mut rng(2)).unwrap(),
            |c| base::receive(c, &choices, &mut rng(3)).unwrap(),
        );
        assert_eq!((pairs.len(), keys.len()), (count, count));
        for ((pair, key), choice) in pairs.iter().zip(keys.iter()).zip(choices.iter()) {
            assert!(pair[usize::from(choice)] == *key && pair[usize::from(!choice)] != *key);
        }
    }
}

#[test]
fn keys_of_all_transfers_differ() {
    let choices = Bits::zeros(64);
    let (pairs, _) = run(
        |c| base::send(c, 64, &mut rng(2)).unwrap(),
        |c| base::receive(c, &choices, &mut rng(3)).unwrap(),
    );
    let mut keys: Vec<_> = pairs.iter().flatten().map(|k| k.0).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), 128);
}

/// What the two parties come to if one of them changes its message.
fn tampered(kind: Kind, change: fn(&mut Vec<u8>)) -> (Option<OtError>, Option<OtError>) {
    let (mut ca, mut cb) = TestChannel::pair();
    ca.tamper = Some((kind, change));
    cb.tamper = Some((kind, change));
    let choices = Bits::random(3, &mut rng(1));
    run_over(
        &mut ca,
        &mut cb,
        |c| base::send(c, 3, &mut rng(2)).err(),
        |c| base::receive(c, &choices, &mut rng(3)).err(),
    )
}

#[test]
fn points_that_do_not_decode_are_refused() {
    // Not canonical, negative, and of the twist.
    let changes: [fn(&mut Vec<u8>); 3] = [|m| m[32..64].fill(0xff), |m| m[32] ^= 1, |m| m[63] |= 0x80];
    for change in changes {
        let (sender, receiver) = tampered(RECEIVER, change);
        assert!(matches!(sender, Some(OtError::Channel(ChannelError::Malformed { .. }))));
        assert!(receiver.is_none());
        let (sender, receiver) = tampered(SENDER, change);
        assert!(matches!(receiver, Some(OtError::Channel(ChannelError::Malformed { .. }))));
        assert!(sender.is_none());
    }
}

#[test]
fn the_identity_is_refused_from_the_sender() {
    let (_, receiver) = tampered(SENDER, |m| m[..32].fill(0));
    assert!(matches!(receiver, Some(OtError::Channel(ChannelError::Malformed { .. }))));
}

#[test]
fn wrong_lengths_are_refused() {
    for change in [|m: &mut Vec<u8>| m.push(0), |m: &mut Vec<u8>| m.truncate(31)] {
        let (sender, _) = tampered(RECEIVER, change);
        assert!(matches!(sender, Some(OtError::Channel(ChannelError::Unexpected { .. }))));
        let (_, receiver) = tampered(SENDER, change);
        assert!(matches!(receiver, Some(OtError::Channel(ChannelError::Unexpected { .. }))));
    }
}
