//! How often each client failed a check that no honest client fails, and whose turn it is to be checked.
//!
//! ```text
//! STATE/convictions/CERTIFICATE       a line for each time: seconds since 1970
//! ```
//!
//! The file's lock is the client's turn, among the threads of all processes that use the directory: one prediction of a client has its verdict before the next one begins.
//! Threat model: a client chooses when its connections break, and how many it has; it cannot name the file, which is the hash of its certificate. What cannot be written
//! down counts in this process all the same. Whoever removes a file forgives its client.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use lanner_net::{Fingerprint, StateDirectory, create_private};

use crate::StoreError;
use crate::exclusive::Exclusive;

/// What is known of the clients of a state directory.
pub struct Convictions {
    state: PathBuf,
    /// Those that could not be written down.
    unwritten: Mutex<HashMap<Fingerprint, u64>>,
}

/// A client's turn: nobody else has it meanwhile.
pub struct Turn<'a> {
    all: &'a Convictions,
    client: Fingerprint,
    path: PathBuf,
    file: Exclusive,
    convictions: u64,
}

impl Convictions {
    /// What is known in a state directory.
    #[must_use]
    pub fn new(state: impl Into<PathBuf>) -> Self {
        Self { state: state.into(), unwritten: Mutex::default() }
    }

    /// Waits until the client with this certificate has its turn.
    ///
    /// # Errors
    /// [`StoreError`] if the disk fails: then nobody knows whether the client may go on.
    pub fn turn(&self, client: Fingerprint) -> Result<Turn<'_>, StoreError> {
        let directory = StateDirectory::open(&self.state)?.subdirectory(DIRECTORY)?;
        let path = directory.path().join(client.to_string().replace(':', "-"));
        let failed = |source| StoreError::File { path: path.clone(), source };
        let file = Exclusive::wait(opened(&directory, &path)?).map_err(failed)?;
        let written = lines(file.file()).map_err(failed)?;
        let convictions = written + self.unwritten().get(&client).copied().unwrap_or_default();
        Ok(Turn { all: self, client, path, file, convictions })
    }

    fn unwritten(&self) -> MutexGuard<'_, HashMap<Fingerprint, u64>> {
        // Each change is complete in itself.
        self.unwritten.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn<'_> {
    /// How often the client was convicted.
    #[must_use]
    pub const fn convictions(&self) -> u64 {
        self.convictions
    }

    /// Counts one time more; it is durable on return.
    ///
    /// # Errors
    /// [`StoreError`] if the disk fails: it counts for as long as this process runs.
    pub fn convict(self) -> Result<(), StoreError> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |now| now.as_secs());
        let written = || -> io::Result<()> {
            let mut file = self.file.file();
            // A crash may have cut the last line: it counts, and this is one more.
            let separator = if ends_in_a_line(file)? { "" } else { "\n" };
            file.write_all(format!("{separator}{now}\n").as_bytes())?;
            file.sync_all()
        };
        written().map_err(|source| {
            *self.all.unwritten().entry(self.client).or_default() += 1;
            StoreError::File { path: self.path.clone(), source }
        })
    }
}

/// The client's file; a new one has a durable name.
fn opened(directory: &StateDirectory, path: &Path) -> Result<File, StoreError> {
    let failed = |source| StoreError::File { path: path.to_owned(), source };
    loop {
        match OpenOptions::new().read(true).write(true).open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            opened => return opened.map_err(failed),
        }
        match create_private(path) {
            // Another thread was as fast.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed(error)),
            Ok(file) => {
                directory.sync()?;
                return Ok(file);
            }
        }
    }
}

/// Whether a file is empty or its last line is whole; the next thing is written at its end.
fn ends_in_a_line(mut file: &File) -> io::Result<bool> {
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(true);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

/// Lines, a last one among them that a crash cut short.
fn lines(mut file: &File) -> io::Result<u64> {
    let mut content = String::new();
    file.read_to_string(&mut content)?;
    Ok(content.lines().count() as u64)
}

const DIRECTORY: &str = "convictions";

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::sync::mpsc::channel;
    use std::thread;
    use std::time::Duration;

    use super::*;

    fn client(number: u8) -> Fingerprint {
        format!("sha256:{}", format!("{number:02x}").repeat(32)).parse().unwrap()
    }

    #[test]
    fn convictions_outlive_who_wrote_them_and_are_the_client_s_alone() {
        let state = tempfile::tempdir().unwrap();
        let all = Convictions::new(state.path().join("state"));
        for before in 0..3 {
            let turn = all.turn(client(1)).unwrap();
            assert_eq!(turn.convictions(), before);
            turn.convict().unwrap();
        }
        let again = Convictions::new(state.path().join("state"));
        assert_eq!(again.turn(client(1)).unwrap().convictions(), 3);
        assert_eq!(again.turn(client(2)).unwrap().convictions(), 0);
        // A crash in the middle of a line.
        let path = again.turn(client(1)).unwrap().path.clone();
        let content = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, &content[..content.len() - 4]).unwrap();
        let turn = again.turn(client(1)).unwrap();
        assert_eq!(turn.convictions(), 3);
        turn.convict().unwrap();
        assert_eq!(again.turn(client(1)).unwrap().convictions(), 4);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::remove_file(path).unwrap();
        assert_eq!(again.turn(client(1)).unwrap().convictions(), 0);
    }

    #[test]
    fn a_client_has_one_turn_at_a_time_whoever_asks() {
        let state = tempfile::tempdir().unwrap();
        let (one, other) =
            (Convictions::new(state.path().join("state")), Convictions::new(state.path().join("state")));
        let turn = one.turn(client(1)).unwrap();
        drop(other.turn(client(2)).unwrap());
        thread::scope(|scope| {
            let (done, waits) = channel();
            scope.spawn(move || done.send(other.turn(client(1)).unwrap().convictions()).unwrap());
            assert!(waits.recv_timeout(Duration::from_millis(50)).is_err());
            turn.convict().unwrap();
            assert_eq!(waits.recv().unwrap(), 1);
        });
    }

    #[test]
    fn what_cannot_be_written_down_counts_in_this_process() {
        let state = tempfile::tempdir().unwrap();
        let all = Convictions::new(state.path().join("state"));
        let Turn { path, file, .. } = all.turn(client(1)).unwrap();
        drop(file);
        // A file that takes no bytes.
        let file = Exclusive::wait(File::open(&path).unwrap()).unwrap();
        let turn = Turn { all: &all, client: client(1), path, file, convictions: 0 };
        assert!(turn.convict().is_err());
        assert_eq!(all.turn(client(1)).unwrap().convictions(), 1);
    }
}
