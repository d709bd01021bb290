//! The local code: the places of the next columns are made while those of the last are read.

use std::hint::black_box;

use super::numbers::Numbers;
use crate::Block;
use crate::arch::registers::Cipher;
use crate::arch::wide::{Numbering, ONES, RoundKeys, WORDS};

/// Adds to each of `out` the `ONES` blocks of `input`, of at least one and fewer than [`MAX_INPUTS`], that words of the stream from block
/// `first` on name. `COLUMNS` outputs are made at a time, whose places fill `REGISTERS` registers.
#[inline(always)]
pub(in crate::arch) fn add_local<S: Cipher, const COLUMNS: usize, const REGISTERS: usize>(
    set: S,
    keys: &RoundKeys,
    input: &[Block],
    first: u64,
    out: &mut [Block],
) {
    const { assert!(COLUMNS * ONES == REGISTERS * WORDS * S::LANES && COLUMNS <= MAX_COLUMNS) };
    let Ok(count) = u32::try_from(input.len()) else { return };
    if !(1..MAX_INPUTS).contains(&count) {
        return;
    }
    let mut names = Names { keys: set.keys(keys), count, next: Numbers::new(set, Numbering::From(first)) };
    let mut turns = [Places::NONE, Places::NONE];
    let [mut places, mut next] = turns.each_mut();
    names.next::<REGISTERS>(set, places);
    for out in out.chunks_mut(COLUMNS) {
        // Made before they are needed, so that the cipher's latency and that of the reads pass at the same time.
        names.next::<REGISTERS>(set, next);
        for (out, places) in
            out.iter_mut().zip(bytemuck::cast_slice::<_, u32>(&places.0).as_chunks::<ONES>().0)
        {
            // In a register: not every sum is written.
            let mut sum = set.load(std::slice::from_ref(out));
            for place in places {
                // SAFETY: of `count` blocks, every place is where one begins.
                let named = unsafe { &*input.as_ptr().byte_add(*place as usize) };
                sum = set.xor(sum, set.load(std::slice::from_ref(named)));
            }
            set.store(std::slice::from_mut(out), sum);
        }
        std::mem::swap(&mut places, &mut next);
    }
}

/// Places of some columns, in bytes from the first block, a word each: those that are written together are in one line of the cache.
#[repr(align(64))]
struct Places([Block; MAX_COLUMNS * ONES / WORDS]);

impl Places {
    const NONE: Self = Self([Block::ZERO; MAX_COLUMNS * ONES / WORDS]);
}

/// The places that the words of a stream name.
struct Names<S: Cipher> {
    keys: S::Keys,
    /// Places there are.
    count: u32,
    /// The numbers of the stream's next blocks.
    next: Numbers<S>,
}

impl<S: Cipher> Names<S> {
    /// Writes the places of the next columns, those of all blocks below `count`.
    #[inline(always)]
    fn next<const REGISTERS: usize>(&mut self, set: S, places: &mut Places) {
        let none = [set.spread(Block::ZERO); REGISTERS];
        let words = set.encrypt(&self.keys, self.next.take(set), none);
        // Read here, so that the compiler sees its 32 bits and needs one product for each two words.
        let count = black_box(self.count);
        for (words, places) in words.into_iter().zip(places.0.chunks_exact_mut(S::LANES)) {
            set.store(places, set.byte_places(words, count));
        }
    }
}

/// Inputs whose places would not fit 32 bits.
pub(in crate::arch) const MAX_INPUTS: u32 = 1 << (32 - Block::BYTES.trailing_zeros());
/// Columns whose places are made at a time. They are few, so that the processor sees the next ones' while it reads.
const MAX_COLUMNS: usize = 16;
