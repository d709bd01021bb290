//! A part of a file that is read into memory of its own.

use std::fs::File;
use std::io::{self, Read as _, Seek, SeekFrom};
use std::ops::Range;

use lanner_ring::{Buffer, Region};

use super::place;

/// Words of a file, erased when dropped.
pub(super) struct Read {
    words: Buffer,
    len: usize,
}

impl Read {
    pub(super) fn new(mut file: &File, words: &Range<usize>) -> io::Result<Self> {
        let (start, _) = place(file, words)?;
        let (len, before) = (words.len(), file.stream_position()?);
        let mut words = Buffer::zeroed(len);
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(bytemuck::must_cast_slice_mut(&mut words[..len]))?;
        // Who writes goes on where it was.
        file.seek(SeekFrom::Start(before))?;
        Ok(Self { words, len })
    }
}

impl Region for Read {
    fn words(&self) -> &[u64] {
        &self.words[..self.len]
    }
}
