//! Predicted costs against what is sent, and changed messages of every kind.

use crate::common::{Tamper, TestChannel, rng, run_over};
use lanner_ot::arithmetic;
use lanner_ot::{
    CorrelatedReceiver, CorrelatedSender, Cost, CotReceiver, CotSender, OtError, random_delta, softspoken,
};
use lanner_primitives::{Bits, Ring};
use lanner_wire::Kind;

/// The sender's part in one run of every protocol, `count` transfers each.
fn send_all(c: &mut TestChannel, ring: Ring, count: usize) -> Result<(), OtError> {
    let mut source = CotSender::setup(c, random_delta(&mut rng(1)), &mut rng(2))?;
    let mut q = Vec::new();
    source.extend(c, count, &mut q)?;
    source.extend_random(c, count, &mut q)?;
    arithmetic::send(&mut source, c, ring, &vec![1; count])?;
    arithmetic::send_random(&mut source, c, ring, &vec![1; count])?;
    Ok(())
}

/// The receiver's part.
fn receive_all(c: &mut TestChannel, ring: Ring, count: usize) -> Result<(), OtError> {
    let mut source = CotReceiver::setup(c, &mut rng(3))?;
    let (mut t, choices) = (Vec::new(), Bits::random(count, &mut rng(4)));
    source.extend(c, &choices, &mut t)?;
    source.extend_random(c, count, &mut t)?;
    arithmetic::receive(&mut source, c, ring, &choices)?;
    arithmetic::receive_random(&mut source, c, ring, count)?;
    Ok(())
}

fn predicted(ring: Ring, count: usize) -> Cost {
    let (given, random) = (softspoken::extension_cost(count), softspoken::random_extension_cost(count));
    softspoken::setup_cost()
        .plus(given)
        .plus(random)
        .plus(arithmetic::cost(ring, count))
        .plus(arithmetic::random_cost(ring, count))
}

#[test]
fn predicted_costs_are_the_measured() {
    for count in [0, 1, 129, 65_537, 140_000] {
        let ring = Ring::Prime(1_032_193);
        let (mut ca, mut cb) = TestChannel::pair();
        let (a, b) =
            run_over(&mut ca, &mut cb, |c| send_all(c, ring, count), |c| receive_all(c, ring, count));
        a.unwrap();
        b.unwrap();
        let cost = predicted(ring, count);
        assert_eq!(ca.sent(), (cost.sender_bytes, cost.sender_messages), "count {count}");
        assert_eq!(cb.sent(), (cost.receiver_bytes, cost.receiver_messages), "count {count}");
    }
}

/// Neither party panics, hangs or sends other lengths, whichever message is changed and how.
#[test]
fn changed_messages_lead_to_an_end() {
    let changes: [fn(&mut Vec<u8>); 6] = [
        |m| m.clear(),
        |m| m.truncate(m.len() / 2),
        |m| m.extend([0; 16]),
        |m| m.iter_mut().for_each(|b| *b = 0),
        |m| m.iter_mut().for_each(|b| *b = 0xff),
        |m| m.iter_mut().step_by(7).for_each(|b| *b ^= 0x55),
    ];
    let ring = Ring::Prime(1_032_193);
    for kind in [0x10, 0x11, 0x12, 0x13, 0x14, 0x16, 0x17] {
        for (number, change) in changes.into_iter().enumerate() {
            let tamper: Tamper = (Kind(kind), change);
            let (mut ca, mut cb) = TestChannel::pair();
            (ca.tamper, cb.tamper) = (Some(tamper), Some(tamper));
            let (a, b) =
                run_over(&mut ca, &mut cb, |c| send_all(c, ring, 130), |c| receive_all(c, ring, 130));
            // A changed length is always noticed.
            assert!(number >= 3 || a.is_err() || b.is_err(), "kind {kind:#x}, change {number}");
        }
    }
}
