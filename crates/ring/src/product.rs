//! Products of words in two words.

/// The product of two words.
#[inline]
#[must_use]
pub fn product(a: u64, b: u64) -> u128 {
    if cfg!(target_family = "wasm") { by_halves(a, b) } else { u128::from(a) * u128::from(b) }
}

/// The same for WebAssembly, which has no instruction for the high word: of two integers of 128 bits the compiler would call a function.
#[inline]
fn by_halves(a: u64, b: u64) -> u128 {
    let halves = |x: u64| [x & u64::from(u32::MAX), x >> 32];
    let ([a0, a1], [b0, b1]) = (halves(a), halves(b));
    let [crossed_low, crossed_high] = halves(a0 * b1);
    // At most 2^64 - 1: a product of halves is at most (2^32 - 1)^2.
    let middle = a1 * b0 + crossed_low + ((a0 * b0) >> 32);
    let high = a1 * b1 + crossed_high + (middle >> 32);
    u128::from(high) << 64 | u128::from(a.wrapping_mul(b))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn halves_make_the_same_products(words: [u64; 2], ends in proptest::array::uniform2(0..3_usize)) {
            let [a, b] = std::array::from_fn(|i| [words[i], u64::MAX, u64::MAX << 32][ends[i]]);
            prop_assert_eq!(by_halves(a, b), u128::from(a) * u128::from(b));
            prop_assert_eq!(product(a, b), u128::from(a) * u128::from(b));
        }
    }
}
