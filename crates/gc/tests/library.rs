//! The circuits of the library against their integer twins, and their numbers of AND gates.

use crate::support::{clear, garble, prg};
use lanner_gc::Backend;
use lanner_gc::library::{
    MaskedCircuit, Sharing, any_zero, argmax, argmax_with_max, leaky_relu_rescale, max_pool_relu_clip,
    max_pool_relu_rescale, max_pool_rescale, positive, relu_clip, relu_rescale, rescale, signed_bound, top_k,
};
use lanner_primitives::{Bits, Prg, Ring};
use rand_core::Rng;

const PRIMES: [(u64, u32); 9] = [
    (114_689, 17),
    (1_032_193, 20),
    (4_079_617, 22),
    (8_273_921, 23),
    (16_760_833, 24),
    (33_538_049, 25),
    (268_369_921, 28),
    (1_073_692_673, 30),
    (137_438_822_401, 37),
];

fn rings() -> Vec<Ring> {
    let primes = PRIMES.iter().map(|(p, _)| Ring::Prime(*p));
    primes.chain([5, 16, 20, 32, 64].map(Ring::Pow2)).collect()
}

fn rounded(x: i64, d: u32) -> i64 {
    let x = i128::from(x);
    (if d == 0 { x } else { (x + (1 << (d - 1))) >> d }) as i64
}

/// The element that stands for `x`.
fn element(ring: Ring, x: i64) -> u64 {
    match ring {
        Ring::Prime(p) => i128::from(x).rem_euclid(i128::from(p)) as u64,
        Ring::Pow2(_) => x as u64 & ring.largest(),
    }
}

/// The element minus another.
fn minus(ring: Ring, a: u64, b: u64) -> u64 {
    match ring {
        Ring::Prime(p) => ((u128::from(a) + u128::from(p) - u128::from(b)) % u128::from(p)) as u64,
        Ring::Pow2(_) => a.wrapping_sub(b) & ring.largest(),
    }
}

/// The low `bits` bits.
fn low(x: i64, bits: usize) -> u64 {
    x as u64 & (u64::MAX >> (64 - bits))
}

/// Values of both signs at the edges of the range and around zero, and random ones.
fn values(ring: Ring, d: u32, prg: &mut Prg) -> Vec<i64> {
    let bound = signed_bound(ring, d).unwrap().min(i64::MAX as u64) as i64;
    let step = 1_i64 << d;
    let near =
        [0, 1, 2, step / 2 - 1, step / 2, step / 2 + 1, step - 1, step, step + 1, bound - 2, bound - 1];
    let edges = near.into_iter().filter(|x| (0..bound).contains(x));
    let mut values: Vec<_> = edges.flat_map(|x| [x, -x]).collect();
    values.extend((0..40).map(|_| (prg.next_u64() >> 1) as i64 % bound));
    values.extend((0..40).map(|_| -((prg.next_u64() >> 1) as i64 % bound)));
    values
}

/// The garbler's shares: the edges of the ring and random elements.
fn shares(ring: Ring, prg: &mut Prg) -> Vec<u64> {
    let largest = ring.largest();
    let mut shares = vec![0, 1, largest / 2, largest / 2 + 1, largest - 1, largest];
    shares.extend(
        (0..10).map(|_| if largest == u64::MAX { prg.next_u64() } else { prg.next_u64() % (largest + 1) }),
    );
    shares
}

/// Evaluates in the clear: the output word of each instance for inputs `x` under the shares `s`.
fn run(masked: &MaskedCircuit, x: &[i64], s: &[u64]) -> Vec<u64> {
    let ring = masked.ring();
    let c: Vec<_> = x.iter().zip(s).map(|(x, s)| minus(ring, element(ring, *x), *s)).collect();
    let inputs = masked.evaluator_bits(&c).unwrap();
    let known = masked.garbler_bits(s).unwrap();
    let outputs = clear(masked.circuit(), x.len() / masked.values(), &inputs, &known);
    masked.output_words(&outputs).unwrap()
}

/// Checks a circuit over one value on every value under every share.
fn check_unary(masked: &MaskedCircuit, d: u32, twin: impl Fn(i64) -> u64) {
    let mut prg = prg(9);
    let ring = masked.ring();
    let shares = shares(ring, &mut prg);
    let pairs: Vec<_> =
        values(ring, d, &mut prg).into_iter().flat_map(|x| shares.iter().map(move |s| (x, *s))).collect();
    let (x, s): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
    for ((x, s), got) in x.iter().zip(&s).zip(run(masked, &x, &s)) {
        assert_eq!(got, twin(*x), "{ring:?} d {d} x {x} s {s}");
    }
}

/// Every residue under every share, in range or not: what comes out is a function of the residue but for `2^d` of them.
#[test]
fn outputs_depend_on_the_shares_nowhere_but_in_a_narrow_band() {
    for (p, d) in [(113, 0), (97, 0), (193, 0), (113, 1), (193, 3), (241, 3)] {
        let masked = rescale(Ring::Prime(p), d).unwrap();
        let top = 1_i64 << (masked.ring().bits() - 1);
        let every = (0..p).flat_map(|x| (0..p).map(move |s| (x as i64, s)));
        let (x, s): (Vec<_>, Vec<_>) = every.unzip();
        let outputs = run(&masked, &x, &s);
        let width = masked.circuit().outputs();
        for (residue, outputs) in (0..p as i64).zip(outputs.chunks(p as usize)) {
            let representative = if residue <= top { residue } else { residue - p as i64 };
            let near = (residue + rounded(1 << d, 1) - top).abs() <= 1 << d;
            let same = outputs.iter().all(|output| *output == low(rounded(representative, d), width));
            assert!(same || (near && d > 0), "{residue} mod {p} by {d} bits");
        }
        let vary =
            outputs.chunks(p as usize).filter(|outputs| outputs.iter().any(|output| *output != outputs[0]));
        assert!(vary.count() <= if d == 0 { 0 } else { 1 << d }, "{p} by {d} bits");
    }
}

/// Checks a circuit over k values on random regions and on regions of equal and extreme values.
fn check_regions(masked: &MaskedCircuit, d: u32, twin: impl Fn(&[i64]) -> u64) {
    let mut prg = prg(10);
    let (ring, k) = (masked.ring(), masked.values());
    let (values, shares) = (values(ring, d, &mut prg), shares(ring, &mut prg));
    let mut pick = |from: &[i64]| from[prg.next_u64() as usize % from.len()];
    let mut regions = Vec::new();
    for _ in 0..150 {
        regions.push((0..k).map(|_| pick(&values)).collect::<Vec<_>>());
        // Few distinct values make ties.
        let few: Vec<_> = (0..2).map(|_| pick(&values)).collect();
        regions.push((0..k).map(|_| pick(&few)).collect());
    }
    let x: Vec<i64> = regions.concat();
    let s: Vec<u64> =
        x.iter().map(|_| shares[pick(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]) as usize]).collect();
    for (region, got) in regions.iter().zip(run(masked, &x, &s)) {
        assert_eq!(got, twin(region), "{ring:?} d {d} region {region:?}");
    }
}

fn depths(ring: Ring) -> impl Iterator<Item = u32> {
    [0, 1, 2, 7, 12].into_iter().filter(move |d| signed_bound(ring, *d).is_ok())
}

/// ANDs of adding the shares: all of `rescale`.
fn sum_ands(ring: Ring, d: u32) -> usize {
    let b = ring.bits() as usize;
    match ring {
        Ring::Prime(p) => 2 * b - 1 - d.min((p - 1).trailing_zeros()) as usize,
        Ring::Pow2(_) => b - 1,
    }
}

#[test]
fn primes_have_the_stated_bits() {
    assert!(PRIMES.iter().all(|(p, bits)| Ring::Prime(*p).bits() == *bits));
}

#[test]
fn rescale_is_rounding_shift() {
    for ring in rings() {
        for d in depths(ring) {
            let masked = rescale(ring, d).unwrap();
            assert_eq!(masked.circuit().and_count(), sum_ands(ring, d));
            let bits = masked.circuit().outputs();
            assert_eq!(bits, (ring.bits() - d) as usize);
            check_unary(&masked, d, |x| low(rounded(x, d), bits));
        }
    }
}

#[test]
fn relu_rescale_is_rounded_positive_part() {
    for ring in rings() {
        for d in depths(ring) {
            let masked = relu_rescale(ring, d).unwrap();
            let magnitude = (ring.bits() - 1 - d) as usize;
            assert_eq!(masked.circuit().and_count(), sum_ands(ring, d) + magnitude);
            assert_eq!(masked.circuit().outputs(), magnitude);
            check_unary(&masked, d, |x| rounded(x.max(0), d) as u64);
        }
    }
}

#[test]
fn relu_of_twenty_bits_by_seven_takes_forty_four_ands() {
    assert_eq!(relu_rescale(Ring::Prime(1_032_193), 7).unwrap().circuit().and_count(), 44);
}

#[test]
fn relu_clip_is_minimum_with_the_cap() {
    for ring in rings() {
        for d in depths(ring) {
            let magnitude = ring.bits() - 1 - d;
            let most = (1_u64 << magnitude) - 1;
            for cap in [
                1,
                2,
                6,
                7,
                96,
                100,
                127,
                128,
                most / 2,
                most / 2 + 1,
                most.saturating_sub(1),
                most,
                most + 1,
            ] {
                if cap == 0 {
                    continue;
                }
                let masked = relu_clip(ring, d, cap).unwrap();
                let (width, ones) = ((64 - cap.leading_zeros()) as usize, cap.trailing_ones() as usize);
                let clip = match (d, cap) {
                    // The sign alone.
                    (0, 1) => 0,
                    _ if cap < most => magnitude as usize - ones + width,
                    _ => magnitude as usize,
                };
                assert_eq!(masked.circuit().and_count(), sum_ands(ring, d) + clip, "{ring:?} {d} {cap}");
                check_unary(&masked, d, |x| (rounded(x.max(0), d) as u64).min(cap));
            }
        }
    }
    assert!(relu_clip(Ring::Pow2(16), 0, 0).is_err());
}

#[test]
fn the_step_function_takes_a_comparison_alone() {
    for (ring, ands) in
        [(Ring::Pow2(26), 25), (Ring::Pow2(4), 3), (Ring::Pow2(2), 1), (Ring::Prime(1_032_193), 39)]
    {
        let circuit = relu_clip(ring, 0, 1).unwrap();
        assert_eq!((circuit.circuit().and_count(), circuit.circuit().outputs()), (ands, 1), "{ring:?}");
    }
}

#[test]
fn the_step_function_is_right_under_every_share() {
    let primes = [97, 113, 193, 241].map(Ring::Prime);
    for ring in (2..=8).map(Ring::Pow2).chain(primes) {
        let (masked, bound) = (relu_clip(ring, 0, 1).unwrap(), signed_bound(ring, 0).unwrap() as i64);
        let every = (1 - bound..bound).flat_map(|x| (0..=ring.largest()).map(move |s| (x, s)));
        let (x, s): (Vec<_>, Vec<_>) = every.unzip();
        let outputs = run(&masked, &x, &s);
        assert!(x.iter().zip(outputs).all(|(x, y)| y == u64::from(*x >= 1)), "{ring:?}");
    }
}

/// The slope below zero and then rescaling, each rounded by itself.
fn leaky(x: i64, numerator: u64, shift: u32, d: u32) -> i64 {
    if x >= 0 { rounded(x, d) } else { rounded(((i128::from(numerator) * i128::from(x)) >> shift) as i64, d) }
}

/// ANDs of `leaky_relu_rescale` as documented.
fn leaky_ands(ring: Ring, numerator: u64, shift: u32, d: u32) -> usize {
    let (b, sum) = (ring.bits() as usize, sum_ands(ring, 0));
    let select = b - 1 - d as usize;
    let half = if d == 0 { 0 } else { 1_u128 << (d - 1) };
    let bound = u128::from(numerator.next_power_of_two()) << (b - 1);
    let zero = u128::from((1_u64 << shift) - numerator) * half >= bound;
    let minus_one = d == 0 && 1_u128 << shift >= bound;
    if numerator == 0 || (numerator < 1 << shift && (zero || minus_one)) {
        return sum + select;
    }
    if numerator == 1 << shift {
        return sum;
    }
    let ones = numerator.count_ones() as usize;
    let spread = (numerator.ilog2() - numerator.trailing_zeros()) as usize;
    let rounding = if ones > 1 { select + spread + 1 } else { select };
    let rounding = if d == 0 { 0 } else { rounding + 1 };
    sum + (ones - 1) * (b - 1) + rounding + select
}

/// Nothing, one, powers of two, odd and even numerators with their denominators.
const SLOPES: [(u64, u32); 14] = [
    (0, 0),
    (1, 0),
    (0, 5),
    (1, 5),
    (16, 5),
    (31, 5),
    (32, 5),
    (51, 9),
    (5, 9),
    (100, 9),
    (1, 16),
    (65_535, 16),
    (65_536, 16),
    (0xa5a4, 16),
];

#[test]
fn leaky_relu_rescale_rounds_once_below_zero() {
    for ring in rings() {
        for d in depths(ring) {
            for (numerator, shift) in SLOPES {
                let masked = leaky_relu_rescale(ring, numerator, shift, d).unwrap();
                let (ands, bits) = (leaky_ands(ring, numerator, shift, d), masked.circuit().outputs());
                assert_eq!(masked.circuit().and_count(), ands, "{ring:?} {d} {numerator} {shift}");
                assert_eq!(bits, (ring.bits() - d) as usize);
                check_unary(&masked, d, |x| low(leaky(x, numerator, shift, d), bits));
            }
        }
    }
    let masked = leaky_relu_rescale(Ring::Prime(1_032_193), 51, 9, 7).unwrap();
    assert_eq!(masked.circuit().and_count(), 127);
    assert!(leaky_relu_rescale(Ring::Prime(1_032_193), 33, 5, 7).is_err());
    assert!(leaky_relu_rescale(Ring::Prime(1_032_193), 1, 33, 7).is_err());
    assert!(leaky_relu_rescale(Ring::Prime(1_032_193), 1, 5, 19).is_err());
}

#[test]
fn leaky_relu_over_small_primes_exhaustively() {
    for p in [5, 7, 17, 61, 97, 113, 193] {
        let ring = Ring::Prime(p);
        for d in 0..ring.bits() {
            let Ok(bound) = signed_bound(ring, d) else { continue };
            let bound = bound as i64;
            for (numerator, shift) in (0..=8).map(|n| (n, 3)).chain([(51, 9)]) {
                let masked = leaky_relu_rescale(ring, numerator, shift, d).unwrap();
                let s: Vec<_> = (0..p).collect();
                for x in 1 - bound..bound {
                    let expected = low(leaky(x, numerator, shift, d), masked.circuit().outputs());
                    let got = run(&masked, &vec![x; s.len()], &s);
                    assert!(got.iter().all(|y| *y == expected), "{p} {d} {numerator} {shift} {x}");
                }
            }
        }
    }
}

#[test]
fn max_pool_takes_the_largest_before_the_relu() {
    for ring in rings() {
        for d in depths(ring) {
            for k in [1, 2, 4, 9] {
                let (b, d_) = (ring.bits() as usize, d as usize);
                let signed = max_pool_rescale(ring, k, d).unwrap();
                let ands = k * sum_ands(ring, d) + 2 * (k - 1) * (b - d_);
                assert_eq!(signed.circuit().and_count(), ands);
                check_regions(&signed, d, |x| low(rounded(*x.iter().max().unwrap(), d), b - d_));

                let masked = max_pool_relu_rescale(ring, k, d).unwrap();
                assert_eq!(masked.circuit().and_count(), ands + b - 1 - d_);
                let relu = |x: &[i64]| rounded(*x.iter().max().unwrap().max(&0), d) as u64;
                check_regions(&masked, d, relu);

                // The cap 2 has two bits, which end with no one.
                let clipped = max_pool_relu_clip(ring, k, d, 2).unwrap();
                if b - 1 - d_ > 2 {
                    assert_eq!(clipped.circuit().and_count(), ands + b - 1 - d_ + 2);
                }
                check_regions(&clipped, d, |x| relu(x).min(2));
            }
        }
    }
    assert!(max_pool_rescale(Ring::Pow2(16), 0, 0).is_err());
    assert!(max_pool_relu_clip(Ring::Pow2(16), 2, 0, 0).is_err());
}

#[test]
fn maximum_of_three_and_minus_one_is_three() {
    let masked = max_pool_relu_rescale(Ring::Prime(1_032_193), 2, 0).unwrap();
    assert_eq!(run(&masked, &[3, -1, -1, 3], &[5, 1_000_000, 1_000_000, 5]), [3, 3]);
}

#[test]
fn argmax_is_the_lowest_index_of_the_largest() {
    let first_max = |x: &[i64]| {
        let max = x.iter().max().unwrap();
        x.iter().position(|v| v == max).unwrap() as u64
    };
    for ring in rings() {
        for k in [2_usize, 3, 5, 8, 10, 16] {
            let index_bits = k.next_power_of_two().trailing_zeros() as usize;
            let masked = argmax(ring, k).unwrap();
            assert_eq!(masked.circuit().outputs(), index_bits);
            let b = ring.bits() as usize;
            if k.is_power_of_two() {
                let ands = k * sum_ands(ring, 0) + (2 * k - 3) * b + k - 1 - index_bits;
                assert_eq!(masked.circuit().and_count(), ands);
            }
            check_regions(&masked, 0, first_max);

            let with_max = argmax_with_max(ring, k).unwrap();
            assert_eq!(with_max.circuit().and_count(), masked.circuit().and_count() + b);
            if index_bits + b <= 64 {
                check_regions(&with_max, 0, |x| {
                    first_max(x) | low(*x.iter().max().unwrap(), b) << index_bits
                });
            }
        }
    }
    // Ten classes, twenty bits: 10 (2b - 1) + 17 b + 7 for the index.
    assert_eq!(argmax(Ring::Prime(1_032_193), 10).unwrap().circuit().and_count(), 737);
    assert!(argmax(Ring::Pow2(16), 1).is_err());
}

#[test]
fn top_k_is_the_order_of_the_largest() {
    for ring in [Ring::Prime(114_689), Ring::Prime(1_032_193), Ring::Pow2(16)] {
        for (k, best) in [(2, 1), (2, 2), (3, 2), (5, 5), (7, 3), (10, 1), (10, 5), (12, 4), (8, 8)] {
            let masked = top_k(ring, k, best).unwrap();
            let index_bits = k.next_power_of_two().trailing_zeros() as usize;
            assert_eq!(masked.circuit().outputs(), best * index_bits);
            check_regions(&masked, 0, |x| {
                let mut order: Vec<_> = (0..x.len()).collect();
                order.sort_by_key(|i| (std::cmp::Reverse(x[*i]), *i));
                let order = order.iter().take(best).enumerate();
                order.fold(0, |word, (place, index)| word | (*index as u64) << (place * index_bits))
            });
        }
    }
    let ring = Ring::Prime(1_032_193);
    assert!(top_k(ring, 1, 1).is_err() && top_k(ring, 5, 0).is_err() && top_k(ring, 5, 6).is_err());
    // The one best costs a comparison of indices more than an arg-max, and five of a thousand less than thrice one.
    let ands = |masked: MaskedCircuit| masked.circuit().and_count();
    assert!(ands(top_k(ring, 10, 1).unwrap()) < ands(argmax(ring, 10).unwrap()) * 5 / 4);
    assert!(ands(top_k(ring, 1000, 5).unwrap()) < 3 * ands(argmax(ring, 1000).unwrap()));
}

#[test]
fn positive_values_are_those_above_zero() {
    for ring in rings() {
        for k in [1_usize, 2, 5] {
            let masked = positive(ring, k).unwrap();
            assert_eq!(masked.circuit().outputs(), k);
            let b = ring.bits() as usize;
            assert_eq!(masked.circuit().and_count(), k * (sum_ands(ring, 0) + b - 1));
            check_regions(&masked, 0, |x| {
                x.iter().enumerate().fold(0, |word, (place, value)| word | u64::from(*value > 0) << place)
            });
        }
    }
    assert!(positive(Ring::Pow2(16), 0).is_err());
}

/// Every sharing of every two values.
#[test]
fn any_zero_is_a_share_that_is_the_others_negative() {
    let ring = Ring::Pow2(4);
    for k in [1_usize, 2] {
        let masked = any_zero(ring, k).unwrap();
        let circuit = masked.circuit();
        assert_eq!((circuit.outputs(), circuit.and_count()), (1, 4 * k - 1));
        let words = 1 << (4 * k);
        for (c, s) in (0..words).flat_map(|c| (0..words).map(move |s| (c, s))) {
            let shares = |word: u64| -> Vec<u64> { (0..k).map(|place| word >> (4 * place) & 15).collect() };
            let (c, s) = (shares(c), shares(s));
            let bits = |bits: Bits| -> Vec<bool> { bits.iter().collect() };
            let [evaluator, garbler] =
                [masked.evaluator_bits(&c), masked.garbler_bits(&s)].map(|input| bits(input.unwrap()));
            let any = c.iter().zip(&s).any(|(c, s)| ring.add(*c, *s) == 0);
            assert_eq!(circuit.evaluate_clear(&evaluator, &garbler).unwrap(), [any]);
        }
    }
    assert!(any_zero(Ring::Prime(1_032_193), 2).is_err() && any_zero(ring, 0).is_err());
    // A group of the size that layers are compared in.
    assert_eq!(any_zero(Ring::Pow2(22), 64).unwrap().circuit().and_count(), 64 * 22 - 1);
}

/// Every sharing of two values with bits of guard below them gives what the values give, whatever the bits are.
#[test]
fn bits_of_guard_change_no_result() {
    let ring = Ring::Pow2(7);
    for guard in 1..=3 {
        let sharing = Sharing { ring, guard };
        let circuits =
            [argmax(sharing, 2).unwrap(), top_k(sharing, 2, 2).unwrap(), positive(sharing, 2).unwrap()];
        // The guard's bits are added for their carry alone.
        let without = argmax(Ring::Pow2(7 - guard), 2).unwrap().circuit().and_count();
        assert_eq!(circuits[0].circuit().and_count(), without + 2 * guard as usize);
        let top = 1_i64 << (6 - guard);
        for [x, y] in (-top..top).flat_map(|x| [-top, x - 1, x, x + 1, top - 1].map(|y| [x, y])) {
            if !(-top..top).contains(&y) {
                continue;
            }
            let label = u64::from(y > x);
            let expected = [label, label | (1 - label) << 1, u64::from(x > 0) | u64::from(y > 0) << 1];
            for below in 0..1 << guard {
                let guarded = [(x << guard) + below, (y << guard) + (below * 5 + 1) % (1 << guard)];
                for share in 0..128 {
                    let shares = [share, (share * 37 + 11) % 128];
                    for (circuit, expected) in circuits.iter().zip(expected) {
                        assert_eq!(run(circuit, &guarded, &shares), [expected], "{guard} {x} {y} {shares:?}");
                    }
                }
            }
        }
    }
    assert!(argmax(Sharing { ring: Ring::Prime(1_032_193), guard: 1 }, 2).is_err());
    assert!(argmax(Sharing { ring, guard: 6 }, 2).is_err());
}

#[test]
fn small_primes_exhaustively() {
    for p in [5, 7, 11, 13, 17, 23, 29, 31, 41, 61, 97, 113, 127, 193, 241, 251] {
        let ring = Ring::Prime(p);
        for d in 0..ring.bits() {
            let Ok(bound) = signed_bound(ring, d) else { continue };
            let bound = bound as i64;
            let (relu, signed) = (relu_rescale(ring, d).unwrap(), rescale(ring, d).unwrap());
            for x in 1 - bound..bound {
                let s: Vec<_> = (0..p).collect();
                let x_ = vec![x; s.len()];
                let expected = low(rounded(x, d), signed.circuit().outputs());
                assert!(run(&signed, &x_, &s).iter().all(|y| *y == expected));
                assert!(run(&relu, &x_, &s).iter().all(|y| *y == rounded(x.max(0), d) as u64));
            }
        }
    }
}

#[test]
fn shares_out_of_range_and_incomplete_instances_are_refused() {
    let masked = max_pool_rescale(Ring::Prime(114_689), 2, 3).unwrap();
    assert!(masked.evaluator_bits(&[0, 114_689]).is_err());
    assert!(masked.garbler_bits(&[114_689, 0]).is_err());
    assert!(masked.garbler_bits(&[1]).is_err());
    for ring in [Ring::Prime(0), Ring::Prime(16), Ring::Pow2(1), Ring::Pow2(65)] {
        assert!(rescale(ring, 0).is_err(), "{ring:?}");
    }
    assert!(rescale(Ring::Prime(114_689), 16).is_err());
}

/// Every circuit of the library, garbled: shares in, XOR of both outputs equal to the clear.
#[test]
fn garbled_circuits_equal_their_clear_evaluation() {
    let prime = Ring::Prime(1_032_193);
    let ring = Ring::Pow2(32);
    let mut prg = prg(13);
    for (index, masked) in [
        relu_rescale(prime, 7).unwrap(),
        relu_rescale(ring, 12).unwrap(),
        relu_clip(prime, 7, 96).unwrap(),
        rescale(prime, 5).unwrap(),
        leaky_relu_rescale(prime, 51, 9, 7).unwrap(),
        max_pool_relu_rescale(prime, 4, 7).unwrap(),
        max_pool_rescale(ring, 9, 2).unwrap(),
        argmax(prime, 10).unwrap(),
        argmax_with_max(prime, 7).unwrap(),
        top_k(prime, 7, 3).unwrap(),
        positive(ring, 5).unwrap(),
        any_zero(Ring::Pow2(2), 3).unwrap(),
        argmax(Sharing { ring, guard: 3 }, 5).unwrap(),
    ]
    .into_iter()
    .enumerate()
    {
        let instances = 37;
        let mut random = |ring: Ring, count: usize| -> Vec<u64> {
            (0..count).map(|_| prg.next_u64() % (ring.largest() + 1)).collect()
        };
        let (c, s) = (
            random(masked.ring(), instances * masked.values()),
            random(masked.ring(), instances * masked.values()),
        );
        let inputs = masked.evaluator_bits(&c).unwrap();
        let known = masked.garbler_bits(&s).unwrap();
        let expected: Bits = clear(masked.circuit(), instances, &inputs, &known);
        for &backend in Backend::available() {
            let garbling = garble(masked.circuit(), instances, &known, index as u8, backend);
            let got = garbling.evaluate(masked.circuit(), instances, &inputs, backend);
            assert_eq!(got.as_words(), expected.as_words(), "circuit {index} on {backend:?}");
        }
    }
}
