//! Checks in a copy of the test's process.
#![allow(unsafe_code)]

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Whether a check holds in a child that `fork` makes of this process, with this thread alone. A check that panics, or takes longer than
/// twenty seconds, does not. What the child holds is not dropped.
///
/// # Panics
/// If the system makes no child.
pub fn in_a_fork(check: impl FnOnce() -> bool) -> bool {
    // SAFETY: The child runs the check and leaves by `_exit`, without the parent's destructors.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "no child can be made");
    if child == 0 {
        // SAFETY: It touches no memory.
        unsafe { libc::alarm(PATIENCE) };
        let holds = catch_unwind(AssertUnwindSafe(check)).unwrap_or(false);
        // SAFETY: It ends the process.
        unsafe { libc::_exit(i32::from(!holds)) };
    }
    let mut status = 0;
    // SAFETY: The status is written to a number that lives.
    while unsafe { libc::waitpid(child, &raw mut status, 0) } != child {}
    libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
}

/// Seconds after which the system ends a child.
const PATIENCE: u32 = 20;
