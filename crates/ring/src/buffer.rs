//! Coefficient storage aligned to cache lines, so that no vector load straddles two of them.

use std::ops::{Deref, DerefMut};

use bytemuck::{Pod, Zeroable};
use zeroize::Zeroize;

/// One cache line, or one 512-bit vector.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct Line([u64; LANES]);

const LANES: usize = 8;

/// Words in memory aligned to 64 bytes; dereferences to `[u64]`. The length is a multiple of 8.
#[derive(Clone, Default)]
pub struct Buffer {
    lines: Vec<Line>,
}

impl Buffer {
    /// `len` zero words, `len` rounded up to a multiple of 8.
    #[must_use]
    pub fn zeroed(len: usize) -> Self {
        Self { lines: vec![Line([0; LANES]); len.div_ceil(LANES)] }
    }

    /// Keeps the first `len` words, `len` rounded up to a multiple of 8.
    pub fn truncate(&mut self, len: usize) {
        self.lines.truncate(len.div_ceil(LANES));
    }
}

impl From<&[u64]> for Buffer {
    fn from(words: &[u64]) -> Self {
        let mut buffer = Self::zeroed(words.len());
        buffer[..words.len()].copy_from_slice(words);
        buffer
    }
}

impl Deref for Buffer {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        bytemuck::must_cast_slice(&self.lines)
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u64] {
        bytemuck::must_cast_slice_mut(&mut self.lines)
    }
}

impl Zeroize for Buffer {
    fn zeroize(&mut self) {
        self.deref_mut().zeroize();
    }
}
