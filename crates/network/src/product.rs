//! Products of two values: element by element, and of matrices.

use crate::accumulator::Accumulator;
use crate::integer::Integer;
pub use crate::matrices::Matrices;

/// The smallest interval that holds the products of the values of two intervals, of which each holds 0.
#[must_use]
pub fn interval(a: [i128; 2], b: [i128; 2]) -> [i128; 2] {
    let times = i128::saturating_mul;
    [times(a[0], b[1]).min(times(a[1], b[0])), times(a[0], b[0]).max(times(a[1], b[1]))]
}

/// How far a product of values of at most these magnitudes may be off if each is off by at most its error; saturates.
#[must_use]
pub fn error(magnitudes: [i64; 2], errors: [i64; 2]) -> i64 {
    let [a, b] = magnitudes;
    let [of_a, of_b] = errors;
    let crossed = a.saturating_mul(of_b).saturating_add(b.saturating_mul(of_a));
    crossed.saturating_add(of_a.saturating_mul(of_b))
}

/// Multiplies every element by the other value's. A product beyond `limit` comes back into the ring; returns how many did.
pub fn multiply<I: Integer>(x: &mut [I], y: &[I], limit: i128, ring: Accumulator) -> usize {
    let mut beyond = 0;
    for (x, y) in x.iter_mut().zip(y) {
        let (product, is_beyond) = x.product(*y, limit, ring);
        beyond += usize::from(is_beyond);
        *x = product;
    }
    beyond
}

/// The products of matrices of two shapes, which fit. A sum beyond `limit` comes back into the ring; also returns how many did.
pub fn multiply_matrices<I: Integer>(
    x: &[I],
    y: &[I],
    [left, right]: [&[usize]; 2],
    limit: i128,
    ring: Accumulator,
) -> (Vec<I>, usize) {
    // A checked network's fit.
    let Ok(matrices) = Matrices::of(left, right) else { return (Vec::new(), 0) };
    let mut beyond = 0;
    let mut confined = |sum: i128| {
        let (sum, is_beyond) = ring.confine(sum, limit);
        beyond += usize::from(is_beyond);
        I::of(sum)
    };
    let sums = I::sums_of_products(&matrices, x, y);
    (sums.into_iter().map(&mut confined).collect(), beyond)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matrices_are_multiplied_in_pairs() {
        let matrices = Matrices::of(&[2, 2, 3], &[2, 3, 2]).unwrap();
        assert_eq!(matrices.product_shape(), [2, 2, 2]);
        let (x, y): (Vec<i64>, Vec<i64>) = ((0..12).collect(), (-6..6).map(|y| 3 * y).collect());
        let entry = |g: usize, r: usize, c: usize| {
            (0..3).map(|i| x[(g * 2 + r) * 3 + i] * y[(g * 3 + i) * 2 + c]).sum::<i64>()
        };
        let places = || (0..2).flat_map(|g| (0..2).flat_map(move |r| (0..2).map(move |c| (g, r, c))));
        let expected: Vec<i64> = places().map(|(g, r, c)| entry(g, r, c)).collect();
        assert_eq!(matrices.products(&x, &y, |sum: i64, x, y| sum + x * y), expected);
        let ring = Accumulator::from_modulus(1 << 16).unwrap();
        let shapes = [&[2, 2, 3][..], &[2, 3, 2]];
        let limit = i128::from(expected.iter().map(|sum| sum.abs()).max().unwrap()) - 1;
        assert_eq!(multiply_matrices(&x, &y, shapes, limit, ring), (expected, 1));
        for (x, y) in [(&[2, 3][..], &[2, 3, 2][..]), (&[2, 2, 3], &[1, 3, 2]), (&[2, 2, 3], &[2, 2, 2])] {
            assert!(Matrices::of(x, y).unwrap_err().contains("no product"));
        }
    }

    #[test]
    fn intervals_are_attained() {
        for a in [[-3, 5], [0, 4], [-7, 0], [0, 0]] {
            for b in [[-2, 9], [0, 3], [-6, 0]] {
                let products = || (a[0]..=a[1]).flat_map(|x| (b[0]..=b[1]).map(move |y| x * y));
                assert_eq!(interval(a, b), [products().min().unwrap(), products().max().unwrap()]);
            }
        }
    }

    #[test]
    fn errors_are_the_largest_there_are() {
        let mut largest = 0;
        for (x, y) in [(5_i64, 7), (-5, 7), (5, -7), (-5, -7)] {
            for (off_x, off_y) in [(2, 3), (-2, 3), (2, -3), (-2, -3)] {
                largest = largest.max(((x + off_x) * (y + off_y) - x * y).abs());
            }
        }
        assert_eq!(error([5, 7], [2, 3]), largest);
        assert_eq!(error([1 << 40, 1 << 40], [1 << 40, 0]), i64::MAX);
    }

    #[test]
    fn products_beyond_the_limit_are_counted_and_stay_in_the_ring() {
        let ring = Accumulator::from_modulus(1 << 16).unwrap();
        let mut x = [3, -200, 1 << 40];
        assert_eq!(multiply(&mut x, &[-5, 200, 1 << 40], ring.limit(0), ring), 2);
        assert_eq!(x, [-15, ring.centre(-40_000) as i64, 0]);
    }
}
