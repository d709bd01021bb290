//! Material that is made ahead and used once: garbled tables, masks, correlations.
//!
//! Used twice, it reveals secrets: two predictions with one garbled table give both labels of a wire. So material moves
//! (no type here can be cloned), an identifier never returns, and [`FileStore`] makes "consumed" durable before
//! anything that depends on the material can leave this machine. After a crash what is not provably unused is gone.
//!
//! Threat model: the disk may lose or garble what was not yet synchronised, and the process may die at any
//! instruction. Who copies the state directory, or restores it from a backup, undoes all of this.

mod disk;
mod file;
mod log;
mod memory;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::path::PathBuf;

use lanner_net::NetError;
use lanner_primitives::{Label, derive_seed};
use thiserror::Error;
use zeroize::{Zeroize, ZeroizeOnDrop};

pub use file::FileStore;
pub use memory::MemoryStore;

/// Names material: never two pieces by one name, whatever became of the first.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MaterialId([u8; 16]);

impl MaterialId {
    /// The name of these bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The name that both parties give to the material of a session's layer, operation, repetition and direction.
    #[must_use]
    pub fn of(label: &Label) -> Self {
        Self(*derive_seed(b"lanner material", label).as_bytes())
    }

    /// The bytes of the name.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for MaterialId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for MaterialId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The bytes of material; erased when dropped.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Material(Vec<u8>);

impl Material {
    /// Takes over the bytes of material.
    #[must_use]
    pub const fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// One-time material of any form: bytes on disk, or what a party holds in memory.
pub trait OneTime: Send {
    /// How many bytes of it are kept, at least about.
    fn kept_bytes(&self) -> u64;
}

impl OneTime for Material {
    fn kept_bytes(&self) -> u64 {
        self.0.len() as u64
    }
}

/// How much material may wait for its use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Pieces.
    pub pieces: usize,
    /// Bytes of all pieces together.
    pub bytes: u64,
}

impl Default for Capacity {
    fn default() -> Self {
        Self { pieces: 4096, bytes: 16 << 30 }
    }
}

impl Capacity {
    fn check(self, held: Self, added: u64) -> Result<(), StoreError> {
        if held.pieces < self.pieces && held.bytes.saturating_add(added) <= self.bytes {
            return Ok(());
        }
        Err(StoreError::Full { pieces: held.pieces, bytes: held.bytes, added })
    }
}

/// Keeps material until its one use.
pub trait Store<M: OneTime = Material>: Send + Sync {
    /// Keeps material under a name that was never used.
    ///
    /// # Errors
    /// [`StoreError::Duplicate`] if the name was used before, [`StoreError::Full`] if it does not fit, or a failed disk.
    fn put(&self, id: MaterialId, material: M) -> Result<(), StoreError>;

    /// Hands material out and forgets it: of several callers one gets it.
    ///
    /// # Errors
    /// [`StoreError::Absent`] if there is none of that name (any more), [`StoreError::Damaged`] if its bytes changed, or a
    /// failed disk. It is consumed in the last two cases as well.
    fn take(&self, id: MaterialId) -> Result<M, StoreError>;

    /// Consumes material without handing it out; a name without material is left free.
    ///
    /// # Errors
    /// A failed disk.
    fn discard(&self, id: MaterialId) -> Result<(), StoreError>;

    /// The names of all material that can be taken, sorted.
    fn available(&self) -> Vec<MaterialId>;

    /// How much is kept.
    fn held(&self) -> Capacity;
}

/// Why material cannot be kept or handed out.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// There is no material of that name, or it was used.
    #[error("there is no unused material {id}")]
    Absent {
        /// The name.
        id: MaterialId,
    },
    /// A name is used once.
    #[error("the name {id} was used before")]
    Duplicate {
        /// The name.
        id: MaterialId,
    },
    /// The material does not fit.
    #[error("the store is full: {pieces} pieces of {bytes} bytes, and {added} bytes more")]
    Full {
        /// Pieces kept.
        pieces: usize,
        /// Bytes kept.
        bytes: u64,
        /// Bytes of the new piece.
        added: u64,
    },
    /// The material is not what was put; it is consumed.
    #[error("the material {id} is damaged")]
    Damaged {
        /// The name.
        id: MaterialId,
    },
    /// Another process uses the store.
    #[error("{path} is in use by another process", path = path.display())]
    Locked {
        /// The store's directory.
        path: PathBuf,
    },
    /// The store was written by another version.
    #[error("the store has version {theirs}, this release reads {ours}")]
    Version {
        /// The version that this release reads.
        ours: u32,
        /// The version of the store.
        theirs: u32,
    },
    /// After a failed write nothing is handed out any more: what the disk holds is unknown until the store is reopened.
    #[error("the store failed before; restart to recover what is provably unused")]
    Failed,
    /// The disk failed.
    #[error("the store's disk: {0}")]
    Disk(#[from] io::Error),
    /// The state directory cannot be used.
    #[error(transparent)]
    State(#[from] NetError),
}
