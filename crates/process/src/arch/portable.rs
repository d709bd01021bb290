//! A system without `fork`, as Miri's is.

/// None.
pub(crate) const fn forks() -> u32 {
    0
}
