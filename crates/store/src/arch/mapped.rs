//! A file in the address space: all processes that map it have its pages once.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;

use lanner_ring::Region;
use memmap2::Mmap;

use super::check_words;

/// A mapping for reading.
pub(super) struct Mapped(Mmap);

impl Mapped {
    pub(super) fn new(file: &File) -> io::Result<Self> {
        check_words(usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX))?;
        // SAFETY: The file got its name when it was whole, is never written again, and only its owner may do so (mode 0600 in 0700).
        let map = unsafe { Mmap::map(file)? };
        // What was cut off before it was mapped is noticed; then the length is that of the mapping.
        check_words(map.len())?;
        #[cfg(target_os = "linux")]
        map.advise(memmap2::Advice::DontDump)?;
        Ok(Self(map))
    }
}

impl Region for Mapped {
    fn words(&self) -> &[u64] {
        // Mappings begin with a page, and this one is a whole number of words.
        bytemuck::try_cast_slice(&self.0).unwrap_or_default()
    }
}
