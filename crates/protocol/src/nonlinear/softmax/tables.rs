//! The tables of an exponential, with integers alone: the same on every machine.

/// The bits of the pieces that j bits are cut into, the highest first: as few as have at most [`PIECE`] bits, as equal as they can be.
pub(super) fn pieces(halving: u32) -> Vec<u32> {
    let count = halving.div_ceil(PIECE);
    (0..count).map(|piece| (halving + count - 1 - piece) / count).collect()
}

/// For each piece of an exponent's j bits behind the point, in units of `2^-fraction`: the powers `2^-x` for the first, and `1 - 2^-x` for the others,
/// of the x that its values stand for. Each is within 0.51 units.
pub(super) fn tables(halving: u32, fraction: u32) -> Vec<Vec<u64>> {
    let mut above = 0;
    let table = |bits: u32| {
        above += bits;
        let first = above == bits;
        let entry = move |value: u64| {
            let power = (power(value << (u64::BITS - above)) + (1 << (62 - fraction))) >> (63 - fraction);
            if first { power } else { (1 << fraction) - power }
        };
        (0..1 << bits).map(entry).collect()
    };
    pieces(halving).into_iter().map(table).collect()
}

/// `2^-(fraction / 2^64)` in units of `2^-63`, with a relative error below `2^-50`.
fn power(fraction: u64) -> u64 {
    // e^-y for y = fraction ln 2, by Horner's rule on the Taylor series: 1 - y (1 - y/2 (1 - y/3 (...))), in units of 2^-63.
    let y = high_product(fraction, LN_2);
    INVERSES.iter().rev().fold(ONE, |rest, over_n| ONE - high_product(high_product(y, rest), *over_n))
}

/// `floor(a b / 2^64)`.
const fn high_product(a: u64, b: u64) -> u64 {
    ((a as u128 * b as u128) >> 64) as u64
}

/// The most bits of a piece: a table of so many takes about as many gates as the products of another piece.
const PIECE: u32 = 7;
const ONE: u64 = 1 << 63;
/// `ln(2)` in units of `2^-64`, so that `y` is, too.
const LN_2: u64 = 0xb172_17f7_d1cf_79ab;
/// `1/n` in units of `2^-64`, for n from 1 to 16: `(ln 2)^17 / 17!` is below `2^-57`.
const INVERSES: [u64; 16] = {
    let mut inverses = [u64::MAX; 16];
    let mut n = 1;
    while n < 16 {
        inverses[n] = u64::MAX / (n as u64 + 1);
        n += 1;
    }
    inverses
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_powers_of_two() {
        for fraction in [0, 1, 1 << 40, 1 << 62, 1 << 63, 3 << 62, 0x1234_5678_9abc_def0, u64::MAX] {
            let truth = f64::exp2(-(fraction as f64) / f64::exp2(64.0));
            let error = power(fraction) as f64 / f64::exp2(63.0) / truth - 1.0;
            assert!(error.abs() < 1e-15, "{fraction}: {error}");
        }
        assert_eq!(power(0), ONE);
    }

    #[test]
    fn pieces_are_few_and_alike() {
        assert_eq!(pieces(4), [4]);
        assert_eq!(pieces(7), [7]);
        assert_eq!(pieces(10), [5, 5]);
        assert_eq!(pieces(17), [6, 6, 5]);
        assert_eq!(pieces(20), [7, 7, 6]);
    }

    #[test]
    fn tables_hold_the_powers_of_their_pieces() {
        for (halving, fraction) in [(4, 10), (10, 20), (20, 36)] {
            let (mut above, one) = (0, f64::exp2(f64::from(fraction)));
            for (number, (table, bits)) in tables(halving, fraction).iter().zip(pieces(halving)).enumerate() {
                above += bits;
                assert_eq!(table.len(), 1 << bits);
                for (value, entry) in table.iter().enumerate() {
                    let power = one * f64::exp2(-(value as f64) / f64::exp2(f64::from(above)));
                    let truth = if number == 0 { power } else { one - power };
                    assert!((*entry as f64 - truth).abs() <= 0.51, "{halving} {number} {value}");
                }
            }
        }
    }
}
