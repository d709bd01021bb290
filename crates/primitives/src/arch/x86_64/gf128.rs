//! Sums of products in `GF(2^128)` by carry-less multiplication, reduced once.
#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m128i, __m512i, _mm_clmulepi64_si128, _mm_cvtsi128_si64, _mm_set_epi64x, _mm_setzero_si128,
    _mm_unpackhi_epi64, _mm_xor_si128, _mm512_clmulepi64_epi128, _mm512_loadu_si512, _mm512_setzero_si512,
    _mm512_storeu_si512, _mm512_xor_si512,
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
    joined(block(low), block(middle), block(high))
}

/// As [`field_dot`], four products at a time.
#[target_feature(enable = "avx512f,vpclmulqdq,pclmulqdq,sse4.1")]
pub(super) fn field_dot_wide(a: &[Block], b: &[Block]) -> Block {
    let len = a.len().min(b.len());
    let ((a, last_a), (b, last_b)) = (a[..len].as_chunks::<4>(), b[..len].as_chunks::<4>());
    let mut low = _mm512_setzero_si512();
    let (mut middle, mut high) = (low, low);
    for (a, b) in a.iter().zip(b) {
        let (a, b) = (four(a), four(b));
        low = _mm512_xor_si512(low, _mm512_clmulepi64_epi128::<0x00>(a, b));
        high = _mm512_xor_si512(high, _mm512_clmulepi64_epi128::<0x11>(a, b));
        let crossed =
            _mm512_xor_si512(_mm512_clmulepi64_epi128::<0x01>(a, b), _mm512_clmulepi64_epi128::<0x10>(a, b));
        middle = _mm512_xor_si512(middle, crossed);
    }
    joined(sum(low), sum(middle), sum(high)) ^ field_dot(last_a, last_b)
}

/// The sum from those of the products of low halves, of one half with the other, and of high halves.
fn joined(low: Block, middle: Block, high: Block) -> Block {
    reduce(low ^ Block(middle.0 << 64), high ^ Block(middle.0 >> 64))
}

#[target_feature(enable = "avx512f")]
fn four(blocks: &[Block; 4]) -> __m512i {
    // SAFETY: reads the 64 bytes of the array; unaligned loads are allowed.
    unsafe { _mm512_loadu_si512(blocks.as_ptr().cast()) }
}

/// The sum of four blocks.
#[target_feature(enable = "avx512f")]
fn sum(register: __m512i) -> Block {
    let mut blocks = [Block::ZERO; 4];
    // SAFETY: writes the 64 bytes of the array; unaligned stores are allowed.
    unsafe { _mm512_storeu_si512(blocks.as_mut_ptr().cast(), register) };
    blocks.into_iter().fold(Block::ZERO, |sum, block| sum ^ block)
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
