//! What each move leaves with each party is uniform by itself, whatever the shares that went in, and right: chi-square tests under fixed
//! seeds, at a level of `10^-6`.
#![allow(clippy::unwrap_used)]

use lanner_primitives::{Prg, Ring, Seed};
use lanner_testkit::{Party as End, check_bits, run};
use lanner_wire::pack_bits;
use zeroize::Zeroizing;

use super::driver::Driver;
use super::lanes::{Count, Values, words};
use super::moves::Counter;
use super::run::Run;
use super::{Layer, PARAMETERS, Transfers};
use crate::{Party, ProtocolError};

/// Whole words of bits.
const VALUES: usize = 512;
const BITS: u32 = 11;
const RING: Ring = Ring::Pow2(BITS);
/// Two blocks, and a bit of a third.
const COMPARED: u32 = 9;

/// What a move leaves with a party, as values of a given number of bits; of bits in words 64.
type Left<V> = Vec<(V, u32)>;

/// Each move with either party first, since those of three messages leave the turn where it is. `values` gives the values that go in, of a given number of bits.
fn program<D: Driver>(
    driver: &mut D,
    bits: &D::Values,
    values: impl Fn(u32) -> D::Values,
) -> Result<Left<D::Values>, ProtocolError> {
    let mut left = Vec::new();
    for _ in 0..2 {
        left.push((driver.mux(bits, &values(BITS), BITS)?, BITS));
        let leaves = driver.leaves(&values(COMPARED), COMPARED)?;
        // Of the lowest block nobody asks whether both are equal.
        for (leaf, [less, equal]) in leaves.into_iter().enumerate() {
            left.extend([Some(less), (leaf > 0).then_some(equal)].into_iter().flatten().map(|row| (row, 64)));
        }
    }
    for _ in 0..2 {
        left.push((driver.and(bits, bits)?, 64));
    }
    for factor in [1, 1, BITS, BITS] {
        left.push((driver.product(&values(factor), factor, BITS)?, BITS));
    }
    Ok(left)
}

/// A party's shares behind each move. Every value and every bit that goes in is `mine`, or its lowest bits.
fn shares(end: &mut End, me: Party, mine: u64) -> Left<Values> {
    let mut counter = Counter::default();
    program(&mut counter, &Count(words(VALUES)), |_| Count(VALUES)).unwrap();
    let mut layer = Layer::square(VALUES, BITS).unwrap();
    layer.moves = counter.into_moves();
    let rng = &mut Prg::new(Seed::from_bytes([me as u8; 16]));
    let mut transfers = Transfers::setup(end, me, PARAMETERS, rng).unwrap();
    let request = layer.request(end, &mut transfers).unwrap();
    let material = layer.prepare(end, &mut transfers, request, rng).unwrap();
    let mut run = Run::new(end, me, material);
    let bits = Zeroizing::new(vec![(mine & 1).wrapping_neg(); words(VALUES)]);
    let left =
        program(&mut run, &bits, |bits| Zeroizing::new(vec![mine & ((1 << bits) - 1); VALUES])).unwrap();
    run.finish().unwrap();
    left
}

/// What both parties' shares behind each move add up to, for values `a` of the client's and `b` of the server's.
fn expected(a: u64, b: u64) -> Vec<u64> {
    let (sum, word) = (RING.add(a, b), |bit: bool| u64::from(bit).wrapping_neg());
    let selected = if (a ^ b) & 1 == 1 { sum } else { 0 };
    let leaves = |first: u64, second: u64| {
        let block = |x: u64, leaf: u32| x >> (4 * leaf) & if leaf < 2 { 15 } else { 1 };
        // The first party compares the complement of its own.
        let pair = move |leaf: u32| (block(!first, leaf), block(second, leaf));
        (0..3).flat_map(move |leaf| {
            let (x, y) = pair(leaf);
            [Some(word(x < y)), (leaf > 0).then(|| word(x == y))].into_iter().flatten()
        })
    };
    let both = word((a ^ b) & 1 == 1);
    let product = a.wrapping_mul(b) & RING.neg(1);
    let mut all = vec![selected];
    all.extend(leaves(a, b));
    all.push(selected);
    all.extend(leaves(b, a));
    all.extend([both, both, a & b & 1, a & b & 1, product, product]);
    all
}

#[test]
fn shares_behind_every_move_are_uniform_and_right() {
    let top = RING.neg(1);
    for (a, b) in [(0, 0), (0, top), (top, 0), (top, top), (top / 2, top / 2 + 1), (0x155, 0x155)] {
        let (client, server) =
            run(&mut End::pair(), |end| shares(end, Party::Client, a), |end| shares(end, Party::Server, b));
        let expected = expected(a, b);
        assert_eq!((client.len(), server.len()), (expected.len(), expected.len()));
        for (((client, bits), (server, _)), expected) in client.iter().zip(&server).zip(expected) {
            let sum = |(c, s): (&u64, &u64)| if *bits == 64 { c ^ s } else { RING.add(*c, *s) };
            assert!(client.iter().zip(server.iter()).map(sum).all(|sum| sum == expected));
            for share in [client, server] {
                // Words are of a bit for each value.
                let width = if *bits == 64 { 1 } else { *bits as usize };
                assert_eq!(check_bits(&[&pack_bits(share, *bits)], &[width]), Ok(()));
            }
        }
    }
}
