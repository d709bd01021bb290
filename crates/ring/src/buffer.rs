//! Coefficient storage aligned to cache lines, so that no vector load straddles two of them.
//!
//! Polynomials come and go by the hundred kilobytes. A general allocator gives such memory back to the system and faults it in
//! again page by page, so a bounded number of lines is kept for the next buffer of the same size, of whichever thread. They are kept in
//! several shelves, each behind a lock of its own: a thread begins with one, and goes on to the others where that has none or is full.
//! It never waits for a lock: a shelf in use counts as one that has none.
//!
//! Every buffer is erased when it is dropped: most of what a polynomial passes through on its way is secret, and what is kept is
//! handed to other sessions. Lines that are kept are therefore zero, and a buffer of zeros costs nothing more.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};

use bytemuck::{Pod, Zeroable};
use zeroize::{ZeroizeOnDrop, optimization_barrier};

/// One cache line, or one 512-bit vector.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct Line([u64; LANES]);

const LANES: usize = 8;

/// Words in memory aligned to 64 bytes; dereferences to `[u64]`. The length is a multiple of 8. Erased when dropped.
#[derive(Default)]
pub struct Buffer {
    lines: Vec<Line>,
}

/// The lines that are kept on one shelf, all zero, by their number. No two shelves share a cache line.
#[repr(align(64))]
struct Shelf(Mutex<Spare>);

struct Spare {
    by_length: BTreeMap<usize, Vec<Vec<Line>>>,
    lines: usize,
}

/// 4 MiB on each shelf, 64 MiB in the process.
const MAX_SPARE_LINES: usize = (4 << 20) / size_of::<Line>();
const SHELVES: usize = 16;

static SPARE: [Shelf; SHELVES] =
    [const { Shelf(Mutex::new(Spare { by_length: BTreeMap::new(), lines: 0 })) }; SHELVES];

/// Threads so far that have used a shelf.
static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Where this thread begins.
    static FIRST: usize = THREADS.fetch_add(1, Ordering::Relaxed);
}

/// The shelves that nobody else uses now, one after the other.
fn free_shelves() -> impl Iterator<Item = MutexGuard<'static, Spare>> {
    // A thread that ends drops what it has after its own variables.
    let first = FIRST.try_with(|first| *first).unwrap_or_default();
    (0..SHELVES).filter_map(move |step| match SPARE[first.wrapping_add(step) % SHELVES].0.try_lock() {
        Ok(spare) => Some(spare),
        // What is kept is sound after any panic: lines are moved in and out whole.
        Err(TryLockError::Poisoned(spare)) => Some(spare.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    })
}

impl Spare {
    fn take(&mut self, length: usize) -> Option<Vec<Line>> {
        let lines = self.by_length.get_mut(&length)?.pop()?;
        self.lines -= length;
        Some(lines)
    }

    /// Keeps lines, or gives them back where there are enough.
    fn keep(&mut self, lines: Vec<Line>) -> Vec<Line> {
        if lines.is_empty() || self.lines + lines.len() > MAX_SPARE_LINES {
            return lines;
        }
        self.lines += lines.len();
        self.by_length.entry(lines.len()).or_default().push(lines);
        Vec::new()
    }
}

impl Buffer {
    /// `len` zero words, `len` rounded up to a multiple of 8.
    #[must_use]
    pub fn zeroed(len: usize) -> Self {
        let length = len.div_ceil(LANES);
        let kept = free_shelves().find_map(|mut spare| spare.take(length));
        Self { lines: kept.unwrap_or_else(|| vec![Line::zeroed(); length]) }
    }

    /// Keeps the first `len` words, `len` rounded up to a multiple of 8.
    pub fn truncate(&mut self, len: usize) {
        self.lines.truncate(len.div_ceil(LANES));
    }

    /// Overwrites all lines, those with which the buffer began and that were cut off since among them.
    fn erase(&mut self) {
        self.lines.resize(self.lines.capacity(), Line::zeroed());
        // Faster than volatile writes of words; the barrier keeps the compiler from leaving it out before memory is freed.
        self.lines.fill(Line::zeroed());
        optimization_barrier(&self.lines[..]);
    }
}

impl From<&[u64]> for Buffer {
    fn from(words: &[u64]) -> Self {
        let mut buffer = Self::zeroed(words.len());
        buffer[..words.len()].copy_from_slice(words);
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
        self.erase();
        let mut lines = std::mem::take(&mut self.lines);
        for mut spare in free_shelves() {
            lines = spare.keep(lines);
            if lines.is_empty() {
                break;
            }
        }
        // What is too much is freed without a lock.
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

impl ZeroizeOnDrop for Buffer {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn erasing_reaches_what_was_cut_off() {
        let mut buffer = Buffer::zeroed(64 * LANES);
        buffer.fill(7);
        buffer.truncate(LANES);
        buffer.erase();
        assert_eq!(buffer.lines.len(), 64);
        assert!(buffer.iter().all(|word| *word == 0));
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
    #[cfg_attr(miri, ignore = "erases 80 MiB word by word; the first test erases the same way")]
    fn a_bounded_number_of_lines_is_kept_and_all_are_zero() {
        let words = vec![7; 1 << 17];
        let buffers: Vec<Buffer> = (0..80).map(|_| Buffer::from(&words[..])).collect();
        drop(buffers);
        let mut kept = 0;
        for spare in free_shelves() {
            assert!(spare.by_length.values().flatten().flatten().all(|line| line.0 == [0; LANES]));
            assert!(spare.lines <= MAX_SPARE_LINES);
            let lines = spare.by_length.iter().map(|(length, kept)| length * kept.len()).sum::<usize>();
            assert_eq!(spare.lines, lines);
            kept += lines;
        }
        assert!(kept > 0);
    }

    #[test]
    fn empty_buffers_are_possible() {
        assert!(Buffer::zeroed(0).is_empty());
        assert!(Buffer::from(&[][..]).is_empty());
    }
}
