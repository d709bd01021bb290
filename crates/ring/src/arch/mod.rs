//! The kernels, one file per instruction set, and the one place that chooses among them.

pub(crate) mod portable;

/// An instruction set the kernels are written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Backend {
    /// Plain Rust; any modulus.
    Portable,
}

impl Backend {
    /// Every backend, slowest first.
    pub const ALL: [Self; 1] = [Self::Portable];

    /// The fastest backend of this machine that can serve `q`.
    pub(crate) fn select(_q: u64) -> Self {
        Self::Portable
    }

    /// Whether this machine has the backend and it can serve `q`.
    pub(crate) fn serves(self, _q: u64) -> bool {
        true
    }
}
