//! Named files in a private directory, each written whole or not at all.

use std::collections::HashSet;
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::time::Duration;

use lanner_net::{StateDirectory, create_private, sync_directory};

use crate::{StoreError, platform};

/// A private directory of files.
pub(crate) struct Files(StateDirectory);

impl Files {
    pub(crate) const fn new(directory: StateDirectory) -> Self {
        Self(directory)
    }

    /// Writes a file; it is durable on return. What a failure leaves is removed.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let (path, draft) = (self.0.path().join(name), self.0.path().join(format!("{name}{DRAFT}")));
        let written = || -> io::Result<()> {
            let _ = fs::remove_file(&draft);
            let mut file = create_private(&draft)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            fs::rename(&draft, &path)?;
            sync_directory(self.0.path())
        };
        written().map_err(|source| {
            let _ = fs::remove_file(&draft);
            let _ = fs::remove_file(&path);
            StoreError::File { path: path.clone(), source }
        })
    }

    /// Reads a file; none if there is none.
    pub(crate) fn read(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let path = self.0.path().join(name);
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(source) => Err(StoreError::File { path, source }),
        }
    }

    /// Removes a file and what a crash left of writing it; whether this call removed it.
    pub(crate) fn remove(&self, name: &str) -> bool {
        let _ = fs::remove_file(self.0.path().join(format!("{name}{DRAFT}")));
        fs::remove_file(self.0.path().join(name)).is_ok()
    }

    /// Removes files with a prefix that nobody has touched for a while, but for those in use.
    pub(crate) fn sweep(&self, prefix: &str, used: &HashSet<String>, age: Duration) {
        let Ok(entries) = fs::read_dir(self.0.path()) else { return };
        for entry in entries.flatten() {
            let Ok(name) = entry.file_name().into_string() else { continue };
            let old = || entry.metadata().and_then(|metadata| metadata.modified()).ok()?.elapsed().ok();
            if name.starts_with(prefix) && !used.contains(&name) && old().is_some_and(|old| old > age) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

/// Bytes that are free for this user where a directory is, or will be made; the most there can be where the system does not tell.
#[must_use]
pub fn free_bytes(directory: &Path) -> u64 {
    let existing = directory.ancestors().find(|path| path.exists()).unwrap_or(Path::new("."));
    platform::free_bytes(existing).unwrap_or(u64::MAX)
}

const DRAFT: &str = ".draft";
