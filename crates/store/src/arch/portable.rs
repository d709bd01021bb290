//! A file that is read into memory of its own.

use std::fs::File;
use std::io::{self, Read as _, Seek};

use lanner_ring::{Buffer, Region};

use super::check_words;

/// The words of a file, erased when dropped.
pub(super) struct Read {
    words: Buffer,
    len: usize,
}

impl Read {
    pub(super) fn new(mut file: &File) -> io::Result<Self> {
        let bytes = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
        check_words(bytes)?;
        let len = bytes / size_of::<u64>();
        let mut words = Buffer::zeroed(len);
        file.rewind()?;
        file.read_exact(bytemuck::must_cast_slice_mut(&mut words[..len]))?;
        Ok(Self { words, len })
    }
}

impl Region for Read {
    fn words(&self) -> &[u64] {
        &self.words[..self.len]
    }
}
