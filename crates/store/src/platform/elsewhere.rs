//! Systems without `fork`, such as Windows.

use std::fs::File;
use std::io;
use std::path::Path;

/// One for all that exist: no process is a copy of another that had a file open.
pub(crate) fn identity(path: &Path) -> io::Result<[u64; 2]> {
    std::fs::metadata(path).map(|_| [0; 2])
}

/// The same of one that is open.
pub(crate) fn identity_of(file: &File) -> io::Result<[u64; 2]> {
    file.metadata().map(|_| [0; 2])
}

/// The system is not asked: a disk that is full fails when it is written to.
pub(crate) const fn free_bytes(_: &Path) -> Option<u64> {
    None
}
