//! Random, chosen and arithmetic OT against their ideal twins.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod common;

use common::{TestChannel, rng, run, run_over};
use lanner_ot::arithmetic::{self, Group};
use lanner_ot::random::{RandomChoices, RandomPairs};
use lanner_ot::{CotReceiver, CotSender, OtError, chosen, random_delta};
use lanner_primitives::{Bits, Block};
use lanner_wire::{ChannelError, Kind};
use rand_core::Rng;

const COUNTS: [usize; 7] = [0, 1, 127, 128, 129, 20_000, 65_537];

/// Sets up one direction and runs one protocol for each party.
fn with_setup<A: Send, B: Send>(
    a: impl FnOnce(&mut TestChannel, &mut CotSender) -> A + Send,
    b: impl FnOnce(&mut TestChannel, &mut CotReceiver) -> B + Send,
) -> (A, B) {
    run(
        |c| {
            let mut sender = CotSender::setup(c, random_delta(&mut rng(1)), &mut rng(2)).unwrap();
            a(c, &mut sender)
        },
        |c| {
            let mut receiver = CotReceiver::setup(c, &mut rng(3)).unwrap();
            b(c, &mut receiver)
        },
    )
}

fn random_blocks(count: usize, number: u8) -> Vec<[Block; 2]> {
    let mut rng = rng(number);
    (0..count).map(|_| [Block::random(&mut rng), Block::random(&mut rng)]).collect()
}

#[test]
fn random_ot_gives_the_key_of_the_choice() {
    for count in COUNTS {
        let given = Bits::random(count, &mut rng(7));
        let ((drawn, offered), (random, chosen)) = with_setup(
            |c, s| (RandomPairs::draw(s, c, count).unwrap(), RandomPairs::offer(s, c, count).unwrap()),
            |c, r| {
                let random = RandomChoices::draw(r, c, count).unwrap();
                (random, RandomChoices::choose(r, c, given.clone()).unwrap())
            },
        );
        assert!(chosen.choices().as_words() == given.as_words());
        for (pairs, got) in [(drawn, random), (offered, chosen)] {
            assert_eq!((pairs.len(), got.len()), (count, count));
            for i in 0..count {
                let keys = [pairs.zeros()[i], pairs.ones()[i]];
                let choice = got.choices().get(i);
                assert!(keys[usize::from(choice)] == got.keys()[i]);
                assert!(keys[usize::from(!choice)] != got.keys()[i]);
            }
        }
    }
}

/// The receiver's key against the other one: each bit of their difference is a fair coin, and so is each pair of
/// neighbours' difference. Correlated transfers that were not hashed would differ by one delta throughout.
#[test]
fn the_other_key_is_uncorrelated() {
    let count = 20_000;
    let (pairs, _) = with_setup(
        |c, s| RandomPairs::draw(s, c, count).unwrap(),
        |c, r| RandomChoices::draw(r, c, count).unwrap(),
    );
    let differences: Vec<u128> = pairs.zeros().iter().zip(pairs.ones()).map(|(a, b)| (*a ^ *b).0).collect();
    let neighbours = differences.windows(2).map(|d| d[0] ^ d[1]).collect();
    for samples in [differences, neighbours] {
        for bit in 0..128 {
            let ones = samples.iter().filter(|d| *d >> bit & 1 == 1).count();
            // Standard deviation 71; beyond six of them one run in 10^6 with 256 bits.
            assert!(ones.abs_diff(count / 2) < 430, "bit {bit}: {ones} of {count}");
        }
    }
}

#[test]
fn chosen_blocks_are_the_ideal_functionalitys() {
    for count in COUNTS {
        let messages = random_blocks(count, 5);
        let choices = Bits::random(count, &mut rng(6));
        let ((), got) = with_setup(
            |c, s| {
                let material = RandomPairs::draw(s, c, count).unwrap();
                chosen::send_blocks(material, c, &messages).unwrap();
            },
            |c, r| {
                let material = RandomChoices::draw(r, c, count).unwrap();
                chosen::receive_blocks(material, c, &choices).unwrap()
            },
        );
        assert!(got.iter().zip(&messages).zip(choices.iter()).all(|((g, m), x)| *g == m[usize::from(x)]));
        assert_eq!(got.len(), count);
    }
}

#[test]
fn chosen_bytes_are_the_ideal_functionalitys() {
    for (count, length) in [(0, 5), (1, 0), (3, 1), (129, 33), (1000, 16), (40, 30_000)] {
        let (mut zeros, mut ones) = (vec![0; count * length], vec![0; count * length]);
        rng(5).fill_bytes(&mut zeros);
        rng(8).fill_bytes(&mut ones);
        let choices = Bits::random(count, &mut rng(6));
        let ((), got) = with_setup(
            |c, s| {
                let material = RandomPairs::draw(s, c, count).unwrap();
                chosen::send_bytes(material, c, length, &zeros, &ones).unwrap();
            },
            |c, r| {
                let material = RandomChoices::draw(r, c, count).unwrap();
                chosen::receive_bytes(material, c, length, &choices).unwrap()
            },
        );
        assert_eq!(got.len(), count * length);
        for (i, x) in choices.iter().enumerate() {
            let at = i * length..(i + 1) * length;
            assert_eq!(got[at.clone()], if x { &ones } else { &zeros }[at]);
        }
    }
}

#[test]
fn arithmetic_shares_add_up_to_the_chosen_correlations() {
    let modulo = |m| (Group::modulo(m).unwrap(), u128::from(m));
    let power = |bits| (Group::power_of_two(bits).unwrap(), 1_u128 << bits);
    let groups = [
        modulo(2),
        modulo(114_689),
        modulo(137_438_822_401),
        modulo(1 << 50),
        power(1),
        power(32),
        power(64),
    ];
    for (group, m) in groups {
        for count in [0, 1, 129, 65_537] {
            let mut values = rng(9);
            let a: Vec<u64> = (0..count).map(|_| (u128::from(values.next_u64()) % m) as u64).collect();
            let given = Bits::random(count, &mut rng(6));
            let ((s, s_random), (r, (drawn, r_random))) = with_setup(
                |c, s| {
                    let first = arithmetic::send(s, c, group, &a).unwrap();
                    (first, arithmetic::send_random(s, c, group, &a).unwrap())
                },
                |c, r| {
                    let first = arithmetic::receive(r, c, group, &given).unwrap();
                    (first, arithmetic::receive_random(r, c, group, count).unwrap())
                },
            );
            for (x, s, r) in [(&given, s, r), (&drawn, s_random, r_random)] {
                assert_eq!((s.len(), r.len(), x.len()), (count, count, count));
                for i in 0..count {
                    let sum = (u128::from(s[i]) + u128::from(r[i])) % m;
                    assert_eq!(sum, if x.get(i) { u128::from(a[i]) } else { 0 });
                    assert!(u128::from(s[i]) < m && u128::from(r[i]) < m);
                }
            }
        }
    }
}

#[test]
fn arithmetic_shares_of_the_sender_are_uniform() {
    let count = 60_000;
    let group = Group::modulo(3).unwrap();
    let (shares, _) = with_setup(
        |c, s| arithmetic::send_random(s, c, group, &vec![1; count]).unwrap(),
        |c, r| arithmetic::receive_random(r, c, group, count).unwrap(),
    );
    let mut counts = [0_usize; 3];
    shares.iter().for_each(|s| counts[*s as usize] += 1);
    // Standard deviation 115.
    assert!(counts.iter().all(|n| n.abs_diff(count / 3) < 700), "{counts:?}");
}

#[test]
fn misuse_and_malformed_messages_are_refused() {
    let group = Group::modulo(5).unwrap();
    let ((), ()) = with_setup(
        |c, s| {
            assert!(matches!(arithmetic::send(s, c, group, &[5]), Err(OtError::Range { .. })));
            let material = RandomPairs::draw(s, c, 3).unwrap();
            let short = chosen::send_blocks(material, c, &[[Block::ZERO; 2]; 2]);
            assert!(matches!(short, Err(OtError::Length { expected: 3, got: 2, .. })));
        },
        |c, r| {
            let material = RandomChoices::draw(r, c, 3).unwrap();
            let long = chosen::receive_blocks(material, c, &Bits::zeros(4));
            assert!(matches!(long, Err(OtError::Length { expected: 3, got: 4, .. })));
        },
    );
    // A flip in the padding, a masked message too long, a correction of m or more.
    let kinds: [common::Tamper; 3] =
        [(Kind(0x15), |m| m[0] |= 0x80), (Kind(0x16), |m| m.push(0)), (Kind(0x17), |m| m[0] |= 7)];
    for tamper in kinds {
        let (mut ca, mut cb) = TestChannel::pair();
        (ca.tamper, cb.tamper) = (Some(tamper), Some(tamper));
        let (sender, receiver) = run_over(
            &mut ca,
            &mut cb,
            |c| {
                let mut s = CotSender::setup(c, Block(1), &mut rng(2))?;
                arithmetic::send(&mut s, c, group, &[1, 2, 3])?;
                let material = RandomPairs::draw(&mut s, c, 3)?;
                chosen::send_blocks(material, c, &[[Block::ZERO; 2]; 3])
            },
            |c| {
                let mut r = CotReceiver::setup(c, &mut rng(3))?;
                arithmetic::receive(&mut r, c, group, &Bits::zeros(3))?;
                let material = RandomChoices::draw(&mut r, c, 3)?;
                chosen::receive_blocks(material, c, &Bits::zeros(3)).map(|_| ())
            },
        );
        let refused = |e: &Result<(), OtError>| {
            matches!(
                e,
                Err(OtError::Channel(ChannelError::Malformed { .. } | ChannelError::Unexpected { .. }))
            )
        };
        assert!(refused(&sender) || refused(&receiver), "{:?}", tamper.0);
    }
}
