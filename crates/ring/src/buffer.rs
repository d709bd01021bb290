//! Coefficient storage aligned to cache lines, so that no vector load straddles two of them.
//!
//! Polynomials come and go by the hundred kilobytes. A general allocator gives such memory back to the system and faults it in
//! again page by page, so each thread keeps a bounded number of lines for the next buffer of the same size.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

use bytemuck::{Pod, Zeroable};
use zeroize::Zeroize;

/// One cache line, or one 512-bit vector.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct Line([u64; LANES]);

const LANES: usize = 8;

/// Words in memory aligned to 64 bytes; dereferences to `[u64]`. The length is a multiple of 8.
///
/// Dropping does not erase: owners of secrets zeroize first.
#[derive(Default)]
pub struct Buffer {
    lines: Vec<Line>,
}

/// The lines that a thread keeps, by their number.
#[derive(Default)]
struct Spare {
    by_length: BTreeMap<usize, Vec<Vec<Line>>>,
    lines: usize,
}

/// 32 MiB a thread.
const MAX_SPARE_LINES: usize = (32 << 20) / size_of::<Line>();

thread_local! {
    static SPARE: RefCell<Spare> = RefCell::default();
}

impl Spare {
    fn take(&mut self, length: usize) -> Option<Vec<Line>> {
        let lines = self.by_length.get_mut(&length)?.pop()?;
        self.lines -= length;
        Some(lines)
    }

    fn keep(&mut self, lines: Vec<Line>) {
        if !lines.is_empty() && self.lines + lines.len() <= MAX_SPARE_LINES {
            self.lines += lines.len();
            self.by_length.entry(lines.len()).or_default().push(lines);
        }
    }
}

/// Kept lines of that number, with whatever they hold.
fn spare(length: usize) -> Option<Vec<Line>> {
    // A thread that is ending has no spare lines any more.
    SPARE.try_with(|spare| spare.borrow_mut().take(length)).ok().flatten()
}

impl Buffer {
    /// `len` zero words, `len` rounded up to a multiple of 8.
    #[must_use]
    pub fn zeroed(len: usize) -> Self {
        let length = len.div_ceil(LANES);
        let lines = match spare(length) {
            Some(mut lines) => {
                lines.fill(Line([0; LANES]));
                lines
            }
            None => vec![Line([0; LANES]); length],
        };
        Self { lines }
    }

    /// Keeps the first `len` words, `len` rounded up to a multiple of 8.
    pub fn truncate(&mut self, len: usize) {
        self.lines.truncate(len.div_ceil(LANES));
    }
}

impl From<&[u64]> for Buffer {
    fn from(words: &[u64]) -> Self {
        let mut buffer = match spare(words.len().div_ceil(LANES)) {
            Some(lines) => Self { lines },
            None => Self::zeroed(words.len()),
        };
        let (copied, padding) = buffer.split_at_mut(words.len());
        copied.copy_from_slice(words);
        padding.fill(0);
        buffer
    }
}

impl Clone for Buffer {
    fn clone(&self) -> Self {
        Self::from(&**self)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let lines = std::mem::take(&mut self.lines);
        // On a thread that is ending the lines are freed.
        let _ = SPARE.try_with(|spare| spare.borrow_mut().keep(lines));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeroed_is_zero_after_another_buffer_of_its_size() {
        let mut first = Buffer::zeroed(64);
        first.fill(7);
        drop(first);
        assert!(Buffer::zeroed(64).iter().all(|word| *word == 0));
    }

    #[test]
    fn copies_are_equal_and_separate() {
        let words: Vec<u64> = (0..41).collect();
        let first = Buffer::from(&words[..]);
        let mut second = first.clone();
        second[0] = 9;
        assert_eq!(&first[..41], &words[..]);
        assert!(first[41..].iter().all(|word| *word == 0));
        assert_eq!(second[0], 9);
    }

    #[test]
    fn a_thread_keeps_a_bounded_number_of_lines() {
        let buffers: Vec<Buffer> = (0..40).map(|_| Buffer::zeroed(1 << 17)).collect();
        drop(buffers);
        SPARE.with(|spare| {
            let spare = spare.borrow();
            assert!(spare.lines <= MAX_SPARE_LINES);
            assert_eq!(
                spare.lines,
                spare.by_length.iter().map(|(length, kept)| length * kept.len()).sum::<usize>()
            );
        });
    }

    #[test]
    fn empty_buffers_are_possible() {
        assert!(Buffer::zeroed(0).is_empty());
        assert!(Buffer::from(&[][..]).is_empty());
    }
}
