//! Sums of products in `GF(2^128)` by carry-less multiplication, reduced once.

use std::arch::x86_64::{
    __m128i, _mm_clmulepi64_si128, _mm_cvtsi128_si64, _mm_set_epi64x, _mm_setzero_si128, _mm_unpackhi_epi64,
    _mm_xor_si128,
};

use crate::Block;
use crate::arch::portable::reduce;

/// The sum of the products at equal places.
#[target_feature(enable = "pclmulqdq,sse4.1")]
pub(super) fn field_dot(a: &[Block], b: &[Block]) -> Block {
    let mut low = _mm_setzero_si128();
    let (mut middle, mut high) = (low, low);
    for (a, b) in a.iter().zip(b) {
        let (a, b) = (register(*a), register(*b));
        low = _mm_xor_si128(low, _mm_clmulepi64_si128::<0x00>(a, b));
        high = _mm_xor_si128(high, _mm_clmulepi64_si128::<0x11>(a, b));
        let crossed = _mm_xor_si128(_mm_clmulepi64_si128::<0x01>(a, b), _mm_clmulepi64_si128::<0x10>(a, b));
        middle = _mm_xor_si128(middle, crossed);
    }
    let middle = block(middle);
    reduce(block(low) ^ Block(middle.0 << 64), block(high) ^ Block(middle.0 >> 64))
}

#[target_feature(enable = "sse4.1")]
fn register(x: Block) -> __m128i {
    _mm_set_epi64x((x.0 >> 64) as i64, x.0 as i64)
}

#[target_feature(enable = "sse4.1")]
fn block(x: __m128i) -> Block {
    let (low, high) = (_mm_cvtsi128_si64(x) as u64, _mm_cvtsi128_si64(_mm_unpackhi_epi64(x, x)) as u64);
    Block(u128::from(high) << 64 | u128::from(low))
}
