//! Which indexes this process has open.
//!
//! `SQLite` keeps one list of the locks of a process on each file, and lets connections to it share them. `fork` copies the list and no lock: a
//! connection that a child opened to a file that its parent has open would not lock it, and another process might take the log away under
//! it, with what was noted as used. So a child opens no such file. And where a thread of the parent was at work in `SQLite`, locks of the
//! library itself may be held for ever in the child, which opens none then.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, TryLockError};

use lanner_process::{MOST_FORKS, PerProcess};

use crate::StoreError;
use crate::platform::identity;

/// A file, whatever its name.
type FileId = [u64; 2];

/// Of each connection.
static OPEN: PerProcess<Mutex<Vec<FileId>>> = PerProcess::new([const { Mutex::new(Vec::new()) }; MOST_FORKS]);

/// Calls of `SQLite` that are under way.
static INSIDE: PerProcess<AtomicUsize> = PerProcess::new([const { AtomicUsize::new(0) }; MOST_FORKS]);

/// Notes that `SQLite` is at work, as long as it lives.
pub(crate) struct Inside(());

impl Inside {
    pub(crate) fn enter() -> Self {
        if let Some(inside) = INSIDE.get() {
            inside.fetch_add(1, Ordering::Relaxed);
        }
        Self(())
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        if let Some(inside) = INSIDE.get() {
            inside.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Notes that an index is open, from before `SQLite` opens it until it has closed it.
pub(crate) struct OpenIndex(FileId);

impl OpenIndex {
    /// Notes a file that exists.
    ///
    /// # Errors
    /// [`StoreError::Inherited`] if a process that this one is a copy of had it open, or was at work on any; [`StoreError::File`] if the disk fails.
    pub(crate) fn note(path: &Path) -> Result<Self, StoreError> {
        let file = identity(path).map_err(|source| StoreError::File { path: path.to_owned(), source })?;
        let inherited = || StoreError::Inherited { path: path.to_owned() };
        let has = |files: &[FileId]| files.contains(&file);
        let was_open = |files: &Mutex<Vec<FileId>>| match files.try_lock() {
            Ok(files) => has(&files),
            Err(TryLockError::Poisoned(files)) => has(files.get_ref()),
            // It was being opened or closed.
            Err(TryLockError::WouldBlock) => true,
        };
        let was_inside = |inside: &AtomicUsize| inside.load(Ordering::Relaxed) > 0;
        if OPEN.inherited().iter().any(was_open) || INSIDE.inherited().iter().any(was_inside) {
            return Err(inherited());
        }
        let own = OPEN.get().ok_or_else(inherited)?;
        own.lock().unwrap_or_else(PoisonError::into_inner).push(file);
        Ok(Self(file))
    }
}

impl Drop for OpenIndex {
    fn drop(&mut self) {
        let Some(own) = OPEN.get() else { return };
        let mut own = own.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = own.iter().position(|file| *file == self.0) {
            own.swap_remove(place);
        }
    }
}
