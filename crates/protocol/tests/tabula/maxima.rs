//! Maxima by comparison keys equal the largest elements, send what they say, and open nothing.

use lanner_ot::silent::Parameters;
use lanner_primitives::{Block, Ring, Share};
use lanner_step::{Party, Transfers, Windows};
use lanner_tabula::{Keyed, Maker, Maxima, Tournament};
use lanner_testkit::{chi_square_limit, uniform_chi_square};
use lanner_wire::Reader;

use super::{End, MASKED_VALUES, edge_share, rng, run, signed, split};

fn maxima(ends: &mut (End, End), spec: Maxima, secrets: &[i64], server: &Share) -> Vec<i64> {
    let step = Tournament::new(spec).unwrap();
    let party = |end: &mut End, me: Party| {
        let rng = &mut rng(40 + me as u8);
        let mut transfers = Transfers::setup(end, me, [Parameters::ALL[0]; 2], rng).unwrap();
        let material =
            step.prepare(&mut Maker { channel: end, transfers: &mut transfers, rng }, Block(77)).unwrap();
        let share = if me == Party::Client { split(server.ring(), secrets, server) } else { server.clone() };
        let before = end.sent.len();
        let output = step.online(end, me, material, &share).unwrap();
        let sent: u64 = end.sent[before..].iter().map(|(_, payload)| 6 + payload.len() as u64).sum();
        let cost = step.online_cost();
        assert_eq!(sent, if me == Party::Client { cost.client_bytes() } else { cost.server_bytes() });
        output
    };
    let (client, server) = run(ends, |end| party(end, Party::Client), |end| party(end, Party::Server));
    client.reveal(&server).unwrap()
}

#[test]
fn the_largest_of_each_window() {
    let [channels, height, width] = [2, 7, 6];
    for (kernel, strides, pads) in [
        ([2, 2], [2, 2], [0; 4]),
        ([3, 3], [2, 2], [1, 1, 1, 1]),
        ([1, 2], [1, 1], [0; 4]),
        ([7, 1], [1, 1], [0; 4]),
        ([3, 2], [1, 2], [2, 0, 0, 1]),
    ] {
        let windows = Windows { channels, image: [height, width], kernel, strides, pads };
        let groups = windows.groups().unwrap();
        for (kept, ring, is_signed) in [(4, 20, true), (9, 9, true), (6, 41, false)] {
            // The largest that differences of this many bits have room for, and the least.
            let most = (1 << (kept - 2)) - 1;
            let mut secrets = signed(windows.inputs(), most, &mut rng(kept as u8));
            (0..secrets.len()).step_by(5).for_each(|i| secrets[i] = [most, -most][i % 2]);
            if !is_signed {
                secrets = secrets.into_iter().map(|secret| secret + most).collect();
            }
            let server = edge_share(Ring::Pow2(ring), secrets.len(), &mut rng(5));
            let got = maxima(&mut End::pair(), Maxima { windows, kept, ring }, &secrets, &server);
            let largest = |group: &Vec<usize>| group.iter().map(|i| secrets[*i]).max().unwrap();
            assert_eq!(got, groups.iter().map(largest).collect::<Vec<_>>(), "{windows:?} {kept}");
        }
    }
}

#[test]
fn what_maxima_open_is_uniform() {
    const BUCKETS: usize = 32;
    let count = 4000;
    let windows = Windows { channels: count, image: [1, 2], kernel: [1, 2], strides: [1, 1], pads: [0; 4] };
    for (values, share) in [([0, 0], 0), ([15, -16], u64::MAX), ([-16, 15], 9)] {
        let ring = Ring::Pow2(20);
        let server = Share::new(ring, vec![ring.embed(share as i64); 2 * count]).unwrap();
        let (spec, mut ends) = (Maxima { windows, kept: 6, ring: 20 }, End::pair());
        maxima(&mut ends, spec, &values.repeat(count), &server);
        for end in [&ends.0, &ends.1] {
            let [message] = <[&[u8]; 1]>::try_from(end.sent_of(MASKED_VALUES.0)).unwrap();
            let mut counts = vec![0; BUCKETS];
            for opened in Reader::new(message).packed(count, 6).unwrap() {
                counts[opened as usize >> 1] += 1;
            }
            assert!(uniform_chi_square(&counts) < chi_square_limit(BUCKETS - 1), "{values:?}: {counts:?}");
        }
    }
}

#[test]
fn windows_and_widths_that_no_keys_have_are_refused() {
    let of = |windows: Windows, kept, ring| Tournament::new(Maxima { windows, kept, ring }).is_ok();
    let pool = |channels| Windows { channels, image: [2, 2], kernel: [2, 2], strides: [2, 2], pads: [0; 4] };
    assert!(of(pool(1), 2, 2) && of(pool(1), 16, 62));
    for (windows, kept, ring) in [
        (Windows::each(4), 8, 20),
        (pool(1), 1, 20),
        (pool(1), 17, 20),
        (pool(1), 9, 8),
        (pool(1), 9, 63),
        (pool(1 << 29), 9, 20),
        (pool(0), 9, 20),
    ] {
        assert!(!of(windows, kept, ring), "{windows:?} {kept} {ring}");
    }
}
