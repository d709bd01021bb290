//! Registers of 128 bits, one block to each.

use std::arch::aarch64::*;

use crate::Block;
use crate::arch::registers::{Registers, Rounds};

/// Rows shifted, bytes substituted, and what is said next. The instruction adds a key before: here none. (The compiler's own functions are
/// inlined nowhere but into functions that have AES.)
macro_rules! aes {
    ($state:expr, $next:literal) => {{
        let mut state: uint64x2_t = $state;
        std::arch::asm!(
            ".arch_extension aes",
            "aese {state:v}.16b, {zero:v}.16b",
            $next,
            state = inout(vreg) state,
            zero = in(vreg) vdupq_n_u64(0),
            options(pure, nomem, nostack, preserves_flags),
        );
        state
    }};
}

/// NEON with AES.
#[derive(Clone, Copy)]
pub(super) struct Neon(());

impl Neon {
    /// # Safety
    /// The machine has `neon` and `aes`.
    #[inline(always)]
    pub(super) const unsafe fn new() -> Self {
        Self(())
    }
}

// SAFETY of all that is unsafe: `Neon` shows that the machine has the instructions. Loads and stores are of one block, which a reference names.
impl Registers for Neon {
    type Register = uint64x2_t;
    const LANES: usize = 1;

    #[inline(always)]
    fn spread(self, block: Block) -> uint64x2_t {
        unsafe { vcombine_u64(vcreate_u64(block.0 as u64), vcreate_u64((block.0 >> 64) as u64)) }
    }

    #[inline(always)]
    fn load(self, blocks: &[Block]) -> uint64x2_t {
        match blocks.first() {
            Some(block) => unsafe { vld1q_u64(std::ptr::from_ref(block).cast()) },
            None => self.spread(Block::ZERO),
        }
    }

    #[inline(always)]
    fn store(self, blocks: &mut [Block], register: uint64x2_t) {
        if let Some(block) = blocks.first_mut() {
            unsafe { vst1q_u64(std::ptr::from_mut(block).cast(), register) }
        }
    }

    #[inline(always)]
    fn load_words(self, words: &[u64]) -> uint64x2_t {
        match words.first_chunk::<2>() {
            Some(words) => unsafe { vld1q_u64(words.as_ptr()) },
            None => self.spread(Block::ZERO),
        }
    }

    #[inline(always)]
    fn store_words(self, words: &mut [u64], register: uint64x2_t) {
        if let Some(words) = words.first_chunk_mut::<2>() {
            unsafe { vst1q_u64(words.as_mut_ptr(), register) }
        }
    }

    #[inline(always)]
    fn xor(self, a: uint64x2_t, b: uint64x2_t) -> uint64x2_t {
        unsafe { veorq_u64(a, b) }
    }

    #[inline(always)]
    fn and(self, a: uint64x2_t, b: uint64x2_t) -> uint64x2_t {
        unsafe { vandq_u64(a, b) }
    }

    #[inline(always)]
    fn add(self, a: uint64x2_t, b: uint64x2_t) -> uint64x2_t {
        unsafe { vaddq_u64(a, b) }
    }

    #[inline(always)]
    fn sigma(self, x: uint64x2_t) -> uint64x2_t {
        unsafe {
            let upper = vcombine_u64(vcreate_u64(0), vcreate_u64(u64::MAX));
            veorq_u64(vextq_u64::<1>(x, x), vandq_u64(x, upper))
        }
    }

    #[inline(always)]
    fn where_odd(self, x: uint64x2_t) -> uint64x2_t {
        unsafe { all_bits(vshlq_n_u64::<63>(vdupq_laneq_u64::<0>(x))) }
    }

    #[inline(always)]
    fn where_other_is_high(self, x: uint64x2_t) -> uint64x2_t {
        unsafe { all_bits(vextq_u64::<1>(x, x)) }
    }

    #[inline(always)]
    fn where_equal(self, a: uint64x2_t, b: uint64x2_t) -> uint64x2_t {
        unsafe { vceqq_u64(a, b) }
    }

    #[inline(always)]
    fn low_words(self, a: uint64x2_t, b: uint64x2_t) -> uint64x2_t {
        unsafe { vzip1q_u64(a, b) }
    }

    #[inline(always)]
    fn bits_of(self, words: uint64x2_t, bit: u32) -> u64 {
        let [low, high] = unsafe { [vgetq_lane_u64::<0>(words), vgetq_lane_u64::<1>(words)] };
        low >> bit & 1 | (high >> bit & 1) << 1
    }

    #[inline(always)]
    fn byte_places(self, integers: uint64x2_t, count: u32) -> uint64x2_t {
        unsafe {
            let (integers, count) = (vreinterpretq_u32_u64(integers), vdupq_n_u32(count));
            let low = vmull_u32(vget_low_u32(integers), vget_low_u32(count));
            let high = vmull_high_u32(integers, count);
            let upper = vuzp2q_u32(vreinterpretq_u32_u64(low), vreinterpretq_u32_u64(high));
            vreinterpretq_u64_u32(vshlq_n_u32::<4>(upper))
        }
    }
}

impl Rounds for Neon {
    #[inline(always)]
    fn round(self, state: uint64x2_t, key: uint64x2_t) -> uint64x2_t {
        let mixed = unsafe { aes!(state, "aesmc {state:v}.16b, {state:v}.16b") };
        self.xor(mixed, key)
    }

    #[inline(always)]
    fn last_round(self, state: uint64x2_t, key: uint64x2_t) -> uint64x2_t {
        self.xor(unsafe { aes!(state, "") }, key)
    }
}

/// Ones in the words that have their highest bit, zeros in the others.
///
/// # Safety
/// The machine has `neon`.
#[inline(always)]
unsafe fn all_bits(words: uint64x2_t) -> uint64x2_t {
    unsafe { vreinterpretq_u64_s64(vshrq_n_s64::<63>(vreinterpretq_s64_u64(words))) }
}
