//! A system without `fork`.

/// None.
pub(crate) const fn forks() -> u32 {
    0
}
