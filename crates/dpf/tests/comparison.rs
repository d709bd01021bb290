//! Keys that two parties grow together are shares of comparisons, for every point and every threshold.

use lanner_dpf::{Corrections, GROUP, Growth, Keys, MAX_BITS, SECURITY_BITS, Salts, Shape, WORDS};
use lanner_primitives::{Block, Prg, Seed};
use lanner_testkit::{chi_square_limit, uniform_chi_square};
use rand_core::Rng;
use zeroize::Zeroizing;

fn rng(seed: u8) -> Prg {
    Prg::new(Seed::from_bytes([seed; 16]))
}

fn salts() -> Salts {
    Salts::new(Block(0x1357_9bdf), 1)
}

/// How keys are made that are not what they should be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Broken {
    Not,
    /// Both parties' shares of the highest bit are alike where the threshold is in the left half.
    Begins,
    /// The correction of a level is that of the other bit.
    Turns,
    /// Signs are left out.
    Signs,
    /// The tail's values are those of the next point.
    Tail,
}

/// Both parties' keys for thresholds and values, as one who sees both makes them: what protocols do on shares.
fn keys(shape: Shape, thresholds: &[u64], values: &[[u64; WORDS]], seed: u8) -> [Keys; 2] {
    keys_of(shape, thresholds, values, seed, Broken::Not)
}

fn keys_of(shape: Shape, thresholds: &[u64], values: &[[u64; WORDS]], seed: u8, broken: Broken) -> [Keys; 2] {
    let (salts, rng, count) = (salts(), &mut rng(seed), thresholds.len());
    let roots = [Block::random(rng).with_lsb(true), Block::random(rng).with_lsb(false)];
    let delta = roots[0] ^ roots[1];
    let bit = |key: usize, depth: usize| thresholds[key] >> (shape.bits() as usize - depth) & 1;
    let of_zero: Vec<Block> = (0..count).map(|_| Block::random(rng)).collect();
    let of_one = |key: usize| {
        let is_right = bit(key, 1) == 1 && broken != Broken::Begins;
        of_zero[key] ^ (Block::mask(is_right) & delta)
    };
    let shares = [of_zero.clone(), (0..count).map(of_one).collect()].map(Zeroizing::new);
    let mut trees = roots.map(|root| Growth::new(shape, &salts, root));
    for (trees, shares) in trees.iter_mut().zip(&shares) {
        trees.restart(0..count, shares.iter().copied()).unwrap();
    }
    let mut corrections = Corrections::default();
    corrections.values.resize(shape.words() * shape.numbers(), Vec::new());
    for depth in 1..=shape.depth() {
        let [zero, one] = trees.each_mut().map(|trees| trees.sums().unwrap());
        if let Some(stop) = shape.stop(depth) {
            let low = |key: usize| thresholds[key] as usize & shape.points();
            for (word, corrected) in corrections.values.chunks_mut(shape.numbers()).enumerate() {
                let number = |key: usize, point: Option<usize>| {
                    let (block, place) = shape.place(word, point);
                    let [a, b] = [&zero, &one].map(|sums| shape.number(sums.values[block][key], place));
                    let sign = zero.controls[key].wrapping_sub(one.controls[key]);
                    assert!(broken != Broken::Not || sign == 1 || sign == u64::MAX);
                    let point = point.map(|point| point + usize::from(broken == Broken::Tail));
                    let due = point.map_or(1, |point| u64::from(point < low(key)));
                    let correction = (due * values[key][word]).wrapping_sub(a.wrapping_sub(b));
                    if broken == Broken::Signs { correction } else { sign.wrapping_mul(correction) }
                };
                corrected[stop] = (0..count).map(|key| number(key, None)).collect();
                for point in (0..shape.points()).filter(|_| depth == shape.depth()) {
                    corrected[shape.stops() + point] =
                        (0..count).map(|key| number(key, Some(point))).collect();
                }
            }
        }
        if depth < shape.depth() {
            let node = |key: usize| {
                let is_left = (bit(key, depth + 1) == 0) != (broken == Broken::Turns);
                zero.hashes[key] ^ one.hashes[key] ^ (Block::mask(is_left) & delta)
            };
            let nodes: Vec<Block> = (0..count).map(node).collect();
            for trees in &mut trees {
                trees.correct(nodes.clone()).unwrap();
            }
            corrections.nodes.push(nodes);
        }
    }
    let [zero, one] = shares;
    [(roots[0], zero, false), (roots[1], one, true)].map(|(root, shares, is_second)| {
        Keys::new(shape, root, shares, is_second, corrections.clone()).unwrap()
    })
}

/// What both parties' parts add up to at a point of each key's, modulo so many bits.
fn compared(keys: &[Keys; 2], points: &[u64], ring: u32) -> Vec<[u64; WORDS]> {
    let [zero, one] = keys.each_ref().map(|keys| keys.evaluate(&salts(), points).unwrap());
    let sum =
        |word: usize, key: usize| zero[word][key].wrapping_add(one[word][key]) & (u64::MAX >> (64 - ring));
    (0..points.len()).map(|key| [sum(0, key), sum(1, key)]).collect()
}

/// Rings of numbers of every width, and one and two words.
fn shapes(bits: u32) -> impl Iterator<Item = (Shape, u32)> {
    let all = [16, 9, 17, 26, 32, 33, 64].into_iter().flat_map(|ring| [(1, ring), (2, ring)]);
    all.map(move |(words, ring)| (Shape::new(bits, words, ring).unwrap(), ring))
}

fn values(shape: Shape, ring: u32, count: usize, rng: &mut Prg) -> Vec<[u64; WORDS]> {
    let draw = |rng: &mut Prg| rng.next_u64() >> (64 - ring);
    (0..count).map(|_| [draw(rng), if shape.words() == 2 { draw(rng) } else { 0 }]).collect()
}

#[test]
fn all_thresholds_at_all_points() {
    for bits in 1..=7 {
        for (shape, ring) in shapes(bits) {
            let size = 1_u64 << bits;
            let thresholds: Vec<u64> = (0..size).collect();
            let values = values(shape, ring, thresholds.len(), &mut rng(3));
            let keys = keys(shape, &thresholds, &values, bits as u8);
            for point in 0..size {
                let got = compared(&keys, &vec![point; thresholds.len()], ring);
                let below = |a: usize| if point < a as u64 { values[a] } else { [0; WORDS] };
                let expected: Vec<[u64; WORDS]> = (0..size as usize).map(below).collect();
                assert_eq!(got, expected, "{bits} {shape:?} {point}");
            }
        }
    }
}

#[test]
fn many_keys_on_wide_domains() {
    for (bits, words, ring, count) in [(12, 2, 24, 130), (16, 1, 9, 70), (13, 2, 62, 65), (16, 2, 30, 3)] {
        let shape = Shape::new(bits, words, ring).unwrap();
        let mut rng = rng(4);
        let values = values(shape, ring, count, &mut rng);
        let mut draw = || rng.next_u64() >> (64 - bits);
        let thresholds: Vec<u64> = (0..count).map(|_| draw()).collect();
        let keys = keys(shape, &thresholds, &values, 9);
        assert_eq!(keys[0].count(), count);
        for round in 0..4 {
            let point = |a: &u64| match round {
                0 => draw(),
                1 => *a,
                2 => a.saturating_sub(1),
                _ => (a + 1).min((1 << bits) - 1),
            };
            let points: Vec<u64> = thresholds.iter().map(point).collect();
            for (key, got) in compared(&keys, &points, ring).into_iter().enumerate() {
                let expected = if points[key] < thresholds[key] { values[key] } else { [0; WORDS] };
                assert_eq!(got, expected, "{bits} {round} {key}");
            }
        }
    }
}

/// The tests above would find keys that are made wrongly in any one place.
#[test]
fn broken_keys_would_be_found() {
    let shape = Shape::new(7, 2, 30).unwrap();
    let thresholds: Vec<u64> = (0..128).collect();
    let values = values(shape, 30, 128, &mut rng(3));
    let is_right = |broken: Broken| {
        let keys = keys_of(shape, &thresholds, &values, 5, broken);
        (0..128).all(|point| {
            let got = compared(&keys, &[point; 128], 30);
            (0..128).all(|a| got[a] == if point < a as u64 { values[a] } else { [0; WORDS] })
        })
    };
    assert!(is_right(Broken::Not));
    for broken in [Broken::Begins, Broken::Turns, Broken::Signs, Broken::Tail] {
        assert!(!is_right(broken));
    }
}

/// What is opened, and what a party's part of a comparison is, look alike whatever the threshold.
#[test]
fn corrections_and_parts_are_uniform() {
    const BUCKETS: usize = 64;
    let count = 6400;
    let shape = Shape::new(6, 2, 28).unwrap();
    for (threshold, value) in [(0, 0), (5, 1), (40, 77), (63, (1 << 28) - 1)] {
        let keys = keys(shape, &vec![threshold; count], &vec![[value; WORDS]; count], 7);
        let uniform = |numbers: &mut dyn Iterator<Item = u64>| {
            let mut counts = vec![0_u64; BUCKETS];
            numbers.for_each(|number| counts[number as usize % BUCKETS] += 1);
            assert!(uniform_chi_square(&counts) < chi_square_limit(BUCKETS - 1), "{threshold}: {counts:?}");
        };
        for party in &keys {
            for point in [0, 9, 62] {
                let [low, high] = party.evaluate(&salts(), &vec![point; count]).unwrap();
                uniform(&mut low.iter().copied());
                uniform(&mut high.iter().map(|part| part >> 22));
            }
        }
        for nodes in &keys[0].corrections().nodes {
            uniform(&mut nodes.iter().map(|node| node.0 as u64 >> 1));
            uniform(&mut nodes.iter().map(|node| (node.0 >> 120) as u64));
        }
        for values in &keys[0].corrections().values {
            uniform(&mut values.iter().copied());
            uniform(&mut values.iter().map(|value| value >> 22));
        }
    }
}

/// The low bit of a correction is the sum of both children's, which tells nothing: it differs from threshold to threshold as from key to key.
#[test]
fn low_bits_of_corrections_are_uniform() {
    let (shape, count) = (Shape::new(6, 1, 16).unwrap(), 4000);
    for threshold in [0, 21, 63] {
        let keys = keys(shape, &vec![threshold; count], &vec![[1, 0]; count], 8);
        for nodes in &keys[0].corrections().nodes {
            let ones = nodes.iter().filter(|node| node.lsb()).count() as u64;
            assert!(uniform_chi_square(&[ones, count as u64 - ones]) < chi_square_limit(1), "{threshold}");
        }
    }
}

/// Groups have keys of the cipher of their own: with one for all, or the same in two comparisons, a guess would be tried at more hashes at once.
#[test]
fn groups_and_comparisons_have_salts_of_their_own() {
    let (shape, root, salt) = (Shape::new(9, 2, 24).unwrap(), Block(0x1234_5679), Block(99));
    let sums = |comparison: u32, first: usize| {
        let salts = Salts::new(salt, comparison);
        let mut trees = Growth::new(shape, &salts, root);
        trees.restart(first..first + 2 * GROUP, [Block(55); 2 * GROUP].into_iter()).unwrap();
        let sums = trees.sums().unwrap();
        [0, GROUP - 1, GROUP, 2 * GROUP - 1].map(|key| sums.hashes[key])
    };
    let [zero, other, later] = [sums(0, 0), sums(1, 0), sums(0, GROUP)];
    assert!(zero[0] == zero[1] && zero[2] == zero[3] && zero[0] != zero[2]);
    assert!(later[0] == zero[2] && later[2] != zero[2]);
    assert!(other.iter().all(|hash| !zero.contains(hash)));
}

/// One evaluation of the cipher tries one guess of Delta, of which 126 bits are unknown, at all hashes under its key.
#[test]
fn strength_follows_from_the_hashes_under_one_key() {
    let all = (1..=MAX_BITS).flat_map(shapes).map(|(shape, _)| shape.hashes());
    let most = (GROUP * all.max().unwrap()).next_power_of_two();
    assert_eq!(126 - most.ilog2(), SECURITY_BITS);
}

#[test]
fn shapes_that_do_not_fit_are_refused() {
    for (bits, words, ring) in [(0, 1, 8), (17, 1, 8), (4, 0, 8), (4, 3, 8), (4, 1, 0), (4, 1, 65)] {
        assert!(Shape::new(bits, words, ring).is_err(), "{bits} {words} {ring}");
    }
    let (shape, salts) = (Shape::new(6, 2, 20).unwrap(), salts());
    let accepted = |shares: usize, levels: usize, rows: usize, keys: usize| {
        let (nodes, values) = (vec![vec![Block::ZERO; keys]; levels], vec![vec![0; keys]; rows]);
        let shares = Zeroizing::new(vec![Block::ZERO; shares]);
        Keys::new(shape, Block::ZERO, shares, false, Corrections { nodes, values }).is_ok()
    };
    let (levels, rows) = (shape.corrected(), 2 * shape.numbers());
    assert!(accepted(3, levels, rows, 3) && accepted(0, levels, rows, 0));
    assert!(!accepted(2, levels, rows, 3) && !accepted(3, levels - 1, rows, 3));
    assert!(!accepted(3, levels + 1, rows, 3) && !accepted(3, levels, rows - 1, 3));
    let keys = keys(shape, &[1, 2, 3], &[[1, 1]; 3], 1);
    assert!(keys[0].evaluate(&salts, &[0; 2]).is_err());
    let mut growth = Growth::new(shape, &salts, Block::ZERO);
    assert!(growth.restart(1..3, [Block::ZERO; 2].into_iter()).is_err());
    assert!(growth.restart(0..2, [Block::ZERO; 3].into_iter()).is_err());
    growth.restart(0..2, [Block::ZERO; 2].into_iter()).unwrap();
    assert!(growth.correct(vec![Block::ZERO; 2]).is_err());
    for _ in 0..shape.corrected() {
        growth.sums().unwrap();
        assert!(growth.sums().is_err() && growth.correct(vec![Block::ZERO; 3]).is_err());
        growth.correct(vec![Block::ZERO; 2]).unwrap();
    }
    growth.sums().unwrap();
    assert!(growth.correct(vec![Block::ZERO; 2]).is_err());
}

#[test]
fn trees_that_begin_again_are_new_ones() {
    let (shape, salts, root) = (Shape::new(9, 2, 40).unwrap(), salts(), Block(0x1234_5678_9abc));
    let sums = |growth: &mut Growth, keys: std::ops::Range<usize>| {
        growth.restart(keys.clone(), keys.clone().map(|key| Block(key as u128 * 77))).unwrap();
        let mut all = Vec::new();
        for _ in 0..shape.corrected() {
            let sums = growth.sums().unwrap();
            all.push((sums.hashes.clone(), sums.values.clone(), sums.controls.clone()));
            growth.correct(vec![Block(99); keys.len()]).unwrap();
        }
        let last = growth.sums().unwrap();
        all.push((last.hashes.clone(), last.values.clone(), last.controls.clone()));
        all
    };
    let mut again = Growth::new(shape, &salts, root);
    sums(&mut again, 0..130);
    for keys in [64..100, 0..200, 128..129] {
        assert!(
            sums(&mut again, keys.clone()) == sums(&mut Growth::new(shape, &salts, root), keys.clone()),
            "{keys:?}"
        );
    }
}
