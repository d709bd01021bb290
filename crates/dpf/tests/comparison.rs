//! Keys that two parties grow together are shares of comparisons, for every point and every threshold.
#![allow(clippy::unwrap_used)]

use lanner_dpf::{Growth, Keys, Level, POINTS, TAIL_BITS, Tail, WORDS};
use lanner_primitives::{Block, CorrelationRobustHash, Prg, Seed};
use lanner_testkit::{chi_square_limit, uniform_chi_square};
use rand_core::Rng;

fn rng(seed: u8) -> Prg {
    Prg::new(Seed::from_bytes([seed; 16]))
}

fn hash() -> CorrelationRobustHash {
    CorrelationRobustHash::new(Block(0x1357_9bdf))
}

/// Both parties' keys for thresholds and values, as one who sees both makes them: what protocols do on shares.
fn keys(bits: u32, thresholds: &[u64], values: &[[u64; WORDS]], first: u64, seed: u8) -> [Keys; 2] {
    keys_with(bits, thresholds, values, first, seed, false)
}

/// The same with a tail, for the first words of the values, or without.
fn keys_with(
    bits: u32,
    thresholds: &[u64],
    values: &[[u64; WORDS]],
    first: u64,
    seed: u8,
    with_tail: bool,
) -> [Keys; 2] {
    let (hash, rng) = (hash(), &mut rng(seed));
    let roots = [Block::random(rng).with_lsb(true), Block::random(rng).with_lsb(false)];
    let delta = roots[0] ^ roots[1];
    let mut trees = roots.map(|root| Growth::new(&hash, root, thresholds.len(), first));
    let (mut levels, mut tail) = (Vec::new(), None);
    let count = if with_tail { bits - TAIL_BITS } else { bits };
    for level in 0..count {
        let last = !with_tail && level == bits - 1;
        let [zero, one] =
            trees.each_mut().map(|trees| if last { trees.finish() } else { trees.grow().unwrap() });
        let bit = |key: usize| thresholds[key] >> (bits - 1 - level) & 1;
        let node = |key: usize| zero.hashes[key] ^ one.hashes[key] ^ (Block::mask(bit(key) == 0) & delta);
        let nodes: Vec<Block> = if last { Vec::new() } else { (0..thresholds.len()).map(node).collect() };
        let value = |key: usize, word: usize| {
            let sign = zero.controls[key].wrapping_sub(one.controls[key]);
            assert!(sign == 1 || sign == u64::MAX);
            let difference = zero.values[word][key].wrapping_sub(one.values[word][key]);
            sign.wrapping_mul((bit(key) * values[key][word]).wrapping_sub(difference))
        };
        let words = [0, 1].map(|word| (0..thresholds.len()).map(|key| value(key, word)).collect());
        for trees in trees.iter_mut().filter(|_| !last) {
            trees.correct(&nodes).unwrap();
        }
        levels.push(Level { nodes, values: words });
    }
    if with_tail {
        let [zero, one] = trees.each_ref().map(Growth::finish_tail);
        let corrections = |key: usize| {
            std::array::from_fn(|point| {
                let sign = zero.controls[key].wrapping_sub(one.controls[key]) as u16;
                let difference = zero.values[key][point].wrapping_sub(one.values[key][point]);
                let below = u64::from((point as u64) < thresholds[key] % POINTS as u64);
                sign.wrapping_mul(((below * values[key][0]) as u16).wrapping_sub(difference))
            })
        };
        tail = Some(Tail((0..thresholds.len()).map(corrections).collect()));
    }
    let [zero, one] = roots;
    [(zero, false), (one, true)]
        .map(|(root, second)| Keys::new(root, first, second, levels.clone(), tail.clone()).unwrap())
}

/// What both parties' parts add up to at a point of each key's.
fn compared(keys: &[Keys; 2], points: &[u64]) -> Vec<[u64; WORDS]> {
    let [zero, one] = keys.each_ref().map(|keys| keys.evaluate(&hash(), points).unwrap());
    let sum = |word: usize, key: usize| zero[word][key].wrapping_add(one[word][key]);
    (0..points.len()).map(|key| [sum(0, key), sum(1, key)]).collect()
}

#[test]
fn all_thresholds_at_all_points() {
    for bits in 1..=6 {
        let size = 1_u64 << bits;
        let thresholds: Vec<u64> = (0..size).collect();
        let mut rng = rng(3);
        let values: Vec<[u64; WORDS]> = thresholds.iter().map(|_| [rng.next_u64(), rng.next_u64()]).collect();
        let keys = keys(bits, &thresholds, &values, 5, bits as u8);
        for point in 0..size {
            let got = compared(&keys, &vec![point; thresholds.len()]);
            let expected: Vec<[u64; WORDS]> =
                (0..size as usize).map(|a| if point < a as u64 { values[a] } else { [0; WORDS] }).collect();
            assert_eq!(got, expected, "{bits} {point}");
        }
    }
}

#[test]
fn tails_are_three_levels_in_one() {
    for bits in 3..=7 {
        let size = 1_u64 << bits;
        let thresholds: Vec<u64> = (0..size).collect();
        let values: Vec<[u64; WORDS]> = thresholds.iter().map(|a| [a * 77 + 1, 0]).collect();
        let keys = keys_with(bits, &thresholds, &values, 5, bits as u8, true);
        assert_eq!((keys[0].bits(), keys[0].count()), (bits, size as usize));
        for point in 0..size {
            let got = compared(&keys, &vec![point; thresholds.len()]);
            for (a, got) in got.into_iter().enumerate() {
                let expected = if point < a as u64 { values[a][0] as u16 } else { 0 };
                assert_eq!(got[0] as u16, expected, "{bits} {point} {a}");
            }
        }
    }
}

#[test]
fn many_keys_on_wide_domains() {
    let (bits, count) = (12, 700);
    let mut rng = rng(4);
    let mut draw = |bits: u32| rng.next_u64() >> (64 - bits);
    let thresholds: Vec<u64> = (0..count).map(|_| draw(bits)).collect();
    let values: Vec<[u64; WORDS]> = (0..count).map(|_| [1, draw(30)]).collect();
    let keys = keys(bits, &thresholds, &values, 1 << 40, 9);
    assert_eq!((keys[0].count(), keys[0].bits()), (count, bits));
    for round in 0..4 {
        let points: Vec<u64> = thresholds
            .iter()
            .map(|a| match round {
                0 => draw(bits),
                1 => *a,
                2 => a.saturating_sub(1),
                _ => (a + 1).min((1 << bits) - 1),
            })
            .collect();
        for (key, got) in compared(&keys, &points).into_iter().enumerate() {
            let expected = if points[key] < thresholds[key] { values[key] } else { [0; WORDS] };
            assert_eq!(got, expected, "{round} {key}");
        }
    }
}

/// What is opened, and what a party's part of a comparison is, look alike whatever the threshold.
#[test]
fn corrections_and_parts_are_uniform() {
    const BUCKETS: usize = 64;
    let count = 6400;
    for (threshold, value) in [(0, 0), (5, 1), (15, u64::MAX)] {
        let mut opened = vec![0_u64; BUCKETS];
        let mut parts = vec![0_u64; BUCKETS];
        let bits = 4;
        let keys = keys(bits, &vec![threshold; count], &vec![[value; WORDS]; count], 0, 7);
        for point in [0, 9] {
            let [low, _] = keys[0].evaluate(&hash(), &vec![point; count]).unwrap();
            low.iter().for_each(|part| parts[*part as usize % BUCKETS] += 1);
        }
        for level in keys[0].levels() {
            level.nodes.iter().for_each(|node| opened[node.0 as usize % BUCKETS] += 1);
            level.values[1].iter().for_each(|value| opened[(value >> 50) as usize % BUCKETS] += 1);
        }
        for counts in [opened, parts] {
            assert!(uniform_chi_square(&counts) < chi_square_limit(BUCKETS - 1), "{threshold}: {counts:?}");
        }
    }
}

/// Numbers that two keys share would show that their thresholds are alike: the same root then grows the same tree.
#[test]
fn keys_of_one_number_are_alike() {
    let one = keys(4, &[6], &[[1, 0]], 3, 1);
    let [same, other] = [3, 4].map(|first| keys(4, &[6], &[[1, 0]], first, 1));
    let nodes = |keys: &[Keys; 2]| keys[0].levels()[0].nodes[0];
    assert!(nodes(&one) == nodes(&same) && nodes(&one) != nodes(&other));
}

#[test]
fn shapes_that_do_not_fit_are_refused() {
    let level = |nodes: usize, words: [usize; WORDS]| Level {
        nodes: vec![Block::ZERO; nodes],
        values: words.map(|count| vec![0; count]),
    };
    let accepted = |levels: Vec<Level>| Keys::new(Block::ZERO, 0, false, levels, None).is_ok();
    let ended =
        |count: usize, words: [usize; WORDS]| [vec![level(3, words); count], vec![level(0, words)]].concat();
    assert!(accepted(ended(15, [3, 0])) && accepted(vec![level(0, [3, 3])]));
    assert!(!accepted(vec![]) && !accepted(ended(16, [3, 0])) && !accepted(vec![level(3, [3, 3])]));
    assert!(!accepted(vec![level(3, [3, 3]), level(0, [3, 0])]) && !accepted(ended(1, [2, 0])));
    assert!(!accepted(vec![level(2, [3, 0]), level(0, [3, 0])]));
    let keys = Keys::new(Block::ZERO, 0, false, ended(2, [3, 0]), None).unwrap();
    assert!(keys.evaluate(&hash(), &[0; 2]).is_err());
    let hash = hash();
    let mut growth = Growth::new(&hash, Block::ZERO, 2, 0);
    assert!(growth.correct(&[Block::ZERO; 2]).is_err());
    growth.grow().unwrap();
    assert!(growth.correct(&[Block::ZERO; 3]).is_err());
    (1..15).for_each(|_| assert!(growth.grow().is_ok()));
    assert!(growth.grow().is_err());
}

#[test]
fn trees_that_begin_again_are_new_ones() {
    let (hash, root) = (hash(), Block(0x1234_5678_9abc));
    let sums = |growth: &mut Growth| {
        let first = growth.grow().unwrap();
        growth.correct(&vec![Block(99); first.hashes.len()]).unwrap();
        let last = growth.finish();
        (first.hashes.clone(), last.values.clone(), last.controls.clone())
    };
    let mut again = Growth::new(&hash, root, 700, 3);
    sums(&mut again);
    for (keys, first) in [(300, 1000), (700, 5), (1, 0)] {
        again.restart(keys, first);
        assert!(sums(&mut again) == sums(&mut Growth::new(&hash, root, keys, first)), "{keys}");
    }
}
