//! The directory that holds what must survive a restart, and nobody else may read.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{NetError, platform};

/// A directory that only its owner may enter (mode 0700), with files that only its owner may read (mode 0600).
///
/// Copying it would use one-time material twice: do not.
#[derive(Clone, Debug)]
pub struct StateDirectory {
    path: PathBuf,
}

impl StateDirectory {
    /// Opens the directory, and makes it if it is not there.
    ///
    /// # Errors
    /// [`NetError::State`] if it cannot be made, or if it exists and others may enter it or own it.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, NetError> {
        let path = path.into();
        make_private(&path).map_err(|error| state_error(&path, &error))?;
        let metadata = fs::metadata(&path).map_err(|error| state_error(&path, &error))?;
        if !metadata.is_dir() {
            return Err(state_error(&path, &"is not a directory"));
        }
        refuse_shared(&path, &metadata, "chmod 700")?;
        Ok(Self { path })
    }

    /// A directory inside this one.
    ///
    /// # Errors
    /// As [`StateDirectory::open`].
    pub fn subdirectory(&self, name: &str) -> Result<Self, NetError> {
        Self::open(self.path.join(name))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The content of a file, or `None` if there is none.
    ///
    /// # Errors
    /// [`NetError::State`] if it cannot be read, or if others may read it or own it.
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>, NetError> {
        let Some(mut file) = self.file(name)? else { return Ok(None) };
        let mut content = Vec::new();
        let read = file.read_to_end(&mut content);
        read.map(|_| Some(content)).map_err(|error| state_error(&self.path.join(name), &error))
    }

    /// A file that is there, for reading, or `None` if there is none.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn file(&self, name: &str) -> Result<Option<File>, NetError> {
        let path = self.path.join(name);
        let failed = |error| state_error(&path, &error);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        refuse_shared(&path, &file.metadata().map_err(failed)?, "chmod 600")?;
        Ok(Some(file))
    }

    /// Creates a file with this content unless it exists, and returns the content that is there afterwards: of several
    /// processes that try at once, one wins and all get its content. A crash leaves no half-written file.
    ///
    /// # Errors
    /// [`NetError::State`] on any failure of the file system.
    pub fn create_once(&self, name: &str, content: &[u8]) -> Result<Vec<u8>, NetError> {
        let path = self.path.join(name);
        let number = DRAFTS.fetch_add(1, Ordering::Relaxed);
        let draft = self.path.join(format!(".{name}.{}.{number}", std::process::id()));
        let written = write_draft(&draft, content).and_then(|()| match fs::hard_link(&draft, &path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        });
        let removed = fs::remove_file(&draft);
        written.and(removed).map_err(|error| state_error(&path, &error))?;
        self.sync()?;
        self.read(name)?.ok_or_else(|| state_error(&path, &"vanished"))
    }

    /// Makes created and removed names durable.
    ///
    /// # Errors
    /// [`NetError::State`] on any failure of the file system.
    pub fn sync(&self) -> Result<(), NetError> {
        sync_directory(&self.path).map_err(|error| state_error(&self.path, &error))
    }
}

/// A new, empty file that only its owner may read and write (mode 0600), whatever the process's umask: never one that exists, nor one
/// that a symbolic link names.
///
/// # Errors
/// [`ErrorKind::AlreadyExists`] if anything has that name; any other failure of the file system.
pub fn create_private(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    platform::make_file_private(&mut options);
    let file = options.open(path)?;
    platform::settle_rights(&file)?;
    Ok(file)
}

/// Whether others than its owner may use a file or directory; no, where the system does not say.
#[must_use]
pub fn is_shared(metadata: &Metadata) -> bool {
    platform::is_shared(metadata)
}

/// Makes names durable that were created in a directory, removed or changed.
///
/// # Errors
/// Any failure of the file system.
pub fn sync_directory(path: &Path) -> std::io::Result<()> {
    platform::sync_directory(path)
}

/// Drafts of this process so far.
static DRAFTS: AtomicU64 = AtomicU64::new(0);

fn write_draft(path: &Path, content: &[u8]) -> std::io::Result<()> {
    // A draft of this process's number can only be left from a process that crashed.
    let _ = fs::remove_file(path);
    let mut file = create_private(path)?;
    file.write_all(content)?;
    file.sync_all()
}

fn make_private(path: &Path) -> std::io::Result<()> {
    if path.exists() {
        return Ok(());
    }
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    platform::make_directory_private(&mut builder);
    builder.create(path)
}

fn refuse_shared(path: &Path, metadata: &Metadata, fix: &str) -> Result<(), NetError> {
    // An owner may do whatever the mode says, and a process of root enters anyway: it must not trust what somebody put in its way.
    if platform::is_of_another_user(metadata) {
        let what = "belongs to another user".to_owned();
        return Err(NetError::State {
            path: path.to_owned(),
            what,
            fix: "use a directory of your own".to_owned(),
        });
    }
    if is_shared(metadata) {
        let fix = format!("run {fix} {}", path.display());
        return Err(NetError::State { path: path.to_owned(), what: "others may use it".to_owned(), fix });
    }
    Ok(())
}

fn state_error(path: &Path, what: &dyn std::fmt::Display) -> NetError {
    NetError::State { path: path.to_owned(), what: what.to_string(), fix: String::new() }
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_directory_and_its_files_are_private() {
        let root = tempfile::tempdir().unwrap();
        let state = StateDirectory::open(root.path().join("a/b")).unwrap();
        state.create_once("key", b"secret").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(state.path()), 0o700);
        assert_eq!(mode(&state.path().join("key")), 0o600);
        assert_eq!(fs::read_dir(state.path()).unwrap().count(), 1, "the draft is gone");
    }

    #[test]
    fn a_directory_or_file_that_others_may_read_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("open");
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        let says =
            |error: &NetError, command| matches!(error, NetError::State { fix, .. } if fix.contains(command));
        assert!(says(&StateDirectory::open(&path).unwrap_err(), "chmod 700"));
        fs::set_permissions(&path, Permissions::from_mode(0o700)).unwrap();
        let state = StateDirectory::open(&path).unwrap();
        fs::write(path.join("key"), b"secret").unwrap();
        fs::set_permissions(path.join("key"), Permissions::from_mode(0o644)).unwrap();
        assert!(says(&state.read("key").unwrap_err(), "chmod 600"));
    }

    #[test]
    fn what_belongs_to_another_user_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let state = StateDirectory::open(root.path().join("state")).unwrap();
        state.create_once("key", b"secret").unwrap();
        let give = |path: &Path| std::os::unix::fs::chown(path, Some(12_345), None);
        if give(&state.path().join("key")).is_err() {
            // Only root gives anything away, and nobody else could read what is given so.
            return;
        }
        assert!(state.read("key").unwrap_err().to_string().contains("another user"));
        give(state.path()).unwrap();
        assert!(StateDirectory::open(state.path()).unwrap_err().to_string().contains("another user"));
    }

    #[test]
    fn a_private_file_is_new() {
        let root = tempfile::tempdir().unwrap();
        let [path, link] = ["file", "link"].map(|name| root.path().join(name));
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert_eq!(create_private(&link).unwrap_err().kind(), ErrorKind::AlreadyExists);
        let file = create_private(&path).unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(create_private(&path).unwrap_err().kind(), ErrorKind::AlreadyExists);
    }

    #[test]
    fn the_first_content_stays() {
        let root = tempfile::tempdir().unwrap();
        let state = StateDirectory::open(root.path().join("state")).unwrap();
        assert_eq!(state.read("key").unwrap(), None);
        assert_eq!(state.create_once("key", b"first").unwrap(), b"first");
        assert_eq!(state.create_once("key", b"second").unwrap(), b"first");
    }
}
