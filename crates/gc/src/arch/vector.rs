//! The accelerated engine: one algorithm over registers of one, two or four blocks.
#![allow(unsafe_code, reason = "vector intrinsics and the pointers they load from")]

use lanner_primitives::Block;
use zeroize::Zeroize;

use super::{Engine, GATES_PER_SCHEDULE, Gate, ROW};
use crate::circuit::Operand;
use crate::half_gates::{LANES, Lanes, Row};

/// A register of `BLOCKS` blocks.
///
/// # Safety
/// Implementations may use instructions beyond the target's: every method must be called, and inlined, where these are
/// known to exist. Loads and stores touch `BLOCKS` blocks (`broadcast`: one) at addresses of any alignment.
pub(super) unsafe trait Vector: Copy {
    const BLOCKS: usize;
    /// The colour bit of each block, as masks are best kept.
    type Colours: Copy;
    unsafe fn load(from: *const Block) -> Self;
    unsafe fn store(self, to: *mut Block);
    unsafe fn broadcast(from: *const Block) -> Self;
    unsafe fn xor(self, other: Self) -> Self;
    unsafe fn xor3(self, b: Self, c: Self) -> Self;
    unsafe fn sigma(self) -> Self;
    unsafe fn colours(self) -> Self::Colours;
    /// `self`, xor `other` in the blocks with colour one.
    unsafe fn xor_where(self, colours: Self::Colours, other: Self) -> Self;
    unsafe fn aes_round(self, key: Self) -> Self;
    unsafe fn aes_last_round(self, key: Self) -> Self;
    /// Asks for the cache line at an address, which may lie anywhere.
    unsafe fn prefetch(from: *const Block);
    /// The next round key of the AES-128 key schedule in each block.
    unsafe fn next_round_key(self, constant: u32) -> Self;
}

/// Round keys of AES-128.
const ROUND_KEYS: usize = 11;
/// What makes each round key from the last one; the first is the key itself.
const ROUND_CONSTANTS: [u32; ROUND_KEYS] = [0, 1, 2, 4, 8, 0x10, 0x20, 0x40, 0x80, 0x1b, 0x36];
const KEYS: usize = 2 * GATES_PER_SCHEDULE;
/// Rows ahead of which the evaluator asks for tables: they come from memory, and page by page the processor does not see it coming.
const AHEAD: usize = 4;
/// Blocks of a cache line.
const LINE: usize = 4;
/// Keys stored side by side, round by round.
const QUAD: usize = 4;

/// The round keys of the gates ahead: `[key / 4][round][key % 4]`.
#[repr(C, align(64))]
struct Schedules([[[Block; QUAD]; ROUND_KEYS]; KEYS / QUAD]);

/// The arithmetic of gates over vectors `V`.
pub(super) struct Vectorized<V> {
    schedules: Schedules,
    /// Zero and delta: what an operand's labels are xored with, by its inversion.
    flips: [Block; 2],
    vector: std::marker::PhantomData<V>,
}

impl<V: Vector> Vectorized<V> {
    /// The engine for a delta, which evaluation does not use.
    ///
    /// # Safety
    /// The machine must have the instructions of `V`, for as long as the engine lives.
    pub(super) const unsafe fn new(delta: Block) -> Self {
        let schedules = Schedules([[[Block::ZERO; QUAD]; ROUND_KEYS]; KEYS / QUAD]);
        Self { schedules, flips: [Block::ZERO, delta], vector: std::marker::PhantomData }
    }

    /// The first round key of key `key`; those of the later rounds follow at a distance of `QUAD` blocks.
    #[inline(always)]
    fn round_keys(&self, key: usize) -> *const Block {
        let quad: *const Block = self.schedules.0[key / QUAD].as_ptr().cast();
        quad.wrapping_add(key % QUAD)
    }
}

impl<V> Drop for Vectorized<V> {
    fn drop(&mut self) {
        self.flips.zeroize();
    }
}

/// Encrypts the first half of `blocks` under one key and the second half under another.
///
/// # Safety
/// As for [`Vector`]; the keys must come from [`Vectorized::round_keys`].
#[inline(always)]
unsafe fn encrypt<V: Vector, const N: usize>(keys: [*const Block; 2], blocks: &mut [V; N]) {
    // SAFETY: the caller vouches for the instructions and for `ROUND_KEYS` round keys at each pointer.
    unsafe {
        let key = |half: usize, round: usize| V::broadcast(keys[half].add(round * QUAD));
        let (first, second) = (key(0, 0), key(1, 0));
        for (i, block) in blocks.iter_mut().enumerate() {
            *block = block.xor(if i < N / 2 { first } else { second });
        }
        for round in 1..ROUND_KEYS - 1 {
            let (first, second) = (key(0, round), key(1, round));
            for (i, block) in blocks.iter_mut().enumerate() {
                *block = block.aes_round(if i < N / 2 { first } else { second });
            }
        }
        let (first, second) = (key(0, ROUND_KEYS - 1), key(1, ROUND_KEYS - 1));
        for (i, block) in blocks.iter_mut().enumerate() {
            *block = block.aes_last_round(if i < N / 2 { first } else { second });
        }
    }
}

impl<V: Vector> Engine for Vectorized<V> {
    #[inline(always)]
    fn schedule(&mut self, tweak: Block, first: u64) {
        let keys: [Block; KEYS] = std::array::from_fn(|i| tweak ^ Block(u128::from(2 * first + i as u64)));
        // Four registers at a time: as many chains as hide the latency of a round.
        for start in (0..KEYS).step_by(4 * V::BLOCKS) {
            // SAFETY: `new` vouches for the instructions; the four registers end at `start + 4 * BLOCKS <= KEYS`, and
            // `BLOCKS` divides `QUAD`, so each store stays inside its quad's round.
            unsafe {
                let at = |v: usize| start + v * V::BLOCKS;
                let mut chain = [0, 1, 2, 3].map(|v| V::load(keys.as_ptr().add(at(v))));
                for (round, constant) in ROUND_CONSTANTS.into_iter().enumerate() {
                    for (v, key) in chain.iter_mut().enumerate() {
                        let quad = &mut self.schedules.0[at(v) / QUAD];
                        *key = match round {
                            0 => *key,
                            _ => key.next_round_key(constant),
                        };
                        key.store(quad[round].as_mut_ptr().add(at(v) % QUAD));
                    }
                }
            }
        }
    }

    #[inline(always)]
    fn xor(&self, slots: &mut [Lanes], gate: Gate<usize>) {
        let [a, b, out] = pointers(slots, [gate.a, gate.b, gate.out]);
        for lane in (0..LANES).step_by(V::BLOCKS) {
            // SAFETY: `new` vouches for the instructions; `lane + BLOCKS <= LANES`.
            unsafe { V::load(a.add(lane)).xor(V::load(b.add(lane))).store(out.add(lane)) };
        }
    }

    #[inline(always)]
    fn garble_and(&self, index: usize, slots: &mut [Lanes], gate: Gate<Operand>, row: &mut Row) {
        let keys = [self.round_keys(2 * index), self.round_keys(2 * index + 1)];
        let [a, b, out] = pointers(slots, [gate.a.slot(), gate.b.slot(), gate.out]);
        let (garbler, evaluator) = (row.garbler.as_mut_ptr(), row.evaluator.as_mut_ptr());
        // Two registers of lanes make eight blocks to encrypt: enough to fill the pipeline.
        for start in (0..LANES).step_by(2 * V::BLOCKS) {
            // SAFETY: `new` vouches for the instructions; every offset plus `BLOCKS` is at most `LANES`, and a part of
            // `out` is written after the same part of `a` and `b`, which it may overlap, was read.
            unsafe {
                let delta = V::broadcast(&raw const self.flips[1]);
                let sigma_delta = delta.sigma();
                let flip_a = V::broadcast(&raw const self.flips[usize::from(gate.a.inverted())]);
                let flip_b = V::broadcast(&raw const self.flips[usize::from(gate.b.inverted())]);
                let at = [start, start + V::BLOCKS];
                let a0 = at.map(|lane| V::load(a.add(lane)).xor(flip_a));
                let b0 = at.map(|lane| V::load(b.add(lane)).xor(flip_b));
                let (sa, sb) = (a0.map(|x| x.sigma()), b0.map(|x| x.sigma()));
                // sigma is linear, so sigma(x xor delta) = sigma(x) xor sigma(delta).
                let (ta, tb) = (sa.map(|x| x.xor(sigma_delta)), sb.map(|x| x.xor(sigma_delta)));
                let mut e = [sa[0], sa[1], ta[0], ta[1], sb[0], sb[1], tb[0], tb[1]];
                encrypt(keys, &mut e);
                for i in 0..2 {
                    let (pa, pb) = (a0[i].colours(), b0[i].colours());
                    // The feed-forwards of both labels add up to sigma(delta).
                    let sum_a = e[i].xor3(e[2 + i], sigma_delta);
                    let sum_b = e[4 + i].xor3(e[6 + i], sigma_delta);
                    let garbler_half = sum_a.xor_where(pb, delta);
                    garbler_half.store(garbler.add(at[i]));
                    sum_b.xor(a0[i]).store(evaluator.add(at[i]));
                    let hash_a = e[i].xor(sa[i]).xor_where(pa, garbler_half);
                    let hash_b = e[4 + i].xor(sb[i]).xor_where(pb, sum_b);
                    hash_a.xor(hash_b).store(out.add(at[i]));
                }
            }
        }
    }

    #[inline(always)]
    fn evaluate_and(&self, index: usize, slots: &mut [Lanes], gate: Gate<usize>, row: &[u8; ROW]) {
        let keys = [self.round_keys(2 * index), self.round_keys(2 * index + 1)];
        let [a, b, out] = pointers(slots, [gate.a, gate.b, gate.out]);
        let garbler: *const Block = row.as_ptr().cast();
        let evaluator = garbler.wrapping_add(LANES);
        for line in (0..2 * LANES).step_by(LINE) {
            // SAFETY: `new` vouches for the instructions; a prefetch reads nothing.
            unsafe { V::prefetch(garbler.wrapping_add(AHEAD * 2 * LANES + line)) };
        }
        // Four registers of lanes make eight blocks to encrypt: enough to fill the pipeline.
        for start in (0..LANES).step_by(4 * V::BLOCKS) {
            // SAFETY: as in `garble_and`; a row has `LANES` blocks of each half, read without alignment.
            unsafe {
                let at = [0, 1, 2, 3].map(|v| start + v * V::BLOCKS);
                let la = at.map(|lane| V::load(a.add(lane)));
                let lb = at.map(|lane| V::load(b.add(lane)));
                let (sa, sb) = (la.map(|x| x.sigma()), lb.map(|x| x.sigma()));
                let mut e = [sa[0], sa[1], sa[2], sa[3], sb[0], sb[1], sb[2], sb[3]];
                encrypt(keys, &mut e);
                for i in 0..4 {
                    let garbler_half = V::load(garbler.add(at[i]));
                    let evaluator_half = V::load(evaluator.add(at[i])).xor(la[i]);
                    let hash_a = e[i].xor(sa[i]).xor_where(la[i].colours(), garbler_half);
                    let hash_b = e[4 + i].xor(sb[i]).xor_where(lb[i].colours(), evaluator_half);
                    hash_a.xor(hash_b).store(out.add(at[i]));
                }
            }
        }
    }
}

/// The labels of three slots, checked to exist; two may be the same.
#[inline(always)]
fn pointers(slots: &mut [Lanes], index: [usize; 3]) -> [*mut Block; 3] {
    assert!(index.iter().all(|i| *i < slots.len()), "a step names a slot that does not exist");
    let base: *mut Lanes = slots.as_mut_ptr();
    index.map(|i| base.wrapping_add(i).cast())
}
