//! Stochastic rescales: within one of the exact ones, up as often as the fraction says, and by nothing that the client has.

use lanner_primitives::{Ring, Share};
use lanner_tabula::{Activation, Rounding, Shape};
use lanner_testkit::chi_square_limit;
use lanner_wire::{Reader, packed_len};

use super::{Case, End, MASKED_VALUES, ideal, outputs, rng};

fn case(
    [kept, dropped, to]: [u32; 3],
    shape: Shape,
    secrets: Vec<i64>,
    server: impl Fn(Ring) -> Share,
) -> Case {
    let from = kept + dropped + 1;
    let layer =
        Activation::rounding(Rounding::Stochastic, secrets.len(), [kept, dropped, to], shape).unwrap();
    Case { layer, from, secrets, server: server(Ring::Pow2(from)) }
}

/// What a shape makes of a rescaled value.
fn shaped(kept: u32, shape: Shape, rescaled: i64) -> i64 {
    ideal(kept, 1, shape, 2 * rescaled)
}

#[test]
fn every_value_is_rounded_down_or_up() {
    let widths = [[3, 1, 20], [2, 5, 20], [5, 2, 20], [6, 4, 20], [8, 9, 30], [10, 12, 10]];
    let (mut cases, mut secrets) = (Vec::new(), Vec::new());
    for [kept, dropped, to] in widths {
        let (end, unit) = (1_i64 << (kept + dropped - 1), 1 << dropped);
        let all: Vec<i64> = (-end..=end - unit).step_by(1.max(end as usize / 500)).collect();
        for shape in [Shape::Identity, Shape::Relu, Shape::Clip((1 << (kept - 2)) - 1)] {
            let server = |ring| super::edge_share(ring, all.len(), &mut rng(9));
            cases.push(case([kept, dropped, to], shape, all.clone(), server));
            secrets.push((kept, dropped, shape, all.clone()));
        }
    }
    let got = outputs(&mut End::pair(), &cases, 21);
    let mut seen = [0; 2];
    for ((kept, dropped, shape, secrets), got) in secrets.into_iter().zip(got) {
        for (x, y) in secrets.into_iter().zip(got) {
            let (down, is_whole) = (x >> dropped, x.rem_euclid(1 << dropped) == 0);
            let both = [down, if is_whole { down } else { down + 1 }].map(|y| shaped(kept, shape, y));
            assert!(both.contains(&y), "{kept} {dropped} {shape:?} {x}: {y}");
            assert!((y - ideal(kept, dropped, shape, x)).abs() <= 1);
            if both[0] != both[1] {
                seen[usize::from(y == both[1])] += 1;
            }
        }
    }
    assert!(seen.iter().all(|count| *count > 500), "{seen:?}");
}

const KEPT: u32 = 6;
const DROPPED: u32 = 5;
const REPEATS: usize = 4000;

/// One value many times: whether each was rounded up, and what both parties sent.
fn repeated(x: i64, server: impl Fn(Ring) -> Share) -> (Vec<bool>, (End, End)) {
    let case = case([KEPT, DROPPED, 20], Shape::Identity, vec![x; REPEATS], server);
    let mut ends = End::pair();
    let [got] = <[_; 1]>::try_from(outputs(&mut ends, &[case], 31)).unwrap();
    (got.into_iter().map(|y| y > x >> DROPPED).collect(), ends)
}

/// How far ups are from what a fraction says, in squares of deviations over all groups, and the groups.
fn unevenness(ups: &[bool], fraction: f64, groups: impl Fn(usize) -> usize) -> (f64, usize) {
    let mut counts = vec![[0_f64; 2]; 8];
    for (i, up) in ups.iter().enumerate() {
        let [all, up_of] = &mut counts[groups(i)];
        (*all, *up_of) = (*all + 1.0, *up_of + f64::from(*up));
    }
    counts.retain(|[all, _]| *all > 0.0);
    let square = |[all, up]: &[f64; 2]| (up - all * fraction).powi(2) / (all * fraction * (1.0 - fraction));
    (counts.iter().map(square).sum(), counts.len())
}

#[test]
fn values_are_rounded_up_as_often_as_their_fraction_says() {
    let unit = 1 << DROPPED;
    for (i, low) in [1, 5, unit / 2, unit - 3, unit - 1].into_iter().enumerate() {
        for (high, share) in
            [(0, 0), (-7, u64::MAX), (30, low as u64), (-32, 1 << (KEPT + DROPPED)), (3, 5 + i as u64)]
        {
            let x = high * unit + low;
            let (ups, _) =
                repeated(x, |ring| Share::new(ring, vec![ring.embed(share as i64); REPEATS]).unwrap());
            let (off, groups) = unevenness(&ups, low as f64 / unit as f64, |_| 0);
            assert!(off < chi_square_limit(groups), "{x} {share}: {off}");
        }
    }
    let (ups, _) = repeated(-3 * unit, |ring| Share::random(ring, REPEATS, &mut rng(3)));
    assert!(!ups.contains(&true));
}

/// Whoever repeats a query has its share's low bits, what it sent, and what it was told of the sum: nothing of it goes with the rounding. Of what each
/// party drops of its own share, one of these does.
#[test]
fn nothing_that_a_client_has_goes_with_the_rounding() {
    const LOW: i64 = 11;
    let (wide, unit) = (KEPT + DROPPED, 1_i64 << DROPPED);
    let server = |ring| Share::random(ring, REPEATS, &mut rng(4));
    let x = 4 * unit + LOW;
    let (ups, (client, answers)) = repeated(x, server);
    let values = |end: &End, bits: u32| {
        let [message] = <[&[u8]; 1]>::try_from(end.sent_of(MASKED_VALUES.0)).unwrap();
        assert_eq!(message.len(), packed_len(REPEATS, bits));
        Reader::new(message).packed(REPEATS, bits).unwrap()
    };
    // What comes back are the bits that are kept, and no more.
    let (sent, told) = (values(&client, wide), values(&answers, KEPT));
    let ring = Ring::Pow2(wide + 1);
    let shares = super::split(ring, &vec![x; REPEATS], &server(ring));
    let shares = shares.values();
    let top = |low: u64| (low as usize % unit as usize) >> (DROPPED - 3);
    let fraction = LOW as f64 / unit as f64;
    let has: [&dyn Fn(usize) -> usize; 5] = [
        &|i| top(shares[i]),
        &|i| top(sent[i]),
        &|i| top(sent[i].wrapping_sub(shares[i])),
        &|i| (told[i] >> (KEPT - 3)) as usize,
        &|i| told[i] as usize % 8,
    ];
    for (number, of) in has.into_iter().enumerate() {
        let (off, groups) = unevenness(&ups, fraction, of);
        assert!(groups == 8 && off < chi_square_limit(groups), "{number}: {off}");
    }
    let local: Vec<bool> = shares.iter().map(|share| share % unit as u64 <= LOW as u64).collect();
    let (off, groups) = unevenness(&local, fraction, has[0]);
    assert!(off > 10.0 * chi_square_limit(groups));
}
