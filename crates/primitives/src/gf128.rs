//! The field of `2^128` elements, as universal hashes use it.
//!
//! A block is a polynomial over `GF(2)` modulo `X^128 + X^7 + X^2 + X + 1`, bit `i` being the coefficient of `X^i`. No step depends on a value.

use crate::{Block, arch};

/// Replaces every `x[j]` by the sum of `y[j]` and its double ([`Block::double`]), for `j` below the shorter length.
pub fn double_and_add(x: &mut [Block], y: &[Block]) {
    arch::kernels().double_and_add(x, y);
}

/// The sum of `a[i] * b[i]` for `i` below the shorter length.
#[must_use]
pub fn field_dot(a: &[Block], b: &[Block]) -> Block {
    arch::kernels().field_dot(a, b)
}

/// The powers `x, x^2, ...` of an element, as many as asked for.
#[must_use]
pub fn field_powers(x: Block, count: usize) -> Vec<Block> {
    std::iter::successors(Some(x), |power| Some(field_dot(&[*power], &[x]))).take(count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_those_of_the_field() {
        let product = |a, b| field_dot(&[Block(a)], &[Block(b)]).0;
        assert_eq!(product(1 << 127, 2), 0x87);
        assert_eq!(product(0b111, 0b101), 0b1_1011);
        let x = Block(0x0123_4567_89ab_cdef_0f1e_2d3c_4b5a_6978);
        // Every element is a root of X^(2^128) - X.
        let all = (0..128).fold(x, |y, _| field_dot(&[y], &[y]));
        assert!(all == x && field_dot(&[x], &[Block(1)]) == x);
        assert!(field_dot(&[x], &[Block(2)]) == x.double());
        assert_eq!(field_powers(Block(2), 5), [2, 4, 8, 16, 32].map(Block));
        assert!(field_powers(x, 0).is_empty());
    }
}
