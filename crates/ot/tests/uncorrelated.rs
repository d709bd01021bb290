//! Arithmetic OT against its ideal twin.

use crate::common::{self, TestChannel, rng, run, run_over};
use lanner_ot::arithmetic;
use lanner_ot::{CotReceiver, CotSender, OtError, random_delta};
use lanner_primitives::{Bits, Block, Ring};
use lanner_wire::{ChannelError, Kind};
use rand_core::Rng;

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

#[test]
fn arithmetic_shares_add_up_to_the_chosen_correlations() {
    let modulo = |m| (Ring::Prime(m), u128::from(m));
    let power = |bits| (Ring::Pow2(bits), 1_u128 << bits);
    let rings = [
        modulo(2),
        modulo(114_689),
        modulo(137_438_822_401),
        modulo(1 << 50),
        power(1),
        power(32),
        power(64),
    ];
    for (ring, m) in rings {
        for count in [0, 1, 129, 65_537] {
            let mut values = rng(9);
            let a: Vec<u64> = (0..count).map(|_| (u128::from(values.next_u64()) % m) as u64).collect();
            let given = Bits::random(count, &mut rng(6));
            let ((s, s_random), (r, (drawn, r_random))) = with_setup(
                |c, s| {
                    let first = arithmetic::send(s, c, ring, &a).unwrap();
                    (first, arithmetic::send_random(s, c, ring, &a).unwrap())
                },
                |c, r| {
                    let first = arithmetic::receive(r, c, ring, &given).unwrap();
                    (first, arithmetic::receive_random(r, c, ring, count).unwrap())
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
    let ring = Ring::Prime(3);
    let (shares, _) = with_setup(
        |c, s| arithmetic::send_random(s, c, ring, &vec![1; count]).unwrap(),
        |c, r| arithmetic::receive_random(r, c, ring, count).unwrap(),
    );
    let mut counts = [0_usize; 3];
    shares.iter().for_each(|s| counts[*s as usize] += 1);
    // Standard deviation 115.
    assert!(counts.iter().all(|n| n.abs_diff(count / 3) < 700), "{counts:?}");
}

#[test]
fn misuse_and_malformed_messages_are_refused() {
    let ring = Ring::Prime(5);
    let ((), ()) = with_setup(
        |c, s| {
            let beyond = arithmetic::send(s, c, ring, &[5]);
            let huge = arithmetic::send(s, c, Ring::Prime((1 << 50) + 1), &[1]);
            assert!([beyond, huge].iter().all(|sent| matches!(sent, Err(OtError::Range { .. }))));
        },
        |_, _| {},
    );
    // A correction of m or more.
    let tamper: common::Tamper = (Kind(0x17), |m| m[0] |= 7);
    let (mut ca, mut cb) = TestChannel::pair();
    (ca.tamper, cb.tamper) = (Some(tamper), Some(tamper));
    let (sender, receiver) = run_over(
        &mut ca,
        &mut cb,
        |c| {
            let mut s = CotSender::setup(c, Block(1), &mut rng(2))?;
            arithmetic::send(&mut s, c, ring, &[1, 2, 3])
        },
        |c| {
            let mut r = CotReceiver::setup(c, &mut rng(3))?;
            arithmetic::receive(&mut r, c, ring, &Bits::zeros(3))
        },
    );
    sender.unwrap();
    assert!(matches!(receiver, Err(OtError::Channel(ChannelError::Malformed { .. }))));
}
