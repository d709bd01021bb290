//! Registers of 128 bits, one block to each.

use std::arch::wasm32::*;

use super::sliced::{self, SLICES, Slices};
use crate::Block;
use crate::arch::registers::{Cipher, Registers};
use crate::arch::wide::RoundKeys;

/// The vectors of WebAssembly.
#[derive(Clone, Copy)]
pub(super) struct Simd128(());

impl Simd128 {
    /// # Safety
    /// None is needed: a module that has the instructions is loaded nowhere else.
    #[inline(always)]
    pub(super) const unsafe fn new() -> Self {
        Self(())
    }
}

// SAFETY of all that is unsafe: loads and stores are of one block, which a reference names.
impl Registers for Simd128 {
    type Register = v128;
    const LANES: usize = 1;

    #[inline(always)]
    fn spread(self, block: Block) -> v128 {
        sliced::register(block)
    }

    #[inline(always)]
    fn load(self, blocks: &[Block]) -> v128 {
        match blocks.first() {
            Some(block) => unsafe { v128_load(std::ptr::from_ref(block).cast()) },
            None => self.spread(Block::ZERO),
        }
    }

    #[inline(always)]
    fn store(self, blocks: &mut [Block], register: v128) {
        if let Some(block) = blocks.first_mut() {
            unsafe { v128_store(std::ptr::from_mut(block).cast(), register) }
        }
    }

    #[inline(always)]
    fn load_words(self, words: &[u64]) -> v128 {
        match words.first_chunk::<2>() {
            Some(words) => unsafe { v128_load(words.as_ptr().cast()) },
            None => self.spread(Block::ZERO),
        }
    }

    #[inline(always)]
    fn store_words(self, words: &mut [u64], register: v128) {
        if let Some(words) = words.first_chunk_mut::<2>() {
            unsafe { v128_store(words.as_mut_ptr().cast(), register) }
        }
    }

    #[inline(always)]
    fn xor(self, a: v128, b: v128) -> v128 {
        v128_xor(a, b)
    }

    #[inline(always)]
    fn and(self, a: v128, b: v128) -> v128 {
        v128_and(a, b)
    }

    #[inline(always)]
    fn add(self, a: v128, b: v128) -> v128 {
        u64x2_add(a, b)
    }

    #[inline(always)]
    fn sigma(self, x: v128) -> v128 {
        v128_xor(words_swapped(x), v128_and(x, u64x2(0, u64::MAX)))
    }

    #[inline(always)]
    fn where_odd(self, x: v128) -> v128 {
        all_bits(u64x2_shl(u64x2_shuffle::<0, 0>(x, x), 63))
    }

    #[inline(always)]
    fn where_other_is_high(self, x: v128) -> v128 {
        all_bits(words_swapped(x))
    }

    #[inline(always)]
    fn where_equal(self, a: v128, b: v128) -> v128 {
        u64x2_eq(a, b)
    }

    #[inline(always)]
    fn low_words(self, a: v128, b: v128) -> v128 {
        u64x2_shuffle::<0, 2>(a, b)
    }

    #[inline(always)]
    fn bits_of(self, words: v128, bit: u32) -> u64 {
        u64::from(u64x2_bitmask(u64x2_shl(words, 63 - bit)))
    }

    #[inline(always)]
    fn byte_places(self, integers: v128, count: u32) -> v128 {
        let count = u32x4_splat(count);
        let low = u64x2_extmul_low_u32x4(integers, count);
        let high = u64x2_extmul_high_u32x4(integers, count);
        u32x4_shl(u32x4_shuffle::<1, 3, 5, 7>(low, high), 4)
    }
}

impl Cipher for Simd128 {
    type Keys = [Slices; 11];

    #[inline(always)]
    fn keys(self, keys: &RoundKeys) -> [Slices; 11] {
        sliced::keys(keys)
    }

    #[inline(always)]
    fn encrypt<const COUNT: usize>(
        self,
        keys: &[Slices; 11],
        mut state: [v128; COUNT],
        added: [v128; COUNT],
    ) -> [v128; COUNT] {
        for (state, added) in state.chunks_mut(SLICES).zip(added.chunks(SLICES)) {
            let mut blocks = [self.spread(Block::ZERO); SLICES];
            blocks[..state.len()].copy_from_slice(state);
            let encrypted = sliced::encrypt(keys, blocks);
            for ((state, encrypted), added) in state.iter_mut().zip(encrypted).zip(added) {
                *state = v128_xor(encrypted, *added);
            }
        }
        state
    }
}

#[inline(always)]
fn words_swapped(x: v128) -> v128 {
    u64x2_shuffle::<1, 0>(x, x)
}

/// Ones in the words that have their highest bit, zeros in the others.
#[inline(always)]
fn all_bits(words: v128) -> v128 {
    i64x2_shr(words, 63)
}
