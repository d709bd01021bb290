//! FALCON's listings, repaired, at the edges of `Z_p`, and their AND gates beside the paper's count.
#![allow(clippy::unwrap_used)]

mod support;

use lanner_gc::library::{
    MaskedCircuit, ShareRing, falcon_max_pool, falcon_max_pool_relu, falcon_prepare, falcon_relu,
    max_pool_relu_rescale, max_pool_rescale, relu_rescale, rescale,
};
use lanner_primitives::Prg;
use rand_core::Rng;
use support::{check, clear, prg};

/// The rings of compiled networks, and small odd moduli.
const PRIMES: [u64; 12] = [
    5,
    17,
    251,
    114_689,
    1_032_193,
    4_079_617,
    8_273_921,
    16_760_833,
    33_538_049,
    268_369_921,
    1_073_692_673,
    137_438_822_401,
];

/// The elements at which a listing may go wrong; p is the element 0 again.
fn edges(p: u64) -> [u64; 6] {
    [0, 1, (p - 1) / 2, p.div_ceil(2), p - 1, p]
}

/// The signed value of a residue.
fn signed(x: u64, p: u64) -> i64 {
    let x = x % p;
    if x > (p - 1) / 2 { x as i64 - p as i64 } else { x as i64 }
}

/// Outputs for sums `x` (up to p inclusive) whose garbler's shares are `s`.
fn run(masked: &MaskedCircuit, p: u64, x: &[u64], s: &[u64]) -> Vec<u64> {
    // A sum of p is reached as such: both shares are elements that add up to p, not to 0.
    let c: Vec<_> = x.iter().zip(s).map(|(x, s)| (x % p + p - s) % p).collect();
    let (inputs, known) = (masked.evaluator_bits(&c).unwrap(), masked.garbler_bits(s).unwrap());
    masked.output_words(&clear(masked.circuit(), x.len() / masked.values(), &inputs, &known)).unwrap()
}

fn shares(p: u64, prg: &mut Prg) -> Vec<u64> {
    let mut shares = vec![0, 1, (p - 1) / 2, p.div_ceil(2), p - 2, p - 1];
    shares.extend((0..6).map(|_| prg.next_u64() % p));
    shares
}

/// Checks a circuit of one value on every edge under every share.
fn check_edges(masked: &MaskedCircuit, p: u64, twin: impl Fn(i64) -> i64) {
    let shares = shares(p, &mut prg(1));
    for x in edges(p) {
        let got = run(masked, p, &vec![x; shares.len()], &shares);
        assert!(got.iter().all(|y| *y as i64 == twin(signed(x, p))), "p {p} x {x}: {got:?}");
    }
}

#[test]
fn preparation_adds_shares_modulo_p() {
    for p in PRIMES {
        let (masked, b) = (falcon_prepare(p).unwrap(), ShareRing::Prime(p).bits() as usize);
        assert_eq!(masked.circuit().and_count(), 2 * b - 1);
        check_edges(&masked, p, |x| x + (p / 2) as i64);
    }
}

#[test]
fn relu_keeps_the_lower_half_of_the_residues() {
    for p in PRIMES {
        let (masked, b) = (falcon_relu(p).unwrap(), ShareRing::Prime(p).bits() as usize);
        let v = ((p - 1) / 2).trailing_zeros() as usize;
        assert_eq!(masked.circuit().and_count(), (2 * b - 1) + (2 * b - 2 - v), "{p}");
        assert_eq!(masked.circuit().outputs(), b - 1);
        check_edges(&masked, p, |x| x.max(0));
    }
}

#[test]
fn pools_take_the_largest_signed_value() {
    let mut prg = prg(2);
    for p in PRIMES {
        for k in [1, 2, 4, 9] {
            let (b, v) = (ShareRing::Prime(p).bits() as usize, ((p - 1) / 2).trailing_zeros() as usize);
            let (pool, both) = (falcon_max_pool(p, k).unwrap(), falcon_max_pool_relu(p, k).unwrap());
            let ands = k * (2 * b - 1) + 2 * (k - 1) * b;
            assert_eq!(pool.circuit().and_count(), ands);
            assert_eq!(both.circuit().and_count(), ands + 2 * b - 2 - v);
            let (edges, shares) = (edges(p), shares(p, &mut prg));
            for _ in 0..60 {
                let mut pick = |from: &[u64]| from[prg.next_u64() as usize % from.len()];
                let x: Vec<_> = (0..k).map(|_| pick(&edges)).collect();
                let s: Vec<_> = (0..k).map(|_| pick(&shares)).collect();
                let largest = x.iter().map(|x| signed(*x, p)).max().unwrap();
                assert_eq!(run(&pool, p, &x, &s), [(largest + (p / 2) as i64) as u64], "p {p} {x:?} {s:?}");
                assert_eq!(run(&both, p, &x, &s), [largest.max(0) as u64], "p {p} {x:?} {s:?}");
            }
        }
    }
    assert!(falcon_max_pool(5, 0).is_err() && falcon_max_pool_relu(5, 0).is_err());
    assert!(falcon_prepare(16).is_err());
}

#[test]
fn pools_of_every_pair_of_edges_under_every_share() {
    for p in PRIMES {
        let (pool, both) = (falcon_max_pool(p, 2).unwrap(), falcon_max_pool_relu(p, 2).unwrap());
        let shares = shares(p, &mut prg(4));
        let pairs: Vec<_> = edges(p).into_iter().flat_map(|x| edges(p).map(|y| [x, y])).collect();
        for pair in pairs {
            let largest = signed(pair[0], p).max(signed(pair[1], p));
            let x = pair.repeat(shares.len());
            let s: Vec<_> = shares.iter().zip(shares.iter().rev()).flat_map(|(a, b)| [*a, *b]).collect();
            let pooled = run(&pool, p, &x, &s);
            assert!(
                pooled.iter().all(|y| *y as i64 == largest + (p / 2) as i64),
                "p {p} {pair:?}: {pooled:?}"
            );
            let kept = run(&both, p, &x, &s);
            assert!(kept.iter().all(|y| *y as i64 == largest.max(0)), "p {p} {pair:?}: {kept:?}");
        }
    }
}

#[test]
fn small_moduli_exhaustively() {
    for p in [5, 7, 11, 13] {
        let (relu, pair) = (falcon_relu(p).unwrap(), falcon_max_pool_relu(p, 2).unwrap());
        for s in 0..p {
            for x in 0..p {
                assert_eq!(run(&relu, p, &[x], &[s]), [signed(x, p).max(0) as u64]);
                for y in 0..p {
                    let largest = signed(x, p).max(signed(y, p)).max(0) as u64;
                    assert_eq!(run(&pair, p, &[x, y], &[s, p - 1 - s]), [largest]);
                }
            }
        }
    }
}

#[test]
fn the_largest_of_three_and_minus_one_is_three() {
    let p = 1_032_193;
    assert_eq!(run(&falcon_max_pool_relu(p, 2).unwrap(), p, &[3, p - 1], &[5, 1_000_000]), [3]);
}

/// The paper counts gates on words of lanes: for a region of k values 2k instead of 4k - 2, beside preparation. A word's gate is
/// an AND for each bit. The circuits that rescale take fewer in all.
#[test]
fn pooling_first_takes_two_gates_for_each_value_as_the_paper_counts() {
    let p = 1_032_193;
    let b = ShareRing::Prime(p).bits() as usize;
    // What of a comparison with (p-1)/2 is free, and the bit that the sign takes.
    let saved = ((p - 1) / 2).trailing_zeros() as usize + 2;
    for k in [4, 9] {
        let preparation = k * falcon_prepare(p).unwrap().circuit().and_count();
        let both = falcon_max_pool_relu(p, k).unwrap().circuit().and_count() - preparation;
        let relu = falcon_relu(p).unwrap().circuit().and_count() - preparation / k;
        let pool = falcon_max_pool(p, k).unwrap().circuit().and_count() - preparation;
        assert_eq!(both, 2 * k * b - saved);
        assert_eq!(k * relu + pool, (4 * k - 2) * b - k * saved);
        let rescaling = max_pool_relu_rescale(ShareRing::Prime(p), k, 7).unwrap();
        assert!(rescaling.circuit().and_count() < both + preparation);
    }
    // The table of docs/protocols/falcon-nonlinear.md: the listings, then the circuits that rescale by 7 bits.
    let ring = ShareRing::Prime(p);
    let ands = |masked: Result<MaskedCircuit, _>| masked.unwrap().circuit().and_count();
    let (prepare, relu) = (ands(falcon_prepare(p)), ands(falcon_relu(p)));
    let (pool, both) = (ands(falcon_max_pool(p, 4)), ands(falcon_max_pool_relu(p, 4)));
    assert_eq!((prepare, relu - prepare, pool - 4 * prepare, both - 4 * prepare), (39, 25, 120, 145));
    assert_eq!(4 * (relu - prepare) + pool - 4 * prepare, 220);
    let (prepare, relu) = (ands(rescale(ring, 7)), ands(relu_rescale(ring, 7)));
    let (pool, both) = (ands(max_pool_rescale(ring, 4, 7)), ands(max_pool_relu_rescale(ring, 4, 7)));
    assert_eq!((prepare, relu - prepare, pool - 4 * prepare, both - 4 * prepare), (32, 12, 78, 90));
    assert_eq!(4 * (relu - prepare) + pool - 4 * prepare, 126);
}

#[test]
fn garbled_listings_equal_their_clear_evaluation() {
    check(falcon_max_pool_relu(1_032_193, 4).unwrap().circuit(), 37, 3);
    check(falcon_prepare(114_689).unwrap().circuit(), 5, 4);
}
