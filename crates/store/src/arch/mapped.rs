//! A part of a file in the address space: all processes that map it have its pages once.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::ops::Range;

use lanner_ring::Region;
use memmap2::{Mmap, MmapOptions};

use super::place;

/// A mapping for reading.
pub(super) struct Mapped(Mmap);

impl Mapped {
    pub(super) fn new(file: &File, words: &Range<usize>) -> io::Result<Self> {
        let (start, bytes) = place(file, words)?;
        // SAFETY: These words are in the file, are never written again, and only their owner may cut them off (mode 0600 in 0700).
        let map = unsafe { MmapOptions::new().offset(start).len(bytes).map(file)? };
        #[cfg(target_os = "linux")]
        map.advise(memmap2::Advice::DontDump)?;
        Ok(Self(map))
    }
}

impl Region for Mapped {
    fn words(&self) -> &[u64] {
        // Mappings begin with a page and parts with a line, and this one is a whole number of words.
        bytemuck::try_cast_slice(&self.0).unwrap_or_default()
    }
}
