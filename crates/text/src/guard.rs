//! What a library's panic becomes.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// What `work` gives, or `None` where it panics. Where a panic ends the process, as in a browser, it does.
pub(crate) fn guarded<T>(work: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work)).ok()
}
