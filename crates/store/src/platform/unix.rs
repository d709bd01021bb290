//! Linux, macOS and their relatives.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Which file a name is.
pub(crate) fn identity(path: &Path) -> io::Result<[u64; 2]> {
    std::fs::metadata(path).map(|metadata| number(&metadata))
}

/// Which file is open, by the same numbers.
pub(crate) fn identity_of(file: &File) -> io::Result<[u64; 2]> {
    file.metadata().map(|metadata| number(&metadata))
}

fn number(metadata: &Metadata) -> [u64; 2] {
    [metadata.dev(), metadata.ino()]
}

/// Bytes that are free for this user where something exists; none if the system does not say.
pub(crate) fn free_bytes(existing: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(existing).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}
