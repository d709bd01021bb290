//! Encoded weights in a directory that servers of one machine share: one process encodes a model, all map the file that it wrote.
//!
//! ```text
//! DIR/NAME.weights            words of factors, as kernels read them; what it holds, with digests
//! DIR/NAME.lock               held while the file is made
//! DIR/NAME.draft              what there is of one
//! ```
//!
//! `NAME` follows from the model's commitment, this release and the [`VERSION`] of what words mean, so that a release never takes what another
//! wrote. A file gets its name when it is whole and durable, and is never written again. Whoever opens it checks every digest, so that one that is
//! damaged, or another's, is refused.
//!
//! Threat model: the words are as secret as the model's file, and lie as open on the disk: mode 0600 in a directory of mode 0700 of the
//! same user, which is checked. That user alone could cut a file off under a server that has mapped it, which would end the server.
//! A process that dies leaves a draft, which the next one removes. A pairing's or a client's bytes never come here.

mod contents;
mod reading;
mod writing;

use std::fs::File;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::rc::Rc;

use lanner_net::{StateDirectory, create_private};
use lanner_step::EncodedWeights;
use sha2::{Digest, Sha256};

use crate::StoreError;
use crate::exclusive::Exclusive;
use crate::uploads::name_of;
pub use contents::Contents;
use reading::Reading;
use writing::Writing;

/// A directory of encoded weights.
pub struct SharedWeights(StateDirectory);

impl SharedWeights {
    /// Opens the directory, and makes it if it is not there.
    ///
    /// # Errors
    /// [`StoreError::State`] if it cannot be made, or others may enter it or own it.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, StoreError> {
        Ok(Self(StateDirectory::open(path)?))
    }

    /// What `make` makes of a model's encoded weights, as they lie in its file. Where there is none, it is made of what `make` puts there. Others
    /// who want it meanwhile wait.
    ///
    /// # Errors
    /// Those of `make`; [`StoreError::DamagedWeights`] if the file is not what was written; [`StoreError::File`] if the disk fails or is full;
    /// [`StoreError::State`] if others may read the file.
    pub fn of<T, E: From<StoreError>>(
        &self,
        commitment: &[u8; 32],
        make: impl Fn(Rc<dyn EncodedWeights>) -> Result<T, E>,
    ) -> Result<T, E> {
        let identity = identity(commitment);
        if let Some(made) = self.read(&identity, &make)? {
            return Ok(made);
        }
        let _lock = self.lock(&identity)?;
        // Another may have been as fast.
        if let Some(made) = self.read(&identity, &make)? {
            return Ok(made);
        }
        self.write(&identity, &make)
    }

    /// What is made of a file that is there and has all that is asked for.
    fn read<T, E: From<StoreError>>(
        &self,
        identity: &[u8; 32],
        make: impl Fn(Rc<dyn EncodedWeights>) -> Result<T, E>,
    ) -> Result<Option<T>, E> {
        let name = format!("{}{WEIGHTS}", name_of(identity));
        let Some(file) = self.0.file(&name).map_err(StoreError::from)? else { return Ok(None) };
        let path = self.path(identity, WEIGHTS);
        let reading = Reading::open(&file, identity).map_err(|source| match source.kind() {
            ErrorKind::InvalidData => StoreError::DamagedWeights { path },
            _ => StoreError::File { path, source },
        })?;
        let reading = Rc::new(reading);
        let made = make(reading.clone())?;
        Ok(reading.had_all().then_some(made))
    }

    /// Makes the file, and what is made of it meanwhile.
    fn write<T, E: From<StoreError>>(
        &self,
        identity: &[u8; 32],
        make: impl Fn(Rc<dyn EncodedWeights>) -> Result<T, E>,
    ) -> Result<T, E> {
        let [draft, path] = [DRAFT, WEIGHTS].map(|suffix| self.path(identity, suffix));
        let failed = |source| StoreError::File { path: path.clone(), source };
        // Nobody else makes it now: this is of a process that died.
        let _ = std::fs::remove_file(&draft);
        let written = || -> Result<T, E> {
            let writing =
                Rc::new(Writing::new(create_private(&draft).map_err(failed)?, identity).map_err(failed)?);
            let made = make(writing.clone())?;
            writing.finish().map_err(failed)?;
            std::fs::rename(&draft, &path).map_err(failed)?;
            self.0.sync().map_err(StoreError::from)?;
            Ok(made)
        };
        written().inspect_err(|_| {
            let _ = std::fs::remove_file(&draft);
        })
    }

    /// Waits until nobody else makes the model's file; the lock ends with the process at the latest.
    fn lock(&self, identity: &[u8; 32]) -> Result<Exclusive, StoreError> {
        let path = self.path(identity, LOCK);
        let lock = match create_private(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => File::open(&path),
            made => made,
        };
        lock.and_then(Exclusive::wait).map_err(|source| StoreError::File { path, source })
    }

    fn path(&self, identity: &[u8; 32], suffix: &str) -> PathBuf {
        self.0.path().join(format!("{}{suffix}", name_of(identity)))
    }
}

/// Names a model's encoded weights.
fn identity(commitment: &[u8; 32]) -> [u8; 32] {
    let digest = Sha256::new_with_prefix("lanner encoded weights").chain_update(VERSION.to_le_bytes());
    digest
        .chain_update(env!("CARGO_PKG_VERSION"))
        .chain_update([0])
        .chain_update(commitment)
        .finalize()
        .into()
}

/// Changes with what any factor's words mean, and with the form of the file.
const VERSION: u64 = 1;
const WEIGHTS: &str = ".weights";
const LOCK: &str = ".lock";
const DRAFT: &str = ".draft";
