//! The cyclic transform equals its definition for every size, and undoes itself.

use super::common::random;
use crate::{Dft, Dft2, Modulus, RingError};

/// 20 bits with 2^14 * 63 | q - 1; 25 bits with 2^14 * 23 * 89; 30, 37 and 61 bits.
const PRIMES: [u64; 5] = [1_032_193, 33_538_049, 1_073_692_673, 137_438_822_401, 2_305_843_009_211_596_801];

const SIZES: [usize; 24] =
    [1, 2, 3, 4, 6, 7, 8, 9, 12, 14, 16, 18, 21, 23, 24, 28, 32, 36, 42, 48, 56, 63, 64, 128];

/// Sizes for which this prime has a root.
fn sizes(q: u64) -> impl Iterator<Item = usize> {
    SIZES.into_iter().filter(move |n| (q - 1).is_multiple_of(*n as u64))
}

/// The transform along one axis of an `n x width` matrix by definition.
fn by_definition(modulus: &Modulus, root: u64, values: &[u64], n: usize) -> Vec<u64> {
    let width = values.len() / n;
    let powers: Vec<u64> = (0..n).map(|i| modulus.pow(root, i as u64)).collect();
    let value = |k: usize, column: usize| {
        let term = |i: usize| modulus.mul(values[i * width + column], powers[i * k % n]);
        (0..n).fold(0, |sum, i| modulus.add(sum, term(i)))
    };
    (0..n * width).map(|place| value(place / width, place % width)).collect()
}

#[test]
fn transforms_equal_their_definition() {
    for q in PRIMES {
        let modulus = Modulus::new(q).unwrap();
        assert!(sizes(q).count() >= 8);
        for n in sizes(q) {
            let dft = Dft::new(&modulus, n).unwrap();
            // One row, and runs that are no multiple of a block.
            for width in if n < 40 { [1, 70] } else { [1, 3] } {
                let largest = vec![q - 1; n * width];
                for input in [largest, random(q, n * width, 1), vec![0; n * width]] {
                    let mut values = input.clone();
                    dft.forward(&mut values);
                    assert_eq!(values, by_definition(&modulus, dft.root(), &input, n), "q = {q}, n = {n}");
                    dft.inverse(&mut values);
                    assert_eq!(values, input, "q = {q}, n = {n}");
                }
            }
            dft.forward(&mut []);
        }
    }
}

#[test]
fn roots_have_their_order() {
    for q in PRIMES {
        let modulus = Modulus::new(q).unwrap();
        for n in sizes(q) {
            let root = Dft::new(&modulus, n).unwrap().root();
            let order = (1..=n).find(|e| modulus.pow(root, *e as u64) == 1);
            assert_eq!(order, Some(n));
        }
    }
}

/// The cyclic convolution by definition.
fn cyclic_convolution(modulus: &Modulus, a: &[u64], b: &[u64], [height, width]: [usize; 2]) -> Vec<u64> {
    let mut out = vec![0; a.len()];
    for (i, x) in a.iter().enumerate() {
        for (j, y) in b.iter().enumerate() {
            let (row, column) = ((i / width + j / width) % height, (i % width + j % width) % width);
            let sum = &mut out[row * width + column];
            *sum = modulus.add(*sum, modulus.mul(*x, *y));
        }
    }
    out
}

#[test]
fn products_of_transforms_are_cyclic_convolutions() {
    for (q, shape) in
        [(1_032_193, [7, 12]), (1_032_193, [1, 9]), (33_538_049, [16, 4]), (137_438_822_401, [8, 8])]
    {
        let modulus = Modulus::new(q).unwrap();
        let dft = Dft2::new(&modulus, shape).unwrap();
        let length = shape[0] * shape[1];
        let (mut a, mut b) = (random(q, length, 1), random(q, length, 2));
        let expected = cyclic_convolution(&modulus, &a, &b, shape);
        dft.forward(&mut a);
        dft.forward(&mut b);
        let mut product: Vec<u64> = a.iter().zip(&b).map(|(x, y)| modulus.mul(*x, *y)).collect();
        dft.inverse(&mut product);
        assert_eq!(product, expected, "q = {q}, {shape:?}");
    }
}

#[test]
fn an_axis_may_be_left_as_it_is() {
    let modulus = Modulus::new(1_032_193).unwrap();
    // Five does not divide q - 1.
    let input = random(1_032_193, 20, 3);
    let dft = Dft2::along(&modulus, [4, 5], [true, false]).unwrap();
    let mut values = input.clone();
    dft.forward(&mut values);
    let root = Dft::new(&modulus, 4).unwrap().root();
    assert_eq!(values, by_definition(&modulus, root, &input, 4));
    dft.inverse(&mut values);
    assert_eq!(values, input);
    let rows = Dft2::along(&modulus, [5, 4], [false, true]).unwrap();
    let mut values = input.clone();
    rows.forward(&mut values);
    let each = input.chunks(4).flat_map(|row| by_definition(&modulus, root, row, 4));
    assert_eq!(values, each.collect::<Vec<_>>());
    assert_eq!(rows.shape(), [5, 4]);
}

#[test]
fn sizes_without_a_root_are_refused() {
    let modulus = Modulus::new(1_032_193).unwrap();
    for n in [0, 5, 11, 1 << 15, 49] {
        assert_eq!(Dft::new(&modulus, n).unwrap_err(), RingError::NoRootOfOrder { q: 1_032_193, n });
        assert!(Dft2::new(&modulus, [n, 4]).is_err());
    }
}
