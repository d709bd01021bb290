//! Has the C library count forks.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

static FORKS: AtomicU32 = AtomicU32::new(0);
static IS_COUNTED: AtomicBool = AtomicBool::new(false);

/// Forks since this was first asked, in this process and those that it is a copy of.
pub(crate) fn forks() -> u32 {
    if !IS_COUNTED.load(Ordering::Acquire) {
        // Two threads may both come here, and each fork counts twice then: it is told from its parent all the same. A lock could be held
        // by a thread that a child has not got.
        // SAFETY: The function adds to a number, which the child of a process with threads may do.
        let failed = unsafe { libc::pthread_atfork(None, None, Some(count)) };
        IS_COUNTED.store(failed == 0, Ordering::Release);
    }
    FORKS.load(Ordering::Relaxed)
}

extern "C" fn count() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// The number of this process.
pub(crate) fn process() -> u32 {
    std::process::id()
}
