//! SoftSpoken correlated OT: the correlation at every count, lengths on the wire, and bad peers.

use crate::common::{TestChannel, correlated, rng, run, run_over};
use lanner_ot::{CorrelatedReceiver, CorrelatedSender, CotReceiver, CotSender, OtError, random_delta};
use lanner_primitives::{Bits, Block};
use lanner_wire::{Channel, ChannelError, Kind};

const PUNCTURE: Kind = Kind(0x13);
const CORRECTIONS: Kind = Kind(0x14);
const PROOF: Kind = Kind(0x16);
const COUNTS: [usize; 12] = [0, 1, 127, 128, 129, 1000, 8191, 8192, 8193, 65_536, 65_537, 140_000];

#[test]
fn given_and_random_choices_are_correlated_at_every_count() {
    let delta = random_delta(&mut rng(1));
    let ((q, firsts), (x, t, others)) = run(
        |c| {
            let mut sender = CotSender::setup(c, delta, &mut rng(2)).unwrap();
            let (mut q, mut firsts) = (Vec::new(), Vec::new());
            for count in COUNTS {
                firsts.push(sender.extend(c, count, &mut q).unwrap());
                firsts.push(sender.extend_random(c, count, &mut q).unwrap());
            }
            (q, firsts)
        },
        |c| {
            let mut receiver = CotReceiver::setup(c, &mut rng(3)).unwrap();
            let (mut x, mut t, mut firsts) = (Vec::new(), Vec::new(), Vec::new());
            for count in COUNTS {
                let choices = Bits::random(count, &mut rng(4));
                firsts.push(receiver.extend(c, &choices, &mut t).unwrap());
                x.extend(choices.iter());
                let (choices, first) = receiver.extend_random(c, count, &mut t).unwrap();
                firsts.push(first);
                x.extend(choices.iter());
            }
            (x, t, firsts)
        },
    );
    assert!(correlated(delta, &q, &x.into_iter().collect(), &t));
    assert_eq!(firsts, others);
    // No index is used twice.
    let mut next = 0;
    for (first, count) in firsts.iter().zip(COUNTS.iter().flat_map(|c| [c, c])) {
        assert_eq!(*first, next);
        next += *count as u64;
    }
}

#[test]
fn random_choices_are_balanced_and_differ_by_extension() {
    let ((), choices) = run(
        |c| {
            let mut sender = CotSender::setup(c, random_delta(&mut rng(1)), &mut rng(2)).unwrap();
            for _ in 0..2 {
                sender.extend_random(c, 10_000, &mut Vec::new()).unwrap();
            }
        },
        |c| {
            let mut receiver = CotReceiver::setup(c, &mut rng(3)).unwrap();
            [(); 2].map(|()| receiver.extend_random(c, 10_000, &mut Vec::new()).unwrap().0)
        },
    );
    let ones = |bits: &Bits| bits.iter().filter(|b| *b).count();
    // Standard deviation 50.
    assert!(choices.iter().all(|bits| ones(bits).abs_diff(5000) < 300));
    assert!(ones(&choices[0].xor(&choices[1]).unwrap()).abs_diff(5000) < 300);
}

#[test]
fn delta_without_its_lowest_bit_is_refused() {
    let (mut channel, _peer) = TestChannel::pair();
    let error = CotSender::setup(&mut channel, Block(2), &mut rng(1)).err();
    assert!(matches!(error, Some(OtError::Delta)));
    assert!((0..50).all(|i| random_delta(&mut rng(i)).lsb()));
}

#[test]
fn bytes_are_a_function_of_the_count() {
    for count in COUNTS {
        let ((), received) = run(
            |c| {
                let mut sender = CotSender::setup(c, random_delta(&mut rng(1)), &mut rng(2)).unwrap();
                sender.extend(c, count, &mut Vec::new()).unwrap();
                sender.extend_random(c, count, &mut Vec::new()).unwrap();
            },
            |c| {
                let mut receiver = CotReceiver::setup(c, &mut rng(3)).unwrap();
                let setup = c.traffic();
                receiver.extend(c, &Bits::zeros(count), &mut Vec::new()).unwrap();
                let given = c.traffic();
                receiver.extend_random(c, count, &mut Vec::new()).unwrap();
                [setup, given.since(setup), c.traffic().since(given)]
            },
        );
        let blocks = count.div_ceil(128) as u64;
        let sent = received.map(|t| t.sent);
        // Points, pairs of sums, 32 sums of tags and their digest; corrections, and of a batch what hides its proof and the proof.
        let proof = if count == 0 { 0 } else { 31 * 16 + 48 };
        let setup = 128 * 32 + 32 * 6 * 16 + 33 * 32;
        assert_eq!(sent, [setup, blocks * 32 * 16 + proof, blocks * 31 * 16 + proof]);
        assert_eq!(received.map(|t| t.received), [128 * 64 + 16, 0, 0]);
    }
}

#[test]
fn messages_of_other_lengths_are_refused() {
    for kind in [PUNCTURE, CORRECTIONS, PROOF] {
        for change in [|m: &mut Vec<u8>| m.push(0), |m: &mut Vec<u8>| m.truncate(m.len() - 1)] {
            let (mut ca, mut cb) = TestChannel::pair();
            cb.tamper = Some((kind, change));
            let (error, ()) = run_over(
                &mut ca,
                &mut cb,
                |c| {
                    let mut sender = match CotSender::setup(c, Block(1), &mut rng(2)) {
                        Ok(sender) => sender,
                        Err(error) => return Some(error),
                    };
                    sender.extend(c, 200, &mut Vec::new()).err()
                },
                |c| {
                    let mut receiver = CotReceiver::setup(c, &mut rng(3)).unwrap();
                    receiver.extend(c, &Bits::zeros(200), &mut Vec::new()).unwrap();
                },
            );
            assert!(matches!(error, Some(OtError::Channel(ChannelError::Unexpected { .. }))));
        }
    }
}

#[test]
fn a_call_that_does_not_meet_its_counterpart_is_refused() {
    let (error, ()) = run(
        |c| {
            let mut sender = CotSender::setup(c, Block(1), &mut rng(2)).unwrap();
            sender.extend_random(c, 200, &mut Vec::new()).err()
        },
        |c| {
            let mut receiver = CotReceiver::setup(c, &mut rng(3)).unwrap();
            receiver.extend(c, &Bits::zeros(200), &mut Vec::new()).unwrap();
        },
    );
    assert!(matches!(error, Some(OtError::Channel(ChannelError::Unexpected { .. }))));
}

#[test]
fn a_message_that_is_changed_on_its_way_gives_no_transfers() {
    for (kind, change) in [
        (CORRECTIONS, (|m| m[0] ^= 1 << 5) as fn(&mut Vec<u8>)),
        (PROOF, |m| m[0] ^= 1),
        (PROOF, |m| m[47] ^= 1),
        // What stands first in the sums and in the digest of the trees.
        (PUNCTURE, |m| m[32 * 6 * 16] ^= 1),
        (PUNCTURE, |m| m[32 * 6 * 16 + 32 * 32] ^= 1),
    ] {
        let (mut ca, mut cb) = TestChannel::pair();
        cb.tamper = Some((kind, change));
        let ((errors, kept, delta), ()) = run_over(
            &mut ca,
            &mut cb,
            |c| match CotSender::setup(c, Block(u128::MAX), &mut rng(2)) {
                Err(error) => ([Some(error), None], Vec::new(), Block::ZERO),
                Ok(mut sender) => {
                    let mut q = vec![Block(3)];
                    let error = sender.extend(c, 128, &mut q).err();
                    // Not even with honest messages does a source go on.
                    ([error, sender.extend(c, 128, &mut q).err()], q, sender.delta())
                }
            },
            |c| {
                let mut receiver = CotReceiver::setup(c, &mut rng(3)).unwrap();
                let choices = Bits::random(128, &mut rng(4));
                // The other party may be gone.
                let _ = receiver.extend(c, &choices, &mut Vec::new());
                c.tamper = None;
                let _ = receiver.extend(c, &choices, &mut Vec::new());
            },
        );
        let caught = |error: &Option<OtError>| matches!(error, Some(OtError::Dishonest { .. }));
        let [first, second] = &errors;
        assert!(caught(first) && (kind == PUNCTURE || caught(second)), "{errors:?}");
        assert!(kind == PUNCTURE || kept == [Block(3)]);
        assert_eq!(delta, Block::ZERO);
    }
}

/// Bits of delta decide whether a wrong sum of a tree is one that the sender needs.
#[test]
fn a_wrong_sum_of_a_tree_passes_half_of_the_deltas() {
    // The sum for choice 0 of tree 1's second level, which bit 6 of delta decides.
    let change: fn(&mut Vec<u8>) = |m| m[6 * 16] ^= 1;
    let mut passed = [0; 2];
    for number in 0..12 {
        let delta = random_delta(&mut rng(100 + number));
        let (mut ca, mut cb) = TestChannel::pair();
        cb.tamper = Some((PUNCTURE, change));
        let (sender, _) = run_over(
            &mut ca,
            &mut cb,
            |c| CotSender::setup(c, delta, &mut rng(2)).map(drop),
            |c| CotReceiver::setup(c, &mut rng(3)).map(drop),
        );
        let bit = delta.0 >> 6 & 1;
        passed[bit as usize] += 1;
        match sender {
            Ok(()) => assert_eq!(bit, 1),
            Err(error) => assert!(bit == 0 && matches!(error, OtError::Dishonest { .. })),
        }
    }
    assert!(passed.iter().all(|count| *count > 0));
}

#[test]
fn the_wire_bytes_are_the_recorded_ones() {
    let (mut ca, mut cb) = TestChannel::pair();
    run_over(
        &mut ca,
        &mut cb,
        |c| {
            let mut sender = CotSender::setup(c, random_delta(&mut rng(1)), &mut rng(2)).unwrap();
            sender.extend(c, 70_000, &mut Vec::new()).unwrap();
            sender.extend_random(c, 300, &mut Vec::new()).unwrap();
        },
        |c| {
            let mut receiver = CotReceiver::setup(c, &mut rng(3)).unwrap();
            receiver.extend(c, &Bits::random(70_000, &mut rng(4)), &mut Vec::new()).unwrap();
            receiver.extend_random(c, 300, &mut Vec::new()).unwrap();
        },
    );
    assert_eq!(ca.digest(), "6a3bbfdefe6beb85d6040efc906dc71a68102b6498da6921378290e5bd423fb7");
    assert_eq!(cb.digest(), "6cec7ea33e18d08bca8e1e6ff464a835608f44dc71260e3ba609185e4dcbeac5");
}
