//! Functions of random shapes at the ends of what they may be, on shares that somebody chose.

use lanner_primitives::Ring;
use lanner_transfers::{Factors, Layer, Polynomials};
use rand_core::Rng;

use crate::common::rng;
use crate::ot_nonlinear::{Case, outputs};

/// A number below `most`.
fn below(rng: &mut impl Rng, most: u64) -> u64 {
    rng.next_u64() % most
}

fn round(x: i128, shift: u32) -> i128 {
    if shift == 0 { x } else { (x + (1 << (shift - 1))) >> shift }
}

/// A function's value by its definition.
fn ideal(function: &Polynomials, x: i128) -> i128 {
    let Polynomials { low, bits, polynomials, shift, factors } = function;
    let u = (x - i128::from(*low)).clamp(0, (1 << bits) - 1);
    let factor_bits = factors.as_ref().map_or(0, |factors| factors.values.len().trailing_zeros());
    let within = bits - factor_bits;
    let rest = within - polynomials.len().trailing_zeros();
    let (a, h, e) = (u >> within, (u & ((1 << within) - 1)) >> rest, u & ((1 << rest) - 1));
    let sum = polynomials[h as usize].iter().rev().fold(0, |sum, c| sum * e + i128::from(*c));
    let value = round(sum, *shift);
    factors.as_ref().map_or(value, |of| round(i128::from(of.values[a as usize]) * value, of.shift))
}

/// Numbers of at most so many bits in absolute value, of a kind: none, all the same, all below zero, multiples, the ends.
fn column(rng: &mut impl Rng, count: usize, bits: u32) -> Vec<i64> {
    let bound = 1_i64 << bits;
    let (kind, one, zeros) =
        (below(rng, 8), below(rng, 2 * bound as u64) as i64 - bound, below(rng, u64::from(bits) + 1));
    (0..count)
        .map(|at| {
            let any = below(rng, 2 * bound as u64 - 1) as i64 - (bound - 1);
            match kind {
                0 => 0,
                1 => one.clamp(1 - bound, bound - 1),
                2 => -any.abs(),
                3 => any >> zeros << zeros,
                4 => {
                    if any & 1 == 0 {
                        bound - 1
                    } else {
                        1 - bound
                    }
                }
                5 => {
                    if at == 0 {
                        any
                    } else {
                        0
                    }
                }
                6 => any >> zeros,
                _ => any,
            }
        })
        .collect()
}

fn function(rng: &mut impl Rng) -> Polynomials {
    let bits = 1 + below(rng, 13) as u32;
    let factor = if below(rng, 2) == 0 { 0 } else { below(rng, u64::from(bits.min(8)) + 1) as u32 };
    let segment = below(rng, u64::from((bits - factor).min(8)) + 1) as u32;
    let rest = bits - factor - segment;
    let powers = 1 + below(rng, 4) as u32;
    let largest = 3 + below(rng, 54) as u32;
    let columns: Vec<Vec<i64>> = (0..powers)
        .map(|power| {
            let room = largest.saturating_sub(rest * power);
            let width = if below(rng, 2) == 0 { room } else { below(rng, u64::from(room) + 1) as u32 };
            column(rng, 1 << segment, width)
        })
        .collect();
    let polynomials = (0..1 << segment).map(|h| columns.iter().map(|column| column[h]).collect()).collect();
    let shift = match below(rng, 4) {
        0 => below(rng, 3) as u32,
        1 => (largest + below(rng, 3) as u32).min(58),
        _ => below(rng, u64::from(largest)) as u32,
    };
    let factors = (factor > 0).then(|| {
        let room = 57_u32.saturating_sub((largest + 2).saturating_sub(shift)).max(1);
        let width = below(rng, u64::from(room)) as u32;
        let last = if below(rng, 3) == 0 { below(rng, 2) as u32 } else { below(rng, 50) as u32 };
        Factors { values: column(rng, 1 << factor, width), shift: last }
    });
    Polynomials { low: 0, bits, polynomials, shift, factors }
}

/// A case with what it must give; nothing where the function has no such size.
fn case(rng: &mut impl Rng) -> Option<(Case, Vec<i64>, String)> {
    let mut function = function(rng);
    let bits = function.bits;
    let whole = below(rng, 3) == 0;
    let more = if below(rng, 2) == 0 { 3 } else { u64::from(60 - bits) };
    let left = if whole { bits } else { bits + 1 + below(rng, more) as u32 };
    let shift = match below(rng, 3) {
        0 => 0,
        1 => 1.min(62 - left),
        _ => below(rng, u64::from(62 - left) + 1) as u32,
    };
    let from = left + shift;
    let quarter = if whole { 0 } else { 1_i64 << (left - 2) };
    function.low = if whole {
        -1 << (bits - 1)
    } else {
        match below(rng, 6) {
            0 => quarter,
            1 => -quarter,
            2 => 0,
            3 => (-(1 << (bits - 1))).max(-quarter),
            _ => below(rng, 2 * quarter as u64 + 1) as i64 - quarter,
        }
    };
    let to = match below(rng, 3) {
        0 => 1 + below(rng, 62) as u32,
        1 => 62,
        _ => 1 + below(rng, 30) as u32,
    };
    let count = 40;
    let layer = Layer::function(&function, 3 * count, from, to, shift).ok()?;
    // Rounded numbers that the layer says it takes, as near to its ends as may be.
    let reach: [i128; 2] = if whole {
        [-(1 << (left - 1)), (1 << (left - 1)) - 1]
    } else {
        [1 - i128::from(quarter), i128::from(quarter) - 1]
    };
    let (low, last) = (i128::from(function.low), i128::from(function.low) + (1 << bits) - 1);
    let mut secrets = Vec::new();
    let one = 1_i128 << shift;
    let half = one >> 1;
    while secrets.len() < 3 * count {
        let y = match below(rng, 8) {
            0 => reach[0],
            1 => reach[1],
            2 => low + i128::from(below(rng, 3)) - 1,
            3 => last + i128::from(below(rng, 3)) - 1,
            _ => low + i128::from(below(rng, 1 << bits)),
        }
        .clamp(reach[0], reach[1]);
        let down = y * one - half;
        let x = match below(rng, 4) {
            0 => down,
            1 => down + one - 1,
            2 => y * one,
            _ => down + i128::from(rng.next_u64()) % one,
        };
        let x = if shift == 0 { y } else { x.max(-(1 << (from - 1))) };
        secrets.push(x as i64);
    }
    let ring = Ring::Pow2(from);
    let top = 1_u64 << (from - 1);
    let server = secrets.iter().map(|x| {
        let own = ring.embed(*x);
        ring.embed(match below(rng, 9) {
            0 => 0,
            1 => u64::MAX,
            2 => top,
            3 => top - 1,
            4 => (1 << below(rng, u64::from(from))) - 1,
            5 => own,
            6 => own.wrapping_add(1),
            7 => own.wrapping_sub(top),
            _ => rng.next_u64(),
        } as i64)
    });
    let server = Some(server.collect());
    let cut = Ring::Pow2(to);
    let expected =
        secrets.iter().map(|x| cut.signed(cut.embed(ideal(&function, round(i128::from(*x), shift)) as i64)));
    let expected = expected.collect();
    let name = format!("{function:?} from {from} to {to} shift {shift}");
    Some((Case { layer, secrets, from, server }, expected, name))
}

#[test]
fn functions_of_any_shape_are_right_on_any_shares() {
    let seeds: u64 = std::env::var("FUNCTION_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    let mut tried = 0;
    for seed in 0..seeds {
        let mut rng = rng(seed as u8);
        (0..seed / 256).for_each(|_| {
            rng.next_u64();
        });
        let (mut cases, mut wanted) = (Vec::new(), Vec::new());
        while cases.len() < 150 {
            let Some((case, expected, name)) = case(&mut rng) else { continue };
            cases.push(case);
            wanted.push((expected, name));
        }
        tried += cases.len();
        for ((got, (expected, name)), case) in outputs(&cases).iter().zip(wanted).zip(&cases) {
            if let Some(at) = (0..expected.len()).find(|at| got[*at] != expected[*at]) {
                let server = case.server.as_ref().map(|shares| shares[at]);
                panic!(
                    "seed {seed}: {name}: of {}, server {server:?}: {} not {}",
                    case.secrets[at], got[at], expected[at]
                );
            }
        }
    }
    println!("{tried} functions");
}
