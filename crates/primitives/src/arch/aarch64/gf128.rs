//! Sums of products in `GF(2^128)` by multiplications of polynomials, reduced once.

use std::arch::aarch64::vmull_p64;

use crate::Block;
use crate::arch::portable::reduce;

/// The sum of the products at equal places.
#[target_feature(enable = "neon,aes")]
pub(super) fn field_dot(a: &[Block], b: &[Block]) -> Block {
    let (mut low, mut middle, mut high) = (0, 0, 0);
    for (a, b) in a.iter().zip(b) {
        let [a, b] = [a.0, b.0].map(|block| [block as u64, (block >> 64) as u64]);
        low ^= vmull_p64(a[0], b[0]);
        high ^= vmull_p64(a[1], b[1]);
        middle ^= vmull_p64(a[0], b[1]) ^ vmull_p64(a[1], b[0]);
    }
    reduce(Block(low ^ middle << 64), Block(high ^ middle >> 64))
}
