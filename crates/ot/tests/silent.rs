//! Silent correlated OT: the correlation across iterations, what is sent, and bad peers.

use crate::common::{TestChannel, correlated, rng, run, run_over};
use lanner_ot::silent::{Parameters, Supply};
use lanner_ot::{
    CorrelatedReceiver, CorrelatedSender, CotReceiver, CotSender, OtError, SilentReceiver, SilentSender,
    random_delta,
};
use lanner_primitives::{Bits, Block};
use lanner_wire::{ChannelError, Kind};

const TREES: Kind = Kind(0x18);

fn sender(c: &mut TestChannel, set: Parameters) -> Result<SilentSender, OtError> {
    let source = CotSender::setup(c, random_delta(&mut rng(1)), &mut rng(2))?;
    SilentSender::setup(c, source, set, &mut rng(3))
}

fn receiver(c: &mut TestChannel, set: Parameters) -> Result<SilentReceiver, OtError> {
    let source = CotReceiver::setup(c, &mut rng(4))?;
    SilentReceiver::setup(c, source, set)
}

/// Takes transfers in parts of these counts, with random and with given choices in turn, and checks all of them.
fn agree(set: Parameters, counts: &[usize]) {
    let ((delta, q, firsts), (x, t, others)) = run(
        |c| {
            let mut sender = sender(c, set).unwrap();
            let (mut q, mut firsts) = (Vec::new(), Vec::new());
            for (turn, count) in counts.iter().enumerate() {
                firsts.push(match turn % 2 {
                    0 => sender.extend_random(c, *count, &mut q).unwrap(),
                    _ => sender.extend(c, *count, &mut q).unwrap(),
                });
            }
            (sender.delta(), q, firsts)
        },
        |c| {
            let mut receiver = receiver(c, set).unwrap();
            let (mut x, mut t, mut firsts) = (Vec::new(), Vec::new(), Vec::new());
            for (turn, count) in counts.iter().enumerate() {
                let (choices, first) = if turn % 2 == 0 {
                    receiver.extend_random(c, *count, &mut t).unwrap()
                } else {
                    let choices = Bits::random(*count, &mut rng(5));
                    let first = receiver.extend(c, &choices, &mut t).unwrap();
                    (choices, first)
                };
                firsts.push(first);
                x.extend(choices.iter());
            }
            (x, t, firsts)
        },
    );
    let x: Bits = x.into_iter().collect();
    assert!(correlated(delta, &q, &x, &t));
    assert_eq!(firsts, others);
    let ends = firsts.iter().zip(counts).map(|(first, count)| first + *count as u64);
    assert!(ends.zip(&firsts[1..]).all(|(end, next)| end == *next), "no index comes twice");
    let ones = x.iter().filter(|x| *x).count();
    assert!(ones.abs_diff(x.len() / 2) < 4 * (x.len() as f64).sqrt() as usize, "choices are balanced");
}

#[test]
fn transfers_are_correlated_across_iterations() {
    let set = Parameters::ALL[0];
    agree(set, &[0, 1, 1000, 1024, 70_000, set.usable(), 0, 65_537, 3]);
}

#[test]
fn a_larger_set_begins_with_the_smallest() {
    agree(Parameters::ALL[1], &[5, 300_000]);
}

#[test]
fn no_transfer_comes_twice() {
    let (q, ()) = run(
        |c| {
            let mut sender = sender(c, Parameters::ALL[0]).unwrap();
            let mut q = Vec::new();
            sender.extend_random(c, 900_000, &mut q).unwrap();
            q
        },
        |c| {
            let mut receiver = receiver(c, Parameters::ALL[0]).unwrap();
            receiver.extend_random(c, 900_000, &mut Vec::new()).unwrap();
        },
    );
    let mut blocks: Vec<u128> = q.iter().map(|q| q.0).collect();
    blocks.sort_unstable();
    blocks.dedup();
    assert_eq!(blocks.len(), 900_000);
    assert!(q.iter().all(|q| !q.lsb()), "the low bits carry the choices alone");
}

#[test]
fn bytes_and_messages_are_those_of_the_supply() {
    let set = Parameters::ALL[1];
    let counts = [0, 17, 2048, 100_000];
    let mut supply = Supply::new(set);
    let expected: Vec<_> = counts.iter().map(|count| supply.take(*count)).collect();
    let bases = || {
        let (mut ca, mut cb) = TestChannel::pair();
        run_over(
            &mut ca,
            &mut cb,
            |c| CotSender::setup(c, random_delta(&mut rng(1)), &mut rng(2)).map(drop).unwrap(),
            |c| CotReceiver::setup(c, &mut rng(4)).map(drop).unwrap(),
        );
        (ca.sent(), cb.sent())
    };
    let base = bases();
    let (mut ca, mut cb) = TestChannel::pair();
    let (sent, received) = run_over(
        &mut ca,
        &mut cb,
        |c| {
            let mut sender = sender(c, set).unwrap();
            let mut sent = vec![c.sent()];
            for count in counts {
                sender.extend_random(c, count, &mut Vec::new()).unwrap();
                sent.push(c.sent());
            }
            sent
        },
        |c| {
            let mut receiver = receiver(c, set).unwrap();
            let setup = c.sent();
            for count in counts {
                receiver.extend_random(c, count, &mut Vec::new()).unwrap();
            }
            assert_eq!(c.sent(), setup, "only the sender sends");
            setup
        },
    );
    let setup = set.setup_cost();
    assert_eq!((sent[0].0 - base.0.0, sent[0].1 - base.0.1), (setup.sender_bytes, setup.sender_messages));
    assert_eq!(
        (received.0 - base.1.0, received.1 - base.1.1),
        (setup.receiver_bytes, setup.receiver_messages)
    );
    for (pair, cost) in sent.windows(2).zip(expected) {
        assert_eq!((pair[1].0 - pair[0].0, pair[1].1 - pair[0].1), (cost.sender_bytes, cost.sender_messages));
    }
}

#[test]
fn messages_of_other_lengths_are_refused() {
    let changes: [fn(&mut Vec<u8>); 3] = [|m| m.truncate(m.len() - 1), |m| m.push(0), Vec::clear];
    for change in changes {
        let (mut ca, mut cb) = TestChannel::pair();
        ca.tamper = Some((TREES, change));
        let (_, refused) = run_over(
            &mut ca,
            &mut cb,
            |c| sender(c, Parameters::ALL[0]).and_then(|mut s| s.extend_random(c, 10, &mut Vec::new())),
            |c| {
                receiver(c, Parameters::ALL[0])
                    .and_then(|mut r| r.extend_random(c, 10, &mut Vec::new()))
                    .err()
            },
        );
        assert!(matches!(refused, Some(OtError::Channel(ChannelError::Unexpected { .. }))), "{refused:?}");
    }
}

/// A flipped bit of a sum of nodes, of the sum of a tree's tags, and of the digest; in the message of one tree, and in the first of many.
#[test]
fn altered_trees_are_caught_and_their_receiver_has_nothing_more_to_give() {
    let changes: [fn(&mut Vec<u8>); 4] =
        [|m| m[0] ^= 0x80, |m| m[8 * 16 + 3] ^= 1, |m| m[9 * 16] ^= 1, |m| *m.last_mut().unwrap() ^= 1];
    for (change, count) in changes.into_iter().zip([2048, 10, 70_000, 512]) {
        let (mut ca, mut cb) = TestChannel::pair();
        ca.tamper = Some((TREES, change));
        run_over(
            &mut ca,
            &mut cb,
            |c| drop(sender(c, Parameters::ALL[0]).unwrap().extend_random(c, count, &mut Vec::new())),
            |c| {
                let mut receiver = receiver(c, Parameters::ALL[0]).unwrap();
                let mut t = vec![Block(5)];
                let caught = receiver.extend_random(c, count, &mut t);
                assert!(matches!(caught, Err(OtError::Dishonest { .. })), "{count}");
                assert!(t == [Block(5)], "what was there before is left, and nothing else");
                let again = receiver.extend_random(c, 1, &mut t);
                assert!(matches!(again, Err(OtError::Dishonest { .. })), "{count}");
            },
        );
    }
}

#[test]
fn altered_trees_of_a_bootstrap_are_caught() {
    let (mut ca, mut cb) = TestChannel::pair();
    ca.tamper = Some((TREES, |m| m[16] ^= 1));
    let (_, caught) = run_over(
        &mut ca,
        &mut cb,
        |c| sender(c, Parameters::ALL[1]).map(drop),
        |c| receiver(c, Parameters::ALL[1]).map(drop),
    );
    assert!(matches!(caught, Err(OtError::Dishonest { .. })), "{caught:?}");
}
