//! NEON with AES: registers of 128 bits, one block to each, and the kernels compiled for them.
#![allow(
    unsafe_code,
    reason = "vector intrinsics and functions compiled for more than the base instruction set"
)]

use std::arch::aarch64::{
    uint64x2_t, vandq_u64, vcombine_u64, vcreate_u64, vdupq_laneq_u32, vdupq_laneq_u64, vdupq_n_u8,
    vdupq_n_u32, vdupq_n_u64, veorq_u64, vextq_u8, vextq_u64, vld1q_u8, vorrq_u32, vreinterpretq_s64_u64,
    vreinterpretq_u8_u64, vreinterpretq_u32_u64, vreinterpretq_u64_s64, vreinterpretq_u64_u8,
    vreinterpretq_u64_u32, vshlq_n_u32, vshlq_n_u64, vshrq_n_s64, vshrq_n_u32, vst1q_u8,
};
use std::arch::{asm, is_aarch64_feature_detected};

use lanner_primitives::Block;

use super::steps::{self, EvaluatedGroup, GarbledGroup};
use super::vector::{Vector, Vectorized};
use super::{Kernels, ROW};
use crate::circuit::Step;
use crate::half_gates::Row;

/// The table of this machine, if it has AES.
pub(super) fn available() -> impl Iterator<Item = &'static Kernels> {
    is_aarch64_feature_detected!("aes").then_some(&NEON).into_iter()
}

/// One block to an instruction.
const NEON: Kernels = {
    #[target_feature(enable = "neon,aes")]
    fn garble(group: &mut GarbledGroup<'_>, steps: &[Step], rows: &mut [Row]) -> usize {
        // SAFETY: this function is compiled with the vector's instructions.
        let mut engine = unsafe { Vectorized::<uint64x2_t>::new(group.delta) };
        steps::garble(&mut engine, group, steps, rows)
    }
    #[target_feature(enable = "neon,aes")]
    fn evaluate(group: &mut EvaluatedGroup<'_>, steps: &[Step], rows: &[[u8; ROW]]) -> usize {
        // SAFETY: this function is compiled with the vector's instructions.
        let mut engine = unsafe { Vectorized::<uint64x2_t>::new(Block::ZERO) };
        steps::evaluate(&mut engine, group, steps, rows)
    }
    Kernels { name: "Neon", garble, evaluate }
};

/// Rows shifted, bytes substituted, and what is said next. The instruction adds a key before: here none. (The compiler's own functions are
/// inlined nowhere but into functions that have AES.)
macro_rules! aes {
    ($state:expr, $next:literal) => {{
        let mut state: uint64x2_t = $state;
        asm!(
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

// SAFETY: loads and stores are unaligned and of 16 bytes.
unsafe impl Vector for uint64x2_t {
    const BLOCKS: usize = 1;
    /// All ones or zero in the block.
    type Colours = Self;

    #[inline(always)]
    unsafe fn load(from: *const Block) -> Self {
        // SAFETY: the caller vouches for the pointer; loads of bytes need no alignment.
        unsafe { vreinterpretq_u64_u8(vld1q_u8(from.cast())) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut Block) {
        // SAFETY: the caller vouches for the pointer; stores of bytes need no alignment.
        unsafe { vst1q_u8(to.cast(), vreinterpretq_u8_u64(self)) }
    }

    #[inline(always)]
    unsafe fn broadcast(from: *const Block) -> Self {
        // SAFETY: the caller vouches for the pointer.
        unsafe { Self::load(from) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: NEON is part of every machine.
        unsafe { veorq_u64(self, other) }
    }

    #[inline(always)]
    unsafe fn xor3(self, b: Self, c: Self) -> Self {
        // SAFETY: the caller vouches for the instructions.
        unsafe { self.xor(b).xor(c) }
    }

    #[inline(always)]
    unsafe fn sigma(self) -> Self {
        // SAFETY: NEON is part of every machine.
        unsafe {
            let upper = vcombine_u64(vcreate_u64(0), vcreate_u64(u64::MAX));
            veorq_u64(vextq_u64::<1>(self, self), vandq_u64(self, upper))
        }
    }

    #[inline(always)]
    unsafe fn colours(self) -> Self {
        // SAFETY: NEON is part of every machine.
        unsafe {
            let lowest = vreinterpretq_s64_u64(vshlq_n_u64::<63>(vdupq_laneq_u64::<0>(self)));
            vreinterpretq_u64_s64(vshrq_n_s64::<63>(lowest))
        }
    }

    #[inline(always)]
    unsafe fn xor_where(self, colours: Self, other: Self) -> Self {
        // SAFETY: NEON is part of every machine.
        unsafe { veorq_u64(self, vandq_u64(colours, other)) }
    }

    #[inline(always)]
    unsafe fn aes_round(self, key: Self) -> Self {
        // SAFETY: the caller vouches for the instructions.
        unsafe { aes!(self, "aesmc {state:v}.16b, {state:v}.16b").xor(key) }
    }

    #[inline(always)]
    unsafe fn aes_last_round(self, key: Self) -> Self {
        // SAFETY: the caller vouches for the instructions.
        unsafe { aes!(self, "").xor(key) }
    }

    #[inline(always)]
    unsafe fn prefetch(from: *const Block) {
        // SAFETY: a prefetch reads nothing.
        unsafe { asm!("prfm pldl1keep, [{from}]", from = in(reg) from, options(nostack, preserves_flags)) }
    }

    /// With the last word, rotated, in every column, the shift of rows changes nothing.
    #[inline(always)]
    unsafe fn next_round_key(self, constant: u32) -> Self {
        // SAFETY: the caller vouches for the instructions.
        unsafe {
            let last = vdupq_laneq_u32::<3>(vreinterpretq_u32_u64(self));
            let rotated = vorrq_u32(vshrq_n_u32::<8>(last), vshlq_n_u32::<24>(last));
            let word =
                aes!(vreinterpretq_u64_u32(rotated), "").xor(vreinterpretq_u64_u32(vdupq_n_u32(constant)));
            let pairs = self.xor(moved_up::<12>(self));
            pairs.xor3(moved_up::<8>(pairs), word)
        }
    }
}

/// The block moved up by all but so many bytes, with zeros below.
///
/// # Safety
/// The machine has `neon`.
#[inline(always)]
unsafe fn moved_up<const BYTES: i32>(block: uint64x2_t) -> uint64x2_t {
    // SAFETY: NEON is part of every machine.
    unsafe { vreinterpretq_u64_u8(vextq_u8::<BYTES>(vdupq_n_u8(0), vreinterpretq_u8_u64(block))) }
}
