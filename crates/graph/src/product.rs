//! Products of two values, element by element.

use crate::accumulator::Accumulator;

/// The smallest interval that holds the products of the values of two intervals, of which each holds 0.
pub(crate) fn interval(a: [i128; 2], b: [i128; 2]) -> [i128; 2] {
    [(a[0] * b[1]).min(a[1] * b[0]), (a[0] * b[0]).max(a[1] * b[1])]
}

/// How far a product of values of at most these magnitudes may be off if each is off by at most its error; saturates.
pub(crate) fn error(magnitudes: [i64; 2], errors: [i64; 2]) -> i64 {
    let [a, b] = magnitudes;
    let [of_a, of_b] = errors;
    let crossed = a.saturating_mul(of_b).saturating_add(b.saturating_mul(of_a));
    crossed.saturating_add(of_a.saturating_mul(of_b))
}

/// Multiplies every element by the other value's. A product beyond `limit` comes back into the ring; returns how many did.
pub(crate) fn multiply(x: &mut [i64], y: &[i64], limit: i64, ring: Accumulator) -> usize {
    let mut beyond = 0;
    for (x, y) in x.iter_mut().zip(y) {
        let (product, is_beyond) = ring.confine(i128::from(*x) * i128::from(*y), limit);
        beyond += usize::from(is_beyond);
        *x = product;
    }
    beyond
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(x, [-15, ring.centre(-40_000), 0]);
    }
}
