//! What clients uploaded, under the hash of its bytes: keys that a server evaluates with. They are public, so that they lie open, and may be
//! lost, so that the least recently used goes when there is no room.
//!
//! ```text
//! STATE/keys/HASH             an upload
//! STATE/keys/HASH.part        what there is of one
//! STATE/keys/lock             held while any of them is opened, grows, gets its name or goes
//! ```
//!
//! Who adds to a part holds a lock on it, too, which ends with the process. The hash is checked whenever an upload is read, so that nothing of
//! what a crash leaves is used: not even a part's bytes need to be durable before the last.

use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use lanner_net::{StateDirectory, create_private, sync_directory};
use sha2::{Digest, Sha256};

use crate::StoreError;
use crate::exclusive::Exclusive;

/// The uploads in a state directory. Nothing is made on the disk before there is something to keep.
pub struct Uploads {
    state: PathBuf,
    limit: u64,
}

/// An upload on its way, or complete: all of it is in memory, and what the disk has no room for is there alone.
pub struct Upload {
    hash: [u8; 32],
    length: usize,
    bytes: Vec<u8>,
    digest: Sha256,
    part: Option<Part>,
}

/// A part, locked.
struct Part {
    directory: Directory,
    name: String,
    file: Exclusive,
}

/// The directory of uploads.
struct Directory {
    path: PathBuf,
    limit: u64,
}

/// What the disk has of an upload.
enum Found {
    Whole(File),
    Part(Exclusive),
    /// Somebody else adds to it.
    Taken,
}

impl Uploads {
    /// The uploads in a state directory, of which so many bytes are kept. With 0 none are.
    #[must_use]
    pub fn new(state: impl Into<PathBuf>, limit: u64) -> Self {
        Self { state: state.into(), limit }
    }

    /// The upload of a hash and a length, with what there is of it. One that somebody else is adding to begins anew, and is not kept.
    ///
    /// # Errors
    /// [`StoreError`] if the disk fails.
    pub fn open(&self, hash: [u8; 32], length: usize) -> Result<Upload, StoreError> {
        let mut upload = Upload::in_memory(hash, length);
        if length as u64 > self.limit {
            return Ok(upload);
        }
        let path = StateDirectory::open(&self.state)?.subdirectory(DIRECTORY)?.path().to_owned();
        let (directory, name) = (Directory { path, limit: self.limit }, name_of(&hash));
        let mut found = directory.exclusively(|| directory.find(&name))?;
        if let Found::Whole(file) = found {
            upload.read(file).map_err(|source| directory.failed(&name, source))?;
            if upload.content().is_some() {
                return Ok(upload);
            }
            upload = Upload::in_memory(hash, length);
            found = directory.exclusively(|| {
                let _ = fs::remove_file(directory.path.join(&name));
                directory.find(&name)
            })?;
        }
        // A second whole one is another's, who was as fast.
        let Found::Part(file) = found else { return Ok(upload) };
        let read =
            upload.read(file.file()).and_then(|usable| if usable { Ok(()) } else { file.file().set_len(0) });
        read.map_err(|source| directory.failed(&name, source))?;
        upload.part = Some(Part { directory, name, file });
        Ok(upload)
    }

    /// Bytes that are kept, of parts too.
    #[must_use]
    pub fn held(&self) -> u64 {
        let directory = Directory { path: self.state.join(DIRECTORY), limit: self.limit };
        directory.entries().iter().map(|entry| entry.bytes).sum()
    }
}

impl Upload {
    /// An upload of which there is nothing yet, and which is not kept.
    #[must_use]
    pub fn in_memory(hash: [u8; 32], length: usize) -> Self {
        Self { hash, length, bytes: Vec::new(), digest: Sha256::new(), part: None }
    }

    /// Bytes that are there.
    #[must_use]
    pub const fn held(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes that are not.
    #[must_use]
    pub const fn missing(&self) -> usize {
        self.length - self.bytes.len()
    }

    /// Adds the next bytes, at most those that are missing.
    ///
    /// # Errors
    /// [`StoreError`] if the disk fails or has no room: the upload is not kept then, and goes on in memory.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        debug_assert!(bytes.len() <= self.missing(), "no more than is missing");
        self.digest.update(bytes);
        self.bytes.extend_from_slice(bytes);
        let Some(part) = self.part.take() else { return Ok(()) };
        match part.append(bytes) {
            Ok(()) => self.part = Some(part),
            Err(error) => {
                part.remove();
                return Err(error);
            }
        }
        Ok(())
    }

    /// All of it, if it has the hash.
    #[must_use]
    pub fn content(&self) -> Option<&[u8]> {
        let right = self.bytes.len() == self.length && self.digest.clone().finalize()[..] == self.hash;
        right.then_some(&self.bytes)
    }

    /// Keeps it for others; it is durable on return. What is not complete waits as it is for whoever goes on with it.
    ///
    /// # Errors
    /// [`StoreError`] if the disk fails.
    pub fn keep(self) -> Result<(), StoreError> {
        match &self.part {
            Some(part) if self.content().is_some() => part.complete(),
            _ => Ok(()),
        }
    }

    /// Forgets what has been added.
    pub fn discard(self) {
        if let Some(part) = self.part {
            part.remove();
        }
    }

    /// Reads a file; whether it is a beginning of the upload, or all of it.
    fn read(&mut self, file: impl Read) -> std::io::Result<bool> {
        file.take(self.length as u64 + 1).read_to_end(&mut self.bytes)?;
        self.digest.update(&self.bytes);
        let usable = self.bytes.len() < self.length || self.content().is_some();
        if !usable {
            *self = Self::in_memory(self.hash, self.length);
        }
        Ok(usable)
    }
}

impl Part {
    fn append(&self, bytes: &[u8]) -> Result<(), StoreError> {
        self.directory.exclusively(|| {
            self.directory.make_room(bytes.len() as u64)?;
            self.file.file().write_all(bytes).map_err(|source| self.failed(source))
        })
    }

    fn complete(&self) -> Result<(), StoreError> {
        self.file.file().sync_all().map_err(|source| self.failed(source))?;
        let path = &self.directory.path;
        self.directory.exclusively(|| {
            let renamed = fs::rename(path.join(self.part()), path.join(&self.name));
            let synced = renamed.and_then(|()| sync_directory(path));
            synced.map_err(|source| self.failed(source))
        })
    }

    fn remove(&self) {
        let removed = || {
            let _ = fs::remove_file(self.directory.path.join(self.part()));
            Ok(())
        };
        // What stays expires.
        let _ = self.directory.exclusively(removed);
    }

    fn part(&self) -> String {
        format!("{}{PART}", self.name)
    }

    fn failed(&self, source: std::io::Error) -> StoreError {
        self.directory.failed(&self.part(), source)
    }
}

/// A file of the directory.
struct Entry {
    path: PathBuf,
    is_part: bool,
    bytes: u64,
    used: SystemTime,
}

impl Directory {
    /// Works while no other session and no other process does so.
    fn exclusively<T>(&self, work: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
        let path = self.path.join(LOCK);
        let lock = match create_private(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => File::open(&path),
            made => made,
        };
        let locked = lock.and_then(Exclusive::wait);
        let _lock = locked.map_err(|source| self.failed(LOCK, source))?;
        work()
    }

    /// An upload that was just used; else what there is of it, if nothing then an empty part.
    fn find(&self, name: &str) -> Result<Found, StoreError> {
        // Windows sets times of files alone that are open for writing.
        let mut options = OpenOptions::new();
        let options = options.read(true).append(true);
        let found = || match options.open(self.path.join(name)) {
            Ok(file) => {
                file.set_modified(SystemTime::now())?;
                Ok(Found::Whole(file))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.remove_expired();
                let path = self.path.join(format!("{name}{PART}"));
                match create_private(&path) {
                    Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
                    _ => {}
                }
                let file = options.open(path)?;
                match Exclusive::try_now(file) {
                    Ok(file) => Ok(Found::Part(file)),
                    Err(TryLockError::WouldBlock) => Ok(Found::Taken),
                    Err(TryLockError::Error(error)) => Err(error),
                }
            }
            Err(error) => Err(error),
        };
        found().map_err(|source| self.failed(name, source))
    }

    /// Removes what was used least recently until there is room.
    fn make_room(&self, added: u64) -> Result<(), StoreError> {
        let mut entries = self.entries();
        entries.sort_by_key(|entry| entry.used);
        let mut held: u64 = entries.iter().map(|entry| entry.bytes).sum();
        let fits = |held: u64| held.saturating_add(added) <= self.limit;
        for entry in &entries {
            if fits(held) {
                break;
            }
            if entry.remove() {
                held -= entry.bytes;
            }
        }
        if fits(held) { Ok(()) } else { Err(StoreError::Full { held, added, limit: self.limit }) }
    }

    /// Removes parts that nobody goes on with.
    fn remove_expired(&self) {
        let expired =
            |entry: &Entry| entry.is_part && entry.used.elapsed().is_ok_and(|since| since > PART_LIFETIME);
        for entry in self.entries().iter().filter(|entry| expired(entry)) {
            entry.remove();
        }
    }

    /// All uploads and parts; none where there is no directory.
    fn entries(&self) -> Vec<Entry> {
        let Ok(listed) = fs::read_dir(&self.path) else { return Vec::new() };
        let entry = |listed: fs::DirEntry| {
            let name = listed.file_name().into_string().ok()?;
            let (hash, is_part) = name.strip_suffix(PART).map_or((&name[..], false), |hash| (hash, true));
            let metadata = listed.metadata().ok().filter(|_| is_name(hash))?;
            let (bytes, used) = (metadata.len(), metadata.modified().ok()?);
            Some(Entry { path: listed.path(), is_part, bytes, used })
        };
        listed.flatten().filter_map(entry).collect()
    }

    fn failed(&self, name: &str, source: std::io::Error) -> StoreError {
        StoreError::File { path: self.path.join(name), source }
    }
}

impl Entry {
    /// Removes it, unless somebody is adding to it; whether it is gone.
    fn remove(&self) -> bool {
        let taken = |path: &Path| File::open(path).is_ok_and(|file| Exclusive::try_now(file).is_err());
        !(self.is_part && taken(&self.path)) && fs::remove_file(&self.path).is_ok()
    }
}

/// The hash in hexadecimal digits, as `sha256sum` prints it.
pub(crate) fn name_of(hash: &[u8; 32]) -> String {
    hash.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn is_name(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

const DIRECTORY: &str = "keys";
const LOCK: &str = "lock";
const PART: &str = ".part";
/// How long a part waits for the rest.
const PART_LIFETIME: Duration = Duration::from_secs(24 * 3600);
