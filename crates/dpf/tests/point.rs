//! Point functions whose keys two parties grow together are shares of unit vectors, for every point.

use lanner_dpf::{GROUP, MAX_BITS, POINT_WORDS, PointGrowth, PointKeys, PointShape, SECURITY_BITS, Salts};
use lanner_primitives::{Block, Prg, Seed};
use lanner_testkit::{chi_square_limit, uniform_chi_square};

/// Both parties' keys for points, as one who sees both makes them: what protocols do on shares.
fn keys(shape: PointShape, points: &[u64], salt: Block, seed: u8) -> [PointKeys; 2] {
    let (salts, rng) = (Salts::new(salt, 1), &mut Prg::new(Seed::from_bytes([seed; 16])));
    let roots = [Block::random(rng).with_lsb(true), Block::random(rng).with_lsb(false)];
    let delta = roots[0] ^ roots[1];
    let mut trees = roots.map(|root| PointGrowth::new(shape, &salts, root, 0..points.len()).unwrap());
    let mut levels = Vec::new();
    for level in 0..shape.levels() {
        let [zero, one] = trees.each_mut().map(PointGrowth::grow);
        let is_left = |point: u64| point >> (shape.bits() - 1 - level as u32) & 1 == 0;
        let both = zero.iter().zip(one).zip(points);
        let nodes: Vec<Block> =
            both.map(|((zero, one), point)| *zero ^ one ^ (Block::mask(is_left(*point)) & delta)).collect();
        for trees in &mut trees {
            trees.correct(&nodes).unwrap();
        }
        levels.push(nodes);
    }
    let [zero, one] = trees.each_ref().map(PointGrowth::finish);
    let words = |key: usize| -> [u64; POINT_WORDS] {
        let sign = zero.controls[key].wrapping_sub(one.controls[key]);
        assert!(sign == 1 || sign == u64::MAX);
        std::array::from_fn(|word| {
            let is_there = u64::from(points[key] as usize % shape.words() == word);
            let difference = zero.values[key][word].wrapping_sub(one.values[key][word]);
            sign.wrapping_mul(is_there.wrapping_sub(difference))
        })
    };
    let words: Vec<_> = (0..points.len()).map(words).collect();
    [(roots[0], false), (roots[1], true)]
        .map(|(root, second)| PointKeys::new(shape, root, second, levels.clone(), words.clone()).unwrap())
}

fn expanded(keys: &PointKeys, salt: Block) -> Vec<Vec<u64>> {
    let mut all = vec![Vec::new(); keys.count()];
    keys.expand(&Salts::new(salt, 1), &mut all, |_, shares, item| *item = shares.to_vec()).unwrap();
    all
}

#[test]
fn all_points_of_all_domains() {
    for (bits, to) in [(3, 20), (3, 32), (3, 33), (5, 2), (8, 24), (8, 62), (10, 32)] {
        let shape = PointShape::new(bits, to).unwrap();
        assert_eq!(shape.levels() as u32 + shape.below(), bits);
        // More keys than one group has, the last of which is not full.
        let points: Vec<u64> = (0..1 << bits).chain([0; 70]).collect();
        let salt = Block(u128::from(bits));
        let [zero, one] = keys(shape, &points, salt, to as u8).each_ref().map(|keys| expanded(keys, salt));
        for ((zero, one), point) in zero.iter().zip(&one).zip(&points) {
            let sums =
                zero.iter().zip(one).map(|(zero, one)| zero.wrapping_add(*one) & (u64::MAX >> (64 - to)));
            assert!(sums.eq((0..1 << bits).map(|x| u64::from(x == *point))), "{bits} {to} {point}");
        }
    }
}

/// What is opened, and what a party's shares are, look alike whatever the point.
#[test]
fn corrections_and_shares_are_uniform() {
    const BUCKETS: usize = 64;
    let (shape, count) = (PointShape::new(4, 24).unwrap(), 6400);
    for point in [0, 6, 15] {
        let (mut opened, mut shares) = (vec![0_u64; BUCKETS], vec![0_u64; BUCKETS]);
        let salt = Block(9);
        let keys = keys(shape, &vec![point; count], salt, 7);
        for of in expanded(&keys[0], salt) {
            for at in [0, 6, 15] {
                shares[of[at] as usize % BUCKETS] += 1;
            }
        }
        for node in keys[0].nodes().iter().flatten() {
            opened[node.0 as usize % BUCKETS] += 1;
        }
        for word in keys[0].words().iter().flatten() {
            opened[(word >> 18 & 63) as usize] += 1;
        }
        for counts in [opened, shares] {
            assert!(uniform_chi_square(&counts) < chi_square_limit(BUCKETS - 1), "{point}: {counts:?}");
        }
    }
}

#[test]
fn shapes_that_do_not_fit_are_refused() {
    for (bits, to) in [(2, 20), (17, 20), (8, 1), (8, 63)] {
        assert!(PointShape::new(bits, to).is_err(), "{bits} {to}");
    }
    let (shape, salts) = (PointShape::new(4, 24).unwrap(), Salts::new(Block(1), 1));
    assert!(PointGrowth::new(shape, &salts, Block::ZERO, 1..5).is_err());
    let mut trees = PointGrowth::new(shape, &salts, Block::ZERO, 64..70).unwrap();
    assert_eq!(trees.grow().len(), 6);
    assert!(trees.correct(&[Block::ZERO; 5]).is_err());
    let of = |levels: usize, nodes: usize, words: usize| {
        let nodes = vec![vec![Block::ZERO; nodes]; levels];
        PointKeys::new(shape, Block::ZERO, false, nodes, vec![[0; POINT_WORDS]; words])
    };
    assert!(of(2, 3, 3).is_ok() && of(1, 3, 3).is_err() && of(3, 3, 3).is_err() && of(2, 2, 3).is_err());
    assert!(of(2, 3, 3).unwrap().expand(&salts, &mut [0; 2], |_, _, _| ()).is_err());
}

/// Of all keys of a group each hashes its nodes on the way to its point, unknown to the other party, and the last one's words.
#[test]
fn strength_follows_from_the_hashes_under_one_key() {
    for (bits, to) in [(3, 20), (12, 24), (16, 33), (MAX_BITS, 62)] {
        let hashes = GROUP * (PointShape::new(bits, to).unwrap().levels() + 1);
        assert!(hashes.ilog2() < 126 - SECURITY_BITS, "{bits} {to}: {hashes}");
    }
}
