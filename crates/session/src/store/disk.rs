//! The few operations on a disk that a store is made of.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

#[cfg(unix)]
use std::os::unix::fs::OpenOptionsExt;

use super::StoreError;

/// A log and named files. What an operation did is durable only after the sync that its comment names.
pub(super) trait Disk: Send {
    /// The whole log; empty if there is none.
    fn read_log(&mut self) -> io::Result<Vec<u8>>;

    /// Puts another log in the old one's place, all or nothing; durable on return.
    fn replace_log(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Appends to the log; durable after [`Disk::sync_log`].
    fn append_log(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Makes the log durable.
    fn sync_log(&mut self) -> io::Result<()>;

    /// Writes a file, all or nothing: its content is durable on return, its name after [`Disk::sync_names`].
    fn write_file(&mut self, name: &str, bytes: &[u8]) -> io::Result<()>;

    /// Reads a file.
    fn read_file(&mut self, name: &str) -> io::Result<Vec<u8>>;

    /// Removes a file; durable after [`Disk::sync_names`].
    fn remove_file(&mut self, name: &str) -> io::Result<()>;

    /// Makes written and removed names durable.
    fn sync_names(&mut self) -> io::Result<()>;

    /// The names of all files, drafts among them.
    fn file_names(&mut self) -> io::Result<Vec<String>>;
}

/// A directory of the file system, locked against other processes.
pub(super) struct Directory {
    path: PathBuf,
    log: File,
    /// Held as long as the store.
    _lock: File,
}

impl Directory {
    /// Locks a directory that exists and is private.
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        let lock =
            private(OpenOptions::new().create(true).truncate(false).write(true)).open(path.join(LOCK))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(StoreError::Locked { path: path.to_owned() }),
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        Ok(Self { log: open_log(path)?, path: path.to_owned(), _lock: lock })
    }
}

impl Disk for Directory {
    fn read_log(&mut self) -> io::Result<Vec<u8>> {
        fs::read(self.path.join(LOG))
    }

    fn replace_log(&mut self, bytes: &[u8]) -> io::Result<()> {
        write_draft(&self.path, LOG, bytes)?;
        self.sync_names()?;
        self.log = open_log(&self.path)?;
        Ok(())
    }

    fn append_log(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.log.write_all(bytes)
    }

    fn sync_log(&mut self) -> io::Result<()> {
        self.log.sync_data()
    }

    fn write_file(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        write_draft(&self.path, name, bytes)
    }

    fn read_file(&mut self, name: &str) -> io::Result<Vec<u8>> {
        fs::read(self.path.join(name))
    }

    fn remove_file(&mut self, name: &str) -> io::Result<()> {
        match fs::remove_file(self.path.join(name)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn sync_names(&mut self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }

    fn file_names(&mut self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name != LOG && name != LOCK {
                names.push(name);
            }
        }
        Ok(names)
    }
}

fn open_log(path: &Path) -> io::Result<File> {
    private(OpenOptions::new().create(true).append(true)).open(path.join(LOG))
}

/// Writes a draft, makes it durable, and gives it its name.
fn write_draft(directory: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let draft = directory.join(format!("{name}{DRAFT}"));
    let mut file = private(OpenOptions::new().create(true).truncate(true).write(true)).open(&draft)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(draft, directory.join(name))
}

fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    options.mode(0o600);
    options
}

const LOCK: &str = "lock";
const LOG: &str = "log";
const DRAFT: &str = ".draft";
