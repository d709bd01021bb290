//! A file of encoded weights that is there.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::sync::Arc;

use lanner_primitives::parallel;
use lanner_ring::{Extent, Region};
use lanner_step::EncodedWeights;

use super::contents::{Contents, Part, digest};
use crate::arch::region;

/// A file, whole and unchanged.
pub(super) struct Reading {
    region: Arc<dyn Region>,
    contents: Contents,
    had_all: Cell<bool>,
}

impl Reading {
    /// Opens a file and checks every digest.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] if it is not what was written for this identity; any failure of the system.
    pub(super) fn open(file: &File, identity: &[u8; 32]) -> io::Result<Self> {
        let damaged = || io::Error::from(io::ErrorKind::InvalidData);
        let bytes = file.metadata()?.len();
        if !bytes.is_multiple_of(size_of::<u64>() as u64) {
            return Err(damaged());
        }
        let words = usize::try_from(bytes).map_err(|_| damaged())? / size_of::<u64>();
        let region = region(file, &(0..words))?;
        let contents = Contents::parse(region.words(), identity).ok_or_else(damaged)?;
        let words = region.words();
        let right = |part: &Part| digest([&words[part.range.clone()]]) == part.digest;
        if !parallel::map(contents.parts(), right).into_iter().all(|right| right) {
            return Err(damaged());
        }
        Ok(Self { region, contents, had_all: Cell::new(true) })
    }

    /// Whether all was there that was asked for.
    pub(super) fn had_all(&self) -> bool {
        self.had_all.get()
    }
}

impl EncodedWeights for Reading {
    fn get(&self, name: &[u8; 32]) -> Option<Extent> {
        Extent::new(Arc::clone(&self.region), self.contents.part(name)?.range.clone())
    }

    fn put(&self, _: &[u8; 32], _: &mut dyn Iterator<Item = &[u64]>) {
        self.had_all.set(false);
    }
}
