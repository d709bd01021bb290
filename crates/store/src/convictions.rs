//! How often each client failed a check that no honest client fails, and whose turn it is to be checked.
//!
//! ```text
//! STATE/convictions/KEY       a line for each time: seconds since 1970, and the certificate that was shown
//! ```
//!
//! The file's lock is the client's turn, among the threads of all processes that use the directory: one prediction of a client has its verdict before the next one begins.
//! Threat model: a client chooses when its connections break, and how many it has; it cannot name the file, which is the hash of the public key in its certificate (of the
//! certificate itself it could make another form). What cannot be written down counts in this process all the same. Whoever removes a file forgives its client; what it fails
//! behind that counts.

use std::collections::{HashMap, VecDeque};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use lanner_net::{Fingerprint, KeyFingerprint, StateDirectory, create_private};

use crate::exclusive::Exclusive;
use crate::{StoreError, platform};

/// What is known of the clients of a state directory.
pub struct Convictions {
    state: PathBuf,
    /// Those that could not be written down.
    unwritten: Mutex<HashMap<KeyFingerprint, u64>>,
    queues: Mutex<Queues>,
    moved: Condvar,
}

/// Who in this process wants a client's turn: the first one has it, or waits for another process.
#[derive(Default)]
struct Queues {
    of: HashMap<KeyFingerprint, VecDeque<u64>>,
    last_number: u64,
}

/// A place in a client's queue.
struct Place<'a> {
    all: &'a Convictions,
    client: KeyFingerprint,
    number: u64,
}

/// A client's turn: nobody else has it meanwhile.
pub struct Turn<'a> {
    // Given back before the place is.
    file: Exclusive,
    place: Place<'a>,
    path: PathBuf,
    before: u64,
    is_convicted: Mutex<bool>,
}

impl Convictions {
    /// What is known in a state directory.
    #[must_use]
    pub fn new(state: impl Into<PathBuf>) -> Self {
        Self {
            state: state.into(),
            unwritten: Mutex::default(),
            queues: Mutex::default(),
            moved: Condvar::new(),
        }
    }

    /// Waits until the client with this key has its turn, in the order of asking among the threads of this process.
    ///
    /// # Errors
    /// [`StoreError::Taken`] if somebody else has it for so long; [`StoreError`] if the disk fails: then nobody knows whether the client may go on.
    pub fn turn(&self, client: KeyFingerprint, patience: Duration) -> Result<Turn<'_>, StoreError> {
        let deadline = Instant::now() + patience;
        let path = self.state.join(DIRECTORY).join(client.to_string().replace(':', "-"));
        let taken = || StoreError::Taken { path: path.clone(), seconds: patience.as_secs_f64() };
        let failed = |source| StoreError::File { path: path.clone(), source };
        let place = Place::wait(self, client, deadline).ok_or_else(taken)?;
        let file = loop {
            let file = Exclusive::until(deadline, self.opened(&path)?).map_err(failed)?.ok_or_else(taken)?;
            // It may have been removed meanwhile.
            if is_at(file.file(), &path).map_err(failed)? {
                break file;
            }
        };
        let written = lines(file.file()).map_err(failed)?;
        let before = written + self.unwritten().get(&client).copied().unwrap_or_default();
        Ok(Turn { file, place, path, before, is_convicted: Mutex::default() })
    }

    /// A client's file; a new one has a durable name.
    fn opened(&self, path: &Path) -> Result<File, StoreError> {
        let failed = |source| StoreError::File { path: path.to_owned(), source };
        loop {
            let state = StateDirectory::open(&self.state)?;
            let directory = state.subdirectory(DIRECTORY)?;
            match OpenOptions::new().read(true).append(true).open(path) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                opened => return opened.map_err(failed),
            }
            match create_private(path) {
                // Another thread was as fast.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(error)),
                Ok(_) => {
                    directory.sync()?;
                    state.sync()?;
                }
            }
        }
    }

    fn unwritten(&self) -> MutexGuard<'_, HashMap<KeyFingerprint, u64>> {
        // Each change is complete in itself.
        self.unwritten.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn queues(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'a> Place<'a> {
    /// Waits until it is the first one; none if that takes longer.
    fn wait(all: &'a Convictions, client: KeyFingerprint, deadline: Instant) -> Option<Self> {
        let mut queues = all.queues();
        queues.last_number += 1;
        let number = queues.last_number;
        queues.of.entry(client).or_default().push_back(number);
        let place = Self { all, client, number };
        let waits = |queues: &mut Queues| queues.of.get(&client).and_then(VecDeque::front) != Some(&number);
        let left = deadline.saturating_duration_since(Instant::now());
        let waited = all.moved.wait_timeout_while(queues, left, waits);
        let (queues, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        // Who gives up leaves the queue, which takes the lock.
        drop(queues);
        (!waited.timed_out()).then_some(place)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut queues = self.all.queues();
        if let Some(queue) = queues.of.get_mut(&self.client) {
            queue.retain(|number| *number != self.number);
            if queue.is_empty() {
                queues.of.remove(&self.client);
            }
        }
        drop(queues);
        self.all.moved.notify_all();
    }
}

impl Turn<'_> {
    /// How often the client was convicted before.
    #[must_use]
    pub const fn convictions(&self) -> u64 {
        self.before
    }

    /// Counts one time more, once in a turn, with the certificate that the client has shown; it is durable on return, whatever became of the file meanwhile.
    ///
    /// # Errors
    /// [`StoreError`] if the disk fails: it counts for as long as this process runs.
    pub fn convict(&self, certificate: Fingerprint) -> Result<(), StoreError> {
        let mut is_convicted = self.is_convicted.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::replace(&mut *is_convicted, true) {
            return Ok(());
        }
        let all = self.place.all;
        self.write_down(certificate).inspect_err(|_| {
            *all.unwritten().entry(self.place.client).or_default() += 1;
        })
    }

    fn write_down(&self, certificate: Fingerprint) -> Result<(), StoreError> {
        let failed = |source| StoreError::File { path: self.path.clone(), source };
        append(self.file.file(), certificate).map_err(failed)?;
        let mut other: Option<File> = None;
        for _ in 0..REPLACED_AT_MOST {
            if is_at(other.as_ref().unwrap_or(self.file.file()), &self.path).map_err(failed)? {
                return Ok(());
            }
            // It was removed, or another one put in its place.
            let file = self.place.all.opened(&self.path)?;
            append(&file, certificate).map_err(failed)?;
            other = Some(file);
        }
        Err(failed(io::Error::other("removed again and again")))
    }
}

/// Appends a line, durably.
fn append(mut file: &File, certificate: Fingerprint) -> io::Result<()> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |now| now.as_secs());
    // A crash may have cut the last line: it counts, and this is one more.
    let separator = if ends_in_a_line(file)? { "" } else { "\n" };
    file.write_all(format!("{separator}{now} {certificate}\n").as_bytes())?;
    file.sync_all()
}

/// Whether an open file is the one of this name.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    match platform::identity(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        named => Ok(named? == platform::identity_of(file)?),
    }
}

/// Whether a file is empty or its last line is whole.
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
/// How often a file may vanish under who writes to it.
const REPLACED_AT_MOST: usize = 4;

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::sync::mpsc::channel;
    use std::thread;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn client(number: u8) -> KeyFingerprint {
        KeyFingerprint::of(&[number])
    }

    fn certificate() -> Fingerprint {
        Fingerprint::of(b"certificate")
    }

    #[test]
    fn convictions_outlive_who_wrote_them_and_are_the_client_s_alone() {
        let state = tempfile::tempdir().unwrap();
        let all = Convictions::new(state.path().join("state"));
        for before in 0..3 {
            let turn = all.turn(client(1), LONG).unwrap();
            assert_eq!(turn.convictions(), before);
            turn.convict(certificate()).unwrap();
            // Once in a turn.
            turn.convict(certificate()).unwrap();
        }
        let again = Convictions::new(state.path().join("state"));
        assert_eq!(again.turn(client(1), LONG).unwrap().convictions(), 3);
        assert_eq!(again.turn(client(2), LONG).unwrap().convictions(), 0);
        // A crash in the middle of a line.
        let path = again.turn(client(1), LONG).unwrap().path.clone();
        let content = std::fs::read_to_string(&path).unwrap();
        assert!(content.lines().all(|line| line.ends_with(&format!(" {}", certificate()))), "{content}");
        std::fs::write(&path, &content[..content.len() - 4]).unwrap();
        let turn = again.turn(client(1), LONG).unwrap();
        assert_eq!(turn.convictions(), 3);
        turn.convict(certificate()).unwrap();
        drop(turn);
        assert_eq!(again.turn(client(1), LONG).unwrap().convictions(), 4);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::remove_file(path).unwrap();
        assert_eq!(again.turn(client(1), LONG).unwrap().convictions(), 0);
    }

    #[test]
    fn a_client_has_one_turn_at_a_time_whoever_asks() {
        let state = tempfile::tempdir().unwrap();
        let [one, other] = [0; 2].map(|_| Convictions::new(state.path().join("state")));
        let turn = one.turn(client(1), LONG).unwrap();
        drop(other.turn(client(2), LONG).unwrap());
        thread::scope(|scope| {
            let (done, waits) = channel();
            for asked in [&one, &other] {
                let done = done.clone();
                scope.spawn(move || done.send(asked.turn(client(1), LONG).unwrap().convictions()).unwrap());
            }
            assert!(waits.recv_timeout(Duration::from_millis(50)).is_err());
            turn.convict(certificate()).unwrap();
            // Written down, and the turn goes on.
            assert!(waits.recv_timeout(Duration::from_millis(50)).is_err());
            drop(turn);
            assert_eq!([waits.recv().unwrap(), waits.recv().unwrap()], [1, 1]);
        });
        assert!(one.queues().of.is_empty());
    }

    #[test]
    fn nobody_waits_for_a_turn_without_end() {
        let state = tempfile::tempdir().unwrap();
        let [one, other] = [0; 2].map(|_| Convictions::new(state.path().join("state")));
        let turn = one.turn(client(1), LONG).unwrap();
        for asked in [&one, &other] {
            let begun = Instant::now();
            let Err(StoreError::Taken { seconds, .. }) = asked.turn(client(1), Duration::from_millis(60))
            else {
                panic!("the turn is taken");
            };
            assert!((seconds - 0.06).abs() < 1e-9);
            assert!(begun.elapsed() >= Duration::from_millis(60) && begun.elapsed() < LONG);
        }
        drop(turn);
        // Who gave up holds up nobody.
        for asked in [&one, &other] {
            drop(asked.turn(client(1), Duration::from_millis(60)).unwrap());
        }
    }

    #[test]
    fn threads_of_a_process_have_their_turns_in_the_order_of_asking() {
        let state = tempfile::tempdir().unwrap();
        let all = Convictions::new(state.path().join("state"));
        let turn = all.turn(client(1), LONG).unwrap();
        let (done, came) = channel();
        thread::scope(|scope| {
            for number in 0..4 {
                let (all, done) = (&all, done.clone());
                scope.spawn(move || {
                    let turn = all.turn(client(1), LONG).unwrap();
                    done.send(number).unwrap();
                    // Long enough that whoever is not first in the queue would find the file free.
                    thread::sleep(Duration::from_millis(5));
                    drop(turn);
                });
                while all.queues().of[&client(1)].len() < number + 2 {
                    thread::yield_now();
                }
            }
            drop(turn);
            assert_eq!([0; 4].map(|_| came.recv().unwrap()), [0, 1, 2, 3]);
        });
    }

    #[test]
    fn a_file_that_is_removed_or_replaced_while_it_is_held_forgets_no_later_conviction() {
        let state = tempfile::tempdir().unwrap();
        let all = Convictions::new(state.path().join("state"));
        let removed: [fn(&Path); 3] = [
            |path| std::fs::remove_file(path).unwrap(),
            |path| std::fs::remove_dir_all(path.parent().unwrap()).unwrap(),
            |path| {
                std::fs::remove_file(path).unwrap();
                drop(create_private(path).unwrap());
            },
        ];
        for (number, removed) in removed.into_iter().enumerate() {
            let client = client(number as u8);
            all.turn(client, LONG).unwrap().convict(certificate()).unwrap();
            let turn = all.turn(client, LONG).unwrap();
            removed(&turn.path);
            turn.convict(certificate()).unwrap();
            drop(turn);
            let again = Convictions::new(state.path().join("state"));
            assert_eq!(again.turn(client, LONG).unwrap().convictions(), 1, "{number}");
        }
    }

    #[test]
    fn who_waits_for_a_file_that_is_replaced_has_its_turn_at_the_new_one() {
        let state = tempfile::tempdir().unwrap();
        let [one, other] = [0; 2].map(|_| Convictions::new(state.path().join("state")));
        let turn = one.turn(client(1), LONG).unwrap();
        thread::scope(|scope| {
            let (done, waits) = channel();
            let other = &other;
            scope.spawn(move || done.send(other.turn(client(1), LONG).unwrap().convictions()).unwrap());
            while other.queues().of.is_empty() {
                thread::yield_now();
            }
            // It has the old file open by then, or opens the new one.
            thread::sleep(Duration::from_millis(20));
            std::fs::remove_file(&turn.path).unwrap();
            turn.convict(certificate()).unwrap();
            drop(turn);
            assert_eq!(waits.recv().unwrap(), 1);
        });
    }

    #[test]
    fn what_cannot_be_written_down_counts_in_this_process() {
        let state = tempfile::tempdir().unwrap();
        let all = Convictions::new(state.path().join("state"));
        let mut turn = all.turn(client(1), LONG).unwrap();
        // A file that takes no bytes.
        let read_only = state.path().join("read-only");
        drop(create_private(&read_only).unwrap());
        turn.file = Exclusive::wait(File::open(&read_only).unwrap()).unwrap();
        assert!(turn.convict(certificate()).is_err());
        drop(turn);
        assert_eq!(all.turn(client(1), LONG).unwrap().convictions(), 1);
    }
}
