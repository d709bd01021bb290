//! A file of encoded weights that is being made.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};

use bytemuck::must_cast_slice;
use lanner_ring::Extent;
use lanner_step::EncodedWeights;
use sha2::{Digest, Sha256};

use super::contents::{HEAD, LINE, Part, entry, head};
use crate::arch::region;

/// A file, as far as it has come. The first failure is told when it is finished.
pub(super) struct Writing {
    identity: [u8; 32],
    draft: RefCell<io::Result<Draft>>,
}

struct Draft {
    file: BufWriter<File>,
    /// Words that are written.
    words: usize,
    parts: BTreeMap<[u8; 32], Part>,
}

impl Writing {
    /// Begins a file that is empty.
    pub(super) fn new(file: File, identity: &[u8; 32]) -> io::Result<Self> {
        let mut draft = Draft { file: BufWriter::new(file), words: 0, parts: BTreeMap::new() };
        draft.write(&[0; HEAD])?;
        Ok(Self { identity: *identity, draft: RefCell::new(Ok(draft)) })
    }

    /// Completes the file; it is durable on return.
    pub(super) fn finish(&self) -> io::Result<()> {
        let taken = Err(io::Error::from(io::ErrorKind::Other));
        let mut draft = self.draft.replace(taken)?;
        let start = draft.words;
        let entries: Vec<_> = draft.parts.iter().map(|(name, part)| entry(name, part)).collect();
        draft.write(entries.as_flattened())?;
        draft.file.rewind()?;
        draft.write(&head(&self.identity, start, &entries))?;
        draft.file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
    }
}

impl EncodedWeights for Writing {
    /// What was put, as it lies in the file.
    fn get(&self, name: &[u8; 32]) -> Option<Extent> {
        let mut draft = self.draft.borrow_mut();
        let taken = draft.as_mut().ok()?.take(name);
        taken.unwrap_or_else(|error| {
            *draft = Err(error);
            None
        })
    }

    fn put(&self, name: &[u8; 32], parts: &mut dyn Iterator<Item = &[u64]>) {
        let mut draft = self.draft.borrow_mut();
        let failed = draft.as_mut().ok().and_then(|draft| draft.put(name, parts).err());
        if let Some(error) = failed {
            *draft = Err(error);
        }
    }
}

impl Draft {
    fn put(&mut self, name: &[u8; 32], parts: &mut dyn Iterator<Item = &[u64]>) -> io::Result<()> {
        if self.parts.contains_key(name) {
            return Ok(());
        }
        let (start, mut digest) = (self.words, Sha256::new());
        for words in parts {
            digest.update(must_cast_slice::<u64, u8>(words));
            self.write(words)?;
        }
        let part = Part { range: start..self.words, digest: digest.finalize().into() };
        self.parts.insert(*name, part);
        self.write(&[0; LINE][..self.words.next_multiple_of(LINE) - self.words])
    }

    fn take(&mut self, name: &[u8; 32]) -> io::Result<Option<Extent>> {
        let Some(Part { range, .. }) = self.parts.get(name).filter(|part| !part.range.is_empty()) else {
            return Ok(None);
        };
        self.file.flush()?;
        let region = region(self.file.get_ref(), range)?;
        let words = region.words().len();
        Ok(Extent::new(region, 0..words))
    }

    fn write(&mut self, words: &[u64]) -> io::Result<()> {
        self.words += words.len();
        self.file.write_all(must_cast_slice(words))
    }
}
