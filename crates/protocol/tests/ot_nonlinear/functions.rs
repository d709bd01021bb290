//! Functions by polynomials and products of secrets equal their formulas, whatever the shares.

use lanner_primitives::Ring;
use lanner_step::Party;
use lanner_transfers::{End, Factors, Layer, Polynomials};
use rand_core::Rng;

use crate::common::{rng, signed};
use crate::ot_nonlinear::{Case, outputs, rescale};

/// A function's value, step by step as its definition says.
fn ideal(function: &Polynomials, x: i64) -> i64 {
    let Polynomials { low, bits, polynomials, shift, factors } = function;
    let u = (x - low).clamp(0, (1 << bits) - 1);
    let factor_bits = factors.as_ref().map_or(0, |factors| factors.values.len().trailing_zeros());
    let within = bits - factor_bits;
    let rest = within - polynomials.len().trailing_zeros();
    let (a, h, e) = (u >> within, (u & ((1 << within) - 1)) >> rest, u & ((1 << rest) - 1));
    let sum = polynomials[h as usize].iter().rev().fold(0, |sum, c| sum * e + c);
    let value = rescale(sum, *shift);
    factors.as_ref().map_or(value, |factors| rescale(factors.values[a as usize] * value, factors.shift))
}

/// Random coefficients of so many bits for `2^place` segments.
fn polynomials(place: u32, widths: &[u32], number: u8) -> Vec<Vec<i64>> {
    let mut rng = rng(number);
    let mut coefficient = |bits: &u32| (rng.next_u64() >> (64 - bits)) as i64 - (1 << (bits - 1));
    (0..1 << place).map(|_| widths.iter().map(&mut coefficient).collect()).collect()
}

fn case(function: &Polynomials, secrets: Vec<i64>, from: u32, to: u32, shift: u32) -> Case {
    Case::new(Layer::function(function, secrets.len(), from, to, shift).unwrap(), secrets, from)
}

/// Cases with what they must give.
fn check(cases: Vec<(Case, Vec<i64>)>) {
    let (cases, expected): (Vec<Case>, Vec<Vec<i64>>) = cases.into_iter().unzip();
    for (number, (got, expected)) in outputs(&cases).iter().zip(expected).enumerate() {
        assert!(*got == expected, "case {number}");
    }
}

#[test]
fn functions_equal_their_formula_on_whole_domains_and_beyond() {
    // Bits of the domain, of the segments' numbers, and of the coefficients; bits dropped in the end.
    let shapes: [(u32, u32, &[u32], u32); 10] = [
        (1, 1, &[9], 0),
        (6, 6, &[20], 0),
        (8, 8, &[12], 3),
        (10, 3, &[14], 5),
        (10, 3, &[14, 8], 5),
        (9, 4, &[20, 12, 6], 8),
        (8, 2, &[20, 14, 8, 3], 9),
        (7, 0, &[16, 9, 4], 6),
        (4, 4, &[10, 5], 2),
        // Rows of two hashes.
        (8, 3, &[48, 40, 34, 28], 20),
    ];
    let mut all = Vec::new();
    for (number, (bits, place, widths, drop)) in shapes.into_iter().enumerate() {
        let polynomials = polynomials(place, widths, number as u8);
        for low in [-(1 << bits) / 2, 0, 3, -(1 << bits)] {
            let function =
                Polynomials { low, bits, polynomials: polynomials.clone(), shift: drop, factors: None };
            let (from, to) = (bits + 4, 40);
            let reach = (1 << (from - 1)) - low.abs() - 1;
            let domain = low - 9..low + (1 << bits) + 9;
            let secrets: Vec<i64> = domain.chain([-reach, reach]).filter(|x| x.abs() <= reach).collect();
            let expected = secrets.iter().map(|x| ideal(&function, *x)).collect();
            all.push((case(&function, secrets, from, to, 0), expected));
        }
    }
    check(all);
}

/// Bits of the domain, of the factors' numbers, of the segments' and of the coefficients; bits dropped of the sum and of the product.
type Scaled = (u32, u32, u32, &'static [u32], u32, u32);

#[test]
fn factors_multiply_what_the_low_bits_give() {
    let shapes: [Scaled; 9] = [
        (1, 1, 0, &[9], 0, 0),
        (6, 3, 3, &[12], 0, 4),
        (6, 2, 0, &[12], 1, 1),
        (9, 3, 2, &[20, 12, 6], 8, 7),
        (10, 4, 0, &[16, 9, 4], 6, 1),
        (10, 1, 3, &[14, 8], 5, 0),
        (8, 8, 0, &[7], 2, 3),
        (9, 2, 3, &[30, 20, 14, 8], 12, 20),
        (11, 4, 7, &[21], 13, 5),
    ];
    let mut all = Vec::new();
    for (number, (bits, factor, place, widths, drop, last)) in shapes.into_iter().enumerate() {
        let values = polynomials(factor, &[13], 50 + number as u8).concat();
        let factors = Some(Factors { values, shift: last });
        let polynomials = polynomials(place, widths, number as u8);
        for low in [-(1 << bits) / 2, 3] {
            let function = Polynomials {
                low,
                bits,
                polynomials: polynomials.clone(),
                shift: drop,
                factors: factors.clone(),
            };
            for (from, to) in [(bits + 4, 44), (bits, 44), (bits + 3, 5)] {
                if from == bits && low != -(1 << bits) / 2 {
                    continue;
                }
                let reach = (1 << (from - 1)) - if from == bits { 0 } else { low.abs() + 1 };
                let domain = low - 9..low + (1 << bits) + 9;
                let secrets: Vec<i64> = domain.filter(|x| (-reach..reach).contains(x)).collect();
                let ring = Ring::Pow2(to);
                let cut = |x: &i64| ring.signed(ring.embed(ideal(&function, *x)));
                let expected = secrets.iter().map(cut).collect();
                all.push((case(&function, secrets, from, to, 0), expected));
            }
        }
    }
    check(all);
}

#[test]
fn a_domain_that_is_the_whole_ring_needs_no_clipping() {
    let polynomials = polynomials(5, &[24, 14], 77);
    let function = Polynomials { low: -512, bits: 10, polynomials, shift: 12, factors: None };
    let secrets: Vec<i64> = (-512..512).collect();
    let expected: Vec<i64> = secrets.iter().map(|x| ideal(&function, *x)).collect();
    // Into rings narrower and wider than what is left of the sums.
    let narrow = Ring::Pow2(9);
    let cut = expected.iter().map(|y| narrow.signed(narrow.embed(*y))).collect();
    check(vec![
        (case(&function, secrets.clone(), 10, 30, 0), expected),
        (case(&function, secrets, 10, 9, 0), cut),
    ]);
}

/// Of values that do not lie beyond an end nothing is compared with it, and less is sent; they may lie anywhere beyond the other.
#[test]
fn an_end_that_no_value_lies_beyond_is_not_compared_with() {
    let polynomials = polynomials(4, &[20, 12], 21);
    let mut all = Vec::new();
    for (low, within) in [(0, End::Low), (-40, End::Low), (-255, End::High), (-200, End::High)] {
        let function =
            Polynomials { low, bits: 8, polynomials: polynomials.clone(), shift: 7, factors: None };
        for (from, shift) in [(11, 0), (16, 0), (41, 0), (30, 9)] {
            if shift > 0 && within == End::Low {
                assert!(Layer::function_within(&function, 1, [from, 16], shift, Some(within)).is_err());
                continue;
            }
            let (top, last) = (1_i64 << (from - shift - 2), low + 255);
            let near = |at: i64| (at - 3..at + 4).collect::<Vec<_>>();
            let mut secrets: Vec<i64> =
                [near(low), near(last), near(0), (low..last).step_by(7).collect()].concat();
            secrets.extend([top, -top, top - 1, 1 - top, 2 * top - 260, 260 - 2 * top]);
            secrets.retain(|x| if within == End::Low { *x >= low } else { *x <= last });
            let expected = secrets.iter().map(|x| ideal(&function, *x)).collect();
            let count = secrets.len();
            let secrets = secrets.into_iter().map(|x| x << shift).collect();
            let layer = |within| Layer::function_within(&function, count, [from, 16], shift, within).unwrap();
            let sent = |within| layer(within).online_cost().bytes();
            assert!(sent(Some(within)) < sent(None));
            all.push((Case::new(layer(Some(within)), secrets, from), expected));
        }
    }
    check(all);
}

#[test]
fn values_are_rounded_on_their_way_into_the_domain() {
    let polynomials = polynomials(4, &[20, 12], 5);
    let function = Polynomials { low: -100, bits: 8, polynomials, shift: 7, factors: None };
    let mut all = Vec::new();
    for (from, shift) in [(20, 7), (37, 20), (60, 45)] {
        let top = (1_i64 << (from - 1)) - (120 << shift);
        let edge = |at: i64| [-1, 0, 1].map(|d| (at << shift) + (1 << (shift - 1)) + d);
        let mut secrets: Vec<i64> = [-101, -100, -1, 0, 154, 155, 156].into_iter().flat_map(edge).collect();
        secrets.extend([top, -top]);
        secrets.extend(signed(500, 300 << shift, &mut rng(from as u8)));
        let expected = secrets.iter().map(|x| ideal(&function, rescale(*x, shift))).collect();
        all.push((case(&function, secrets, from, 16, shift), expected));
    }
    // The whole ring that is left.
    let whole = Polynomials { low: -128, ..function };
    let secrets: Vec<i64> = signed(700, (127 << 6) + 31, &mut rng(8));
    let expected = secrets.iter().map(|x| ideal(&whole, rescale(*x, 6))).collect();
    all.push((case(&whole, secrets, 14, 16, 6), expected));
    check(all);
}

#[test]
fn products_of_secrets_are_right_modulo_every_power() {
    let mut all = Vec::new();
    for bits in [2, 3, 8, 17, 33, 62] {
        let top = (1_i64 << (bits - 1)) - 1;
        let edges = [0, 1, -1, top, -top, -top - 1];
        let pairs: Vec<(i64, i64)> = edges.into_iter().flat_map(|x| edges.map(|y| (x, y))).collect();
        let (left, right): (Vec<i64>, Vec<i64>) = pairs.into_iter().unzip();
        let ring = Ring::Pow2(bits);
        let product = |(x, y): (&i64, &i64)| ring.signed(ring.embed(x.wrapping_mul(*y)));
        let expected = left.iter().zip(&right).map(product).collect();
        let layer = Layer::product(left.len(), bits).unwrap();
        all.push((Case::new(layer, [left, right].concat(), bits), expected));
    }
    check(all);
}

#[test]
fn products_of_matrices_are_right_modulo_every_power() {
    let mut all = Vec::new();
    // More rows than columns or fewer, one of each, rows of whole hashes and not.
    let shapes = [[1, 1, 1, 1], [2, 3, 4, 5], [3, 5, 2, 3], [2, 4, 1, 9], [4, 7, 3, 1], [1, 1, 9, 1]];
    for (number, (sides, bits)) in
        shapes.into_iter().flat_map(|sides| [2, 13, 33, 62].map(|bits| (sides, bits))).enumerate()
    {
        let ([groups, rows, inner, columns], ring) = (sides, Ring::Pow2(bits));
        let top = (1_i64 << (bits - 1)) - 1;
        let draw = |count, number| {
            let mut values = signed(count, top, &mut rng(number));
            values[0] = -top - 1;
            values[count - 1] = top;
            values
        };
        let (left, right) = (draw(groups * rows * inner, number as u8), draw(groups * inner * columns, 99));
        let sum = |at: usize| {
            let (line, column) = (at / columns, at % columns);
            let product = |j: usize| {
                left[line * inner + j].wrapping_mul(right[(line / rows * inner + j) * columns + column])
            };
            ring.signed(ring.embed((0..inner).map(product).fold(0, i64::wrapping_add)))
        };
        let expected = (0..groups * rows * columns).map(sum).collect();
        let layer = Layer::matrix_product(sides, bits).unwrap();
        all.push((Case::new(layer, [left, right].concat(), bits), expected));
    }
    check(all);
    for sides in [[0, 1, 1, 1], [1, 1, 1, 1 << 40], [usize::MAX, 2, 1, 1]] {
        assert!(Layer::matrix_product(sides, 8).is_err());
    }
    assert!([1, 63].map(|bits| Layer::matrix_product([1; 4], bits).is_err()) == [true; 2]);
}

#[test]
fn functions_beyond_their_bounds_are_refused() {
    let good = Polynomials { low: -8, bits: 4, polynomials: vec![vec![1, 2]; 4], shift: 1, factors: None };
    let refused =
        |function: Polynomials, from, to, shift| Layer::function(&function, 1, from, to, shift).is_err();
    assert!(!refused(good.clone(), 8, 8, 0) && !refused(good.clone(), 4, 8, 0));
    assert!(Layer::function(&good, 0, 8, 8, 0).is_err());
    for (from, to, shift) in [(63, 8, 0), (8, 63, 0), (8, 0, 0), (8, 8, 5), (4, 8, 1), (8, 8, 9)] {
        assert!(refused(good.clone(), from, to, shift), "{from} {to} {shift}");
    }
    let with = |polynomials| Polynomials { polynomials, ..good.clone() };
    for polynomials in [vec![], vec![vec![]; 4], vec![vec![1]; 3], vec![vec![1; 5]; 4], vec![vec![1]; 32]] {
        assert!(refused(with(polynomials), 12, 12, 0));
    }
    assert!(refused(with(vec![vec![1], vec![1, 2]]), 12, 12, 0));
    assert!(refused(with(vec![vec![i64::MIN]; 2]), 12, 12, 0));
    assert!(refused(with(vec![vec![0, 1 << 56]; 2]), 12, 12, 0));
    assert!(refused(Polynomials { low: i64::MIN, ..good.clone() }, 60, 8, 0));
    assert!(refused(Polynomials { bits: 21, ..good.clone() }, 60, 8, 0));
    for shift in [60, 129, 200, u32::MAX] {
        assert!(refused(Polynomials { shift, ..good.clone() }, 60, 8, 0));
    }
    assert!(Layer::product(0, 8).is_err() && Layer::product(1, 63).is_err() && Layer::product(1, 1).is_err());
}

/// Results of fewer bits than a place in a segment has, and of one bit.
#[test]
fn results_may_be_narrower_than_places() {
    let polynomials = vec![vec![3, 5, 7, 1]];
    let function = Polynomials { low: -512, bits: 10, polynomials, shift: 0, factors: None };
    let secrets: Vec<i64> = (-512..512).collect();
    let cases = [1, 2, 4, 9].map(|to| {
        let ring = Ring::Pow2(to);
        let cut = secrets.iter().map(|x| ring.signed(ring.embed(ideal(&function, *x)))).collect();
        (case(&function, secrets.clone(), 10, to, 0), cut)
    });
    check(cases.into());
}

/// Messages and bits online, for each value: counted by hand from the diagram of the protocol's page.
#[test]
fn functions_take_what_their_page_says() {
    let with =
        |low, bits, polynomials, shift, factors| Polynomials { low, bits, polynomials, shift, factors };
    // A table of 8 places: a place and 8 entries of 8 bits, all of the ring. One of 16 places has two digits.
    let table = with(-4, 3, (0..8).map(|place| vec![place * 37 - 150]).collect(), 0, None);
    let larger = with(-8, 4, (0..16).map(|place| vec![place * 37 - 300]).collect(), 0, None);
    // Lines on 8 segments of 4 places, over the whole ring: sums from 0 to 101 + 3 100 have 9 bits and one for wraps, slopes of 0 and 100 with two
    // zeros behind them 5 bits and one, where the product has 8; all constants are the same.
    let slopes = |h: i64| vec![101, 100 * (h % 2)];
    let lines = with(-16, 5, (0..8).map(slopes).collect(), 0, None);
    // A line of 4 places, public, times one of 8 factors: sums from 2 to 11 with half of a unit, of 4 bits and one for wraps, then b from 1 to 5;
    // products from 9 to 648 with half of a unit, of 10 bits and one for wraps.
    let factors = Some(Factors { values: (0..8).map(|a| 1 << a).collect(), shift: 4 });
    let scaled = with(-16, 5, vec![vec![1, 3]], 1, factors);
    let rows = [
        (Layer::function(&table, 64, 3, 8, 0), 2, 3 + 8 * 8, [0, 3]),
        (
            Layer::function(&larger, 64, 4, 8, 0),
            // The carry and its value, the vectors, their products, the values of seven bits.
            2 + 2 + 2 + 2 + 2,
            (2 + 4) + (1 + 1) + 2 * (2 + 4 * 3) + 2 * 3 * (1 + 3) + (2..=8).sum::<usize>(),
            [2 + 1 + 3 + 7, 4 + 3],
        ),
        (
            Layer::function(&lines, 64, 5, 10, 0),
            // The carry and its value, the lookup, the slopes' wraps, the product.
            2 + 2 + 2 + 2 + 3,
            (2 + 4) + (1 + 2) + (3 + 8 * 6) + (1 + 2) + 2 * (2 + 8 + 7) + 2 * (1 + 6),
            [2 + 1 + 1, 2 + 1 + 3 + 2 + 1],
        ),
        (
            Layer::function(&scaled, 64, 5, 8, 0),
            // The carry and its value, the product, the lowest bits' product with the wraps, the factors, the carry of four bits, its value
            // with the wraps.
            2 + 2 + 3 + 2 + 3 + 2 + 2,
            (2 + 4)
                + (1 + 2)
                + (2 * (2 + 5 + 4) + 2 * (1 + 3))
                + (1 + 11 + 1 + 7)
                + 2 * (3 + 8 * 11)
                + (4 + 16)
                + (1 + 7 + 1 + 1),
            [2 + 1 + 6 + 2 + 6, 4 + 2],
        ),
        (Layer::product(64, 8), 3, 2 * 8 + 8 * 9, [8, 8]),
        // 64 numbers, each of which multiplies a row of 16.
        (Layer::matrix_product([2, 4, 8, 16], 8), 3, 2 * 8 + 16 * 8 * 9, [8, 8]),
        // The other operand has fewer numbers then.
        (Layer::matrix_product([2, 16, 8, 4], 8), 3, 2 * 8 + 16 * 8 * 9, [8, 8]),
    ];
    for (number, (layer, messages, bits, transfers)) in rows.into_iter().enumerate() {
        let layer = layer.unwrap();
        let bytes: usize = layer.messages().map(|(_, bytes)| bytes).sum();
        let both = [Party::Client, Party::Server].map(|party| layer.transfers(party) / 64);
        let found = (layer.messages().count(), 8 * bytes / 64, both[0] + both[1]);
        assert_eq!(found, (messages, bits, transfers[0] + transfers[1]), "{number}");
    }
}
