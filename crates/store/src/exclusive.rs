//! Locks on files, between processes.

use std::fs::{File, TryLockError};
use std::io;
use std::thread::sleep;
use std::time::{Duration, Instant};

use lanner_process::Mark;

/// A file that is locked against other processes as long as this lives.
///
/// A child that `fork` made has the open file, and so the lock, too: it is given back by name, since closing the file here would leave
/// it locked for as long as the child lives. A child gives its parent's lock back never.
pub(crate) struct Exclusive {
    file: File,
    mark: Mark,
}

impl Exclusive {
    /// Waits for the lock.
    pub(crate) fn wait(file: File) -> io::Result<Self> {
        file.lock()?;
        Ok(Self { file, mark: Mark::here() })
    }

    /// Waits for the lock until then; none if somebody else still has it.
    pub(crate) fn until(deadline: Instant, file: File) -> io::Result<Option<Self>> {
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Some(Self { file, mark: Mark::here() })),
                Err(TryLockError::Error(error)) => return Err(error),
                Err(TryLockError::WouldBlock) if Instant::now() >= deadline => return Ok(None),
                Err(TryLockError::WouldBlock) => sleep(PAUSE),
            }
        }
    }

    /// Takes the lock if nobody has it.
    pub(crate) fn try_now(file: File) -> Result<Self, TryLockError> {
        file.try_lock()?;
        Ok(Self { file, mark: Mark::here() })
    }

    /// The file.
    pub(crate) const fn file(&self) -> &File {
        &self.file
    }
}

impl Drop for Exclusive {
    fn drop(&mut self) {
        if self.mark.is_here() {
            // If it fails, the lock ends with the process.
            let _ = self.file.unlock();
        }
    }
}

/// How often it is looked whether a lock is free that is not waited for without end.
const PAUSE: Duration = Duration::from_millis(2);
