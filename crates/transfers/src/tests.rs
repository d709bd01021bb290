//! What each move leaves with each party is uniform by itself, whatever the shares that went in, and right: chi-square tests under fixed
//! seeds, at a level of `10^-6`.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use lanner_primitives::{Block, Prg, Ring, Seed};
use lanner_step::{Party, ProtocolError, Result, Transfers, transfer_sets};
use lanner_testkit::{Party as End, check_bits, run};
use lanner_wire::pack_bits;
use zeroize::Zeroizing;

use super::counter::Counter;
use super::driver::{Driver, Part, Task, only};
use super::function::Function;
use super::lanes::{Count, Lanes, Values, words};
use super::lookup::Table;
use super::matrices::Shape;
use super::run::Run;
use super::{Factors, Layer, Polynomials};

/// Whole words of bits.
const VALUES: usize = 512;
const BITS: u32 = 11;
const RING: Ring = Ring::Pow2(BITS);
/// Three blocks.
const COMPARED: u32 = 9;

/// What a move leaves with a party, as values of a given number of bits; of bits in words 64.
type Left<V> = Vec<(V, u32)>;

/// Each move with either party first, since those of three messages leave the turn where it is, and moves made together. `values` gives the
/// values that go in, of a given number of bits.
fn program<D: Driver>(
    driver: &mut D,
    bits: &D::Values,
    values: impl Fn(u32) -> D::Values,
) -> Result<Left<D::Values>> {
    let mux = || Task::Mux { choices: bits.clone(), values: values(BITS), bits: BITS };
    let product = |factor: u32| Task::Products { mine: values(factor), factor, bits: BITS };
    let part =
        |bits: u32, ways: usize, equality: bool| Part { numbers: vec![values(bits); ways], bits, equality };
    let mut left = Vec::new();
    let mut keep = |given: Vec<Vec<D::Values>>, bits: u32| {
        left.extend(given.into_iter().flatten().map(|row| (row, bits)));
    };
    for _ in 0..2 {
        keep(driver.turn(vec![mux()])?, BITS);
        keep(driver.turn(vec![Task::Leaves(vec![part(COMPARED, 1, false)])])?, 64);
        keep(driver.turn(vec![Task::Leaves(vec![part(COMPARED, 1, false), part(5, 2, true)])])?, 64);
        keep(driver.turn(vec![Task::Bits(bits.clone(), vec![bits.clone(); 4])])?, 64);
    }
    for factor in [1, 1, BITS, BITS] {
        keep(driver.turn(vec![product(factor)])?, BITS);
    }
    for factor in [1, 5, BITS] {
        let (numbers, values) = (values(factor), values(BITS));
        keep(driver.turn(vec![Task::Multiply { numbers, factor, values, bits: BITS }])?, BITS);
    }
    for (rows, inner, columns) in [(16, 4, 8), (128, 1, 1)] {
        let shape = Shape { groups: 4, rows, inner, columns };
        let lanes = |count: usize| values(BITS).range(0..count);
        let (numbers, values) = (lanes(shape.numbers()), lanes(shape.values()));
        keep(driver.turn(vec![Task::Matrices { numbers, values, shape, bits: BITS }])?, BITS);
    }
    for place_bits in [1, 4, 4] {
        // Of three messages: either party is the first in some.
        let table = Arc::new(Table::new(place_bits, vec![(BITS, entries(place_bits, BITS))])?);
        let task = Task::Scaled { places: values(place_bits), table, values: values(BITS) };
        keep(driver.turn(vec![task])?, BITS);
        keep(driver.turn(vec![product(1)])?, BITS);
    }
    for place_bits in [1, 4] {
        // In these turns either party is the first once.
        let columns = [BITS, 3].map(|bits| (bits, entries(place_bits, bits)));
        let table = Arc::new(Table::new(place_bits, columns.to_vec())?);
        let found = only(driver.turn(vec![Task::Lookup { places: values(place_bits), table }])?)?;
        for (column, bits) in found.into_iter().zip([BITS, 3]) {
            keep(vec![vec![column]], bits);
        }
    }
    for place_bits in [1, 4] {
        let found = driver.turn(vec![Task::Lookup {
            places: values(place_bits),
            table: Arc::new(Table::units(place_bits)?),
        }])?;
        // Bits of a lane, of which each is shared by itself.
        for vector in found.into_iter().flatten() {
            for entry in 0..(1_u32 << place_bits) - 1 {
                keep(vec![vec![vector.map(|bits| bits >> entry).words()]], 64);
            }
        }
    }
    keep(driver.turn(vec![mux(), product(1)])?, BITS);
    let [of_bits, of_values] =
        &driver.turn(vec![Task::Bits(bits.clone(), vec![bits.clone()]), product(1)])?[..]
    else {
        return Ok(left);
    };
    keep(vec![of_bits.clone()], 64);
    keep(vec![of_values.clone()], BITS);
    Ok(left)
}

/// A table's entries of so many bits.
fn entries(place_bits: u32, bits: u32) -> Vec<u64> {
    (0..1 << place_bits).map(|place| (place * place * 37 + 5) & ((1 << bits) - 1)).collect()
}

/// A party's shares behind each move. Every value and every bit that goes in is `mine`, or its lowest bits.
fn shares(end: &mut End, me: Party, mine: u64) -> Left<Values> {
    let mut counter = Counter::default();
    program(&mut counter, &Count(words(VALUES)), |_| Count(VALUES)).unwrap();
    let mut layer = Layer::square(VALUES, BITS).unwrap();
    layer.moves = counter.into_moves();
    let rng = &mut Prg::new(Seed::from_bytes([me as u8; 16]));
    let mut transfers = Transfers::setup(end, me, transfer_sets([0; 2]), rng).unwrap();
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
    // Of the lowest block of a part nobody asks whether both are equal, unless of the part.
    let leaves = |first: u64, second: u64, widths: &[u32], ways: usize, equality: bool| {
        let (mut told, mut shift) = (Vec::new(), 0);
        for (number, width) in widths.iter().enumerate() {
            // The first party compares the complement of its own.
            let [x, y] = [!first, second].map(|x| x >> shift & ((1 << width) - 1));
            for _ in 0..ways {
                told.push(word(x < y));
                told.extend((number > 0 || equality).then(|| word(x == y)));
            }
            shift += width;
        }
        told
    };
    let both = word((a ^ b) & 1 == 1);
    let product = a.wrapping_mul(b) & RING.neg(1);
    let mut all = Vec::new();
    for (first, second) in [(a, b), (b, a)] {
        all.push(selected);
        all.extend(leaves(first, second, &[3, 3, 3], 1, false));
        // Who was second in one comparison is first in the next.
        all.extend(leaves(second, first, &[3, 3, 3], 1, false));
        all.extend(leaves(second, first, &[3, 2], 2, true));
        all.extend([both; 4]);
    }
    all.extend([a & b & 1, a & b & 1, product, product]);
    for bits in [1, 5, BITS] {
        let low = |x: u64| x & ((1 << bits) - 1);
        all.push((low(a) + low(b)).wrapping_mul(sum) & RING.neg(1));
    }
    // Sums of so many products.
    all.extend([4_u64, 1].map(|inner| inner.wrapping_mul(sum.wrapping_mul(sum)) & RING.neg(1)));
    for place_bits in [1, 4, 4] {
        let place = (a + b) as usize & ((1 << place_bits) - 1);
        all.push(entries(place_bits, BITS)[place].wrapping_mul(sum) & RING.neg(1));
        all.push(a & b & 1);
    }
    for place_bits in [1, 4] {
        let place = (a + b) as usize & ((1 << place_bits) - 1);
        all.extend([BITS, 3].map(|bits| entries(place_bits, bits)[place]));
    }
    for place_bits in [1, 4] {
        let place = (a + b) & ((1 << place_bits) - 1);
        all.extend((1..1_u64 << place_bits).map(|entry| word(entry == place)));
    }
    all.extend([selected, a & b & 1, both, a & b & 1]);
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
            let sum = |(c, s): (&u64, &u64)| if *bits == 64 { c ^ s } else { Ring::Pow2(*bits).add(*c, *s) };
            assert!(client.iter().zip(server.iter()).map(sum).all(|sum| sum == expected));
            for share in [client, server] {
                // Words are of a bit for each value.
                let width = if *bits == 64 { 1 } else { *bits as usize };
                assert_eq!(check_bits(&[&pack_bits(share, *bits)], &[width]), Ok(()));
            }
        }
    }
}

/// A run in which one of the results of the turns is lost: both parties have zeros for their shares of it.
struct Lossy<'c> {
    run: Run<'c>,
    /// How many results come before.
    left: usize,
}

impl Driver for Lossy<'_> {
    type Values = Values;

    fn party(&self) -> Party {
        self.run.party()
    }

    fn is_second(&self) -> bool {
        self.run.is_second()
    }

    fn turn(&mut self, tasks: Vec<Task<Values>>) -> Result<Vec<Vec<Values>>> {
        let mut given = self.run.turn(tasks)?;
        for result in given.iter_mut().flatten() {
            if self.left == 0 {
                *result = result.map(|_| 0);
            }
            self.left = self.left.wrapping_sub(1);
        }
        Ok(given)
    }
}

/// What a party has of a function of all values of a ring of 10 bits, of which it has such shares, with the result lost that has this number.
fn of_lossy(end: &mut End, me: Party, function: &Polynomials, share: &[u64], lost: usize) -> Values {
    let layer = Layer::function(function, share.len(), 10, 30, 0).unwrap();
    let rng = &mut Prg::new(Seed::from_bytes([me as u8; 16]));
    let mut transfers = Transfers::setup(end, me, transfer_sets([0; 2]), rng).unwrap();
    let request = layer.request(end, &mut transfers).unwrap();
    let material = layer.prepare(end, &mut transfers, request, rng).unwrap();
    let mut driver = Lossy { run: Run::new(end, me, material), left: lost };
    let operation = Function::new(function, [10, 30], 0).unwrap();
    let result = operation.run(&mut driver, &Zeroizing::new(share.to_vec())).unwrap();
    driver.run.finish().unwrap();
    result
}

/// Carries, wraps, coefficients, products: whichever of them is left out, some value of a function is wrong. With none left out all are right.
/// Coefficients of 4 segments are looked up, those of 32 are found by the unit vectors of two digits.
#[test]
fn no_result_of_a_move_can_be_left_out() {
    let values: Vec<u64> = (0..1024).chain(0..1024).collect();
    let mut random = Prg::new(Seed::from_bytes([7; 16]));
    let server: Vec<u64> = values.iter().map(|_| rand_core::Rng::next_u64(&mut random) & 1023).collect();
    let client: Vec<u64> = values.iter().zip(&server).map(|(x, s)| Ring::Pow2(10).sub(*x, *s)).collect();
    let few = (0..4).map(|h| vec![90_000 * h - 4000, 331 * h - 700, 5 - 3 * h]).collect();
    let factors = Some(Factors { values: vec![70, 35, -31, 9, 4, 91, 2, 1], shift: 5 });
    let many = (0..32).map(|h| vec![900 * (h % 5) - 400, 33 * (h % 7) - 70]).collect();
    for function in [
        Polynomials { low: -512, bits: 10, polynomials: few, shift: 7, factors },
        Polynomials { low: -512, bits: 10, polynomials: many, shift: 2, factors: None },
    ] {
        let results = |lost: usize| {
            let (mine, theirs) = run(
                &mut End::pair(),
                |end| of_lossy(end, Party::Client, &function, &client, lost),
                |end| of_lossy(end, Party::Server, &function, &server, lost),
            );
            mine.zip_map(&theirs, |x, y| Ring::Pow2(30).add(x, y))
        };
        let mut counter = Counter::default();
        let operation = Function::new(&function, [10, 30], 0).unwrap();
        operation.run(&mut counter, &Count(values.len())).unwrap();
        let count = counter.given();
        let right = results(count);
        for lost in 0..count {
            assert!(*results(lost) != *right, "result {lost} of {count} changes nothing");
        }
        let wrong =
            |x: &u64, y: &u64| Ring::Pow2(30).signed(*y) != ideal(&function, Ring::Pow2(10).signed(*x));
        assert!(!values.iter().zip(right.iter()).any(|(x, y)| wrong(x, y)));
    }
}

/// A function's value by its definition; all its parts have some.
fn ideal(function: &Polynomials, x: i64) -> i64 {
    let round = |x: i64, shift: u32| (x + (1 << (shift - 1))) >> shift;
    let u = x - function.low;
    let (bits, a) = match &function.factors {
        Some(factors) => (7, factors.values[(u >> 7) as usize]),
        None => (10, 1),
    };
    let (segments, size) =
        (function.polynomials.len() as i64, (1 << bits) / function.polynomials.len() as i64);
    let (place, h) = (u % size, u / size % segments);
    let sum = function.polynomials[h as usize].iter().rev().fold(0, |sum, c| sum * place + c);
    let value = round(sum, function.shift);
    function.factors.as_ref().map_or(value, |factors| round(a * value, factors.shift))
}

/// The salt of a step in a session of both parties whose generators are of these seeds, for a client's part.
fn key_salts(seeds: [u8; 2], of_client: Block) -> [Block; 2] {
    let salt = |end: &mut End, me: Party| {
        let rng = &mut Prg::new(Seed::from_bytes([seeds[me as usize]; 16]));
        Transfers::setup_with_salt(end, me, transfer_sets([0; 2]), rng).unwrap().key_salt(of_client).unwrap()
    };
    let (client, server) =
        run(&mut End::pair(), |end| salt(end, Party::Client), |end| salt(end, Party::Server));
    [client, server]
}

#[test]
fn salts_of_comparison_keys_come_from_both_parties() {
    let same = |a: Block, b: Block| a.to_bytes() == b.to_bytes();
    let [client, server] = key_salts([1, 2], Block(7));
    assert!(same(client, server));
    assert!(!same(client, Block(7)));
    // The client's part alone does not choose it, whatever it is; nor does the server's.
    assert!(!same(client, key_salts([1, 3], Block(7))[0]));
    assert!(!same(client, key_salts([1, 2], Block(8))[0]));
    assert!(same(client, key_salts([4, 2], Block(7))[0]));
    let unsalted = |end: &mut End, me: Party| {
        let rng = &mut Prg::new(Seed::from_bytes([me as u8; 16]));
        let transfers = Transfers::setup(end, me, transfer_sets([0; 2]), rng).unwrap();
        assert!(matches!(transfers.key_salt(Block(7)), Err(ProtocolError::NotSetUp(_))));
    };
    run(&mut End::pair(), |end| unsalted(end, Party::Client), |end| unsalted(end, Party::Server));
}
