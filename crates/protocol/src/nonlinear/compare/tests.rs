//! What each move leaves with each party is uniform by itself, whatever the shares that went in, and right: chi-square tests under fixed
//! seeds, at a level of `10^-6`.
#![allow(clippy::unwrap_used)]

use lanner_primitives::{Prg, Seed};
use lanner_share::Ring;
use lanner_testkit::{Party as End, check_bits, run};
use lanner_wire::pack_bits;
use zeroize::Zeroizing;

use super::material::Words;
use super::moves::{Move, Moves, words};
use super::run::Run;
use super::{PARAMETERS, Transfers};
use crate::Party;

/// Whole words of bits.
const VALUES: usize = 512;
const BITS: u32 = 11;
const RING: Ring = Ring::Pow2(BITS);
/// Two blocks, and a bit of a third.
const COMPARED: u32 = 9;

/// Each move with either party first.
fn moves() -> Moves {
    let (values, bits) = (VALUES, BITS);
    let leaves = Move::Leaves { values, bits: COMPARED };
    let conjunctions = Move::Conjunctions { words: words(values) };
    let selections = Move::Selections { values, bits };
    let overlaps = Move::Overlaps { values, bits };
    let products = Move::Products { values, bits };
    let moves = Moves(vec![
        selections,
        leaves,
        selections,
        leaves,
        conjunctions,
        conjunctions,
        overlaps,
        overlaps,
        products,
        products,
    ]);
    let firsts =
        |wanted: Move| moves.in_turn().filter(move |(step, _)| *step == wanted).map(|(_, first)| first);
    for step in [leaves, conjunctions, selections, overlaps, products] {
        assert!(firsts(step).eq([Party::Client, Party::Server]));
    }
    moves
}

/// A party's shares behind each move, as values of so many bits. Every value and every bit that goes in is `mine`, or its lowest bit.
fn shares(end: &mut End, me: Party, mine: u64) -> Vec<(Vec<u64>, u32)> {
    let rng = &mut Prg::new(Seed::from_bytes([me as u8; 16]));
    let mut transfers = Transfers::setup(end, me, PARAMETERS, rng).unwrap();
    let moves = moves();
    let request = moves.request(end, &mut transfers).unwrap();
    let material = moves.complete(end, &mut transfers, request, rng).unwrap();
    let mut run = Run::new(end, me, material);
    let bits = |bit: u64| -> Words { Zeroizing::new(vec![(bit & 1).wrapping_neg(); words(VALUES)]) };
    let values = |bits: u32| vec![mine & ((1 << bits) - 1); VALUES];
    let mut left = Vec::new();
    for (step, _) in moves.in_turn() {
        match step {
            Move::Leaves { .. } => {
                // Of the lowest block nobody asks whether both are equal.
                let leaves = run.leaves(&values(COMPARED), COMPARED).unwrap();
                left.extend(leaves.iter().enumerate().flat_map(|(leaf, [less, equal])| {
                    let equal = (leaf > 0).then(|| (equal.to_vec(), 64));
                    [Some((less.to_vec(), 64)), equal].into_iter().flatten()
                }));
            }
            Move::Conjunctions { .. } => {
                left.push((run.conjunction(&bits(mine), &bits(mine)).unwrap().to_vec(), 64));
            }
            Move::Selections { .. } => {
                left.push((run.select(&bits(mine), &values(BITS), BITS).unwrap().to_vec(), BITS));
            }
            Move::Overlaps { .. } => left.push((run.overlap(&values(1), BITS).unwrap().to_vec(), BITS)),
            Move::Products { .. } => left.push((run.product(&values(BITS), BITS).unwrap().to_vec(), BITS)),
        }
    }
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
    let product = RING.mul(a, b);
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
            assert!(client.iter().zip(server).map(sum).all(|sum| sum == expected));
            for share in [client, server] {
                // Words are of a bit for each value.
                let width = if *bits == 64 { 1 } else { *bits as usize };
                assert_eq!(check_bits(&[&pack_bits(share, *bits)], &[width]), Ok(()));
            }
        }
    }
}
