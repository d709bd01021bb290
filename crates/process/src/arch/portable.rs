//! A system without `fork`, as Miri's is.

/// None.
pub(crate) const fn forks() -> u32 {
    0
}

/// The number of this process; where the system has no processes, there is one.
pub(crate) fn process() -> u32 {
    if cfg!(target_family = "wasm") { 0 } else { std::process::id() }
}
