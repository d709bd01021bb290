//! AES-128 on many blocks at a time, for what is hashed, drawn and named with it.

use zeroize::{Zeroize, Zeroizing};

use crate::Block;

/// Kernels over a key schedule, as a table that instruction sets fill.
pub(crate) struct CipherKernels {
    pub(super) schedule: unsafe fn(&[u8; 16]) -> RoundKeys,
    pub(super) encrypt: unsafe fn(&RoundKeys, &mut [Block]),
    pub(super) counter_mode: unsafe fn(&RoundKeys, u64, &mut [Block]),
    pub(super) hash: unsafe fn(&RoundKeys, &mut [Block], Block, Numbering),
    pub(super) expand: unsafe fn(&RoundKeys, &mut [Block], Numbering, Block) -> Block,
    pub(super) hash_low_words: unsafe fn(&RoundKeys, &[Block], Block, u64, &mut [u64]),
    /// The number of rows stands before the words, so many of them for each block.
    pub(super) hash_runs_to_bits: unsafe fn(&RoundKeys, &[Block], &[Block], u64, usize, &mut [u16]),
    /// One more than the most inputs of `add_local`.
    pub(super) max_inputs: u32,
    pub(super) add_local: unsafe fn(&RoundKeys, &[Block], u64, &mut [Block]),
}

/// A key schedule, in the kernels' own form.
pub(crate) type RoundKeys = [Block; 11];

/// A key with the kernels of this machine.
pub(crate) struct WideCipher {
    keys: RoundKeys,
    kernels: &'static CipherKernels,
}

impl Drop for WideCipher {
    fn drop(&mut self) {
        self.keys.zeroize();
    }
}

// SAFETY of every call below: the table is of this machine.
impl WideCipher {
    /// The schedule of a key.
    pub(super) fn new(kernels: &'static CipherKernels, key: &[u8; 16]) -> Self {
        // SAFETY: see above.
        Self { keys: unsafe { (kernels.schedule)(key) }, kernels }
    }

    /// Replaces every block by its encryption.
    pub(crate) fn encrypt(&self, blocks: &mut [Block]) {
        // SAFETY: see above.
        unsafe { (self.kernels.encrypt)(&self.keys, blocks) }
    }

    /// Fills `bytes` with the encryptions of the 128-bit little-endian integers `first`, `first + 1`, ..., wrapping at
    /// `2^64`; the length is a multiple of 16.
    pub(crate) fn counter_mode(&self, mut first: u64, bytes: &mut [u8]) {
        let mut fill = |blocks: &mut [Block]| {
            // SAFETY: see above.
            unsafe { (self.kernels.counter_mode)(&self.keys, first, blocks) };
            first = first.wrapping_add(blocks.len() as u64);
        };
        if let Ok(blocks) = bytemuck::try_cast_slice_mut(bytes) {
            return fill(blocks);
        }
        // Bytes that do not begin where blocks may.
        let mut blocks = Zeroizing::new([Block::ZERO; 64]);
        for bytes in bytes.chunks_mut(64 * Block::BYTES) {
            let blocks = &mut blocks[..bytes.len() / Block::BYTES];
            fill(blocks);
            bytes.copy_from_slice(Block::slice_as_bytes(blocks));
        }
    }

    /// Replaces every `x[j]` by `H(x[j] xor offset, tweak j)`.
    pub(crate) fn hash(&self, x: &mut [Block], offset: Block, tweaks: Numbering) {
        // SAFETY: see above.
        unsafe { (self.kernels.hash)(&self.keys, x, offset, tweaks) }
    }

    /// Makes of every `x` in the first half of `nodes` its children `H(x, tweak j)`, in its place, and `x xor H(x, tweak j)`, in the
    /// second half, both without the bits that `keep` lacks; returns the sum of the former with all bits.
    pub(crate) fn expand(&self, nodes: &mut [Block], tweaks: Numbering, keep: Block) -> Block {
        // SAFETY: see above.
        unsafe { (self.kernels.expand)(&self.keys, nodes, tweaks, keep) }
    }

    /// Writes the low word of `H(x[j] xor offset, first + j)` to `out[j]`, of as many as there are of both.
    pub(crate) fn hash_low_words(&self, x: &[Block], offset: Block, first: u64, out: &mut [u64]) {
        // SAFETY: see above.
        unsafe { (self.kernels.hash_low_words)(&self.keys, x, offset, first, out) }
    }

    /// Bit `j` of `out[v][r]` becomes bit `r` of `H(x[v] xor offsets[j], first + v)`, for as many offsets as there are, 8 or 16.
    pub(crate) fn hash_runs_to_bits<const ROWS: usize>(
        &self,
        x: &[Block],
        offsets: &[Block],
        first: u64,
        out: &mut [[u16; ROWS]],
    ) {
        const { assert!(ROWS >= 1 && ROWS <= MAX_ROWS) };
        let out = out.as_flattened_mut();
        // SAFETY: see above.
        unsafe { (self.kernels.hash_runs_to_bits)(&self.keys, x, offsets, first, ROWS, out) }
    }

    /// Whether [`Self::add_local`] has room for so many inputs.
    pub(crate) const fn has_room(&self, inputs: u32) -> bool {
        inputs < self.kernels.max_inputs
    }

    /// Adds to each of `out` the `ONES` blocks of `input`, of at least one and of which [there is room](Self::has_room), that words of the
    /// stream from block `first` on name.
    pub(crate) fn add_local(&self, input: &[Block], first: u64, out: &mut [Block]) {
        // SAFETY: see above.
        unsafe { (self.kernels.add_local)(&self.keys, input, first, out) }
    }
}

/// The most rows of [`WideCipher::hash_runs_to_bits`].
pub(crate) const MAX_ROWS: usize = 4;

/// Tweaks of consecutive blocks.
#[derive(Clone, Copy)]
pub(crate) enum Numbering {
    /// A number each from this one on, wrapping at `2^64`.
    From(u64),
    /// The same of all.
    All(u64),
}

impl Numbering {
    /// That of a block.
    #[inline]
    pub(crate) const fn of(self, block: usize) -> u64 {
        match self {
            Self::From(first) => first.wrapping_add(block as u64),
            Self::All(tweak) => tweak,
        }
    }
}

/// Ones of a column of a [`LocalCode`](crate::LocalCode).
pub(crate) const ONES: usize = 10;
/// Words of a block, each of which names a place.
pub(crate) const WORDS: usize = 4;
