//! Linux, macOS and their relatives.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Which file a name is.
pub(crate) fn identity(path: &Path) -> io::Result<[u64; 2]> {
    let metadata = std::fs::metadata(path)?;
    Ok([metadata.dev(), metadata.ino()])
}

/// Bytes that are free for this user where something exists; none if the system does not say.
pub(crate) fn free_bytes(existing: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(existing).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}
