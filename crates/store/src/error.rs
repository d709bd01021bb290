//! Why material cannot be kept or handed out.

use std::io;
use std::path::PathBuf;

use lanner_net::NetError;
use lanner_process::OtherProcess;
use thiserror::Error;

use crate::MaterialId;

/// Why material cannot be kept or handed out.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// There is no material of that name, or it was used, or it has expired.
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
    /// It does not fit.
    #[error("the store is full: it holds {held} of {limit} bytes and needs {added} more")]
    Full {
        /// Bytes kept.
        held: u64,
        /// Bytes of the new piece.
        added: u64,
        /// Bytes that may be kept.
        limit: u64,
    },
    /// The material is not what was put; it is used up.
    #[error("the material {id} is damaged: it is lost, and nothing else is")]
    Damaged {
        /// The name.
        id: MaterialId,
    },
    /// What is kept of a pairing is not what was put.
    #[error("what is kept of a pairing is damaged")]
    DamagedPairing,
    /// This party has no such pairing (any more).
    #[error("there is no such pairing")]
    Unpaired,
    /// Not the name of a pairing.
    #[error("{text:?} is not the name of a pairing")]
    NoName {
        /// What was given.
        text: String,
    },
    /// The store was written by another release.
    #[error("the store has version {theirs}, this release reads {ours}")]
    Version {
        /// The version that this release reads.
        ours: u32,
        /// The version of the store.
        theirs: u32,
    },
    /// The store's key is not one.
    #[error("the key {path} is damaged", path = path.display())]
    Key {
        /// Its file.
        path: PathBuf,
    },
    /// Other processes hold the index.
    #[error("the index {path} is in use by other processes", path = path.display())]
    Busy {
        /// Its file.
        path: PathBuf,
    },
    /// Something else of the same client is under way, and it takes long.
    #[error("{path}: another prediction of the client is still under way after {seconds:.1} s", path = path.display())]
    Taken {
        /// The client's file.
        path: PathBuf,
        /// How long it was waited for.
        seconds: f64,
    },
    /// The store is another process's, of which this one is a copy: what is taken in both is used twice.
    #[error(transparent)]
    OtherProcess(#[from] OtherProcess),
    /// The process that this one is a copy of had the index open, or was at work on another one, when it was copied: `SQLite` would take the
    /// parent's locks for this process's, or wait for them for ever.
    #[error("the index {path} was in use by the parent of this process when fork copied it", path = path.display())]
    Inherited {
        /// Its file.
        path: PathBuf,
    },
    /// The index failed.
    #[cfg(not(target_family = "wasm"))]
    #[error("the index {path}: {source}", path = path.display())]
    Index {
        /// Its file.
        path: PathBuf,
        /// What failed.
        source: rusqlite::Error,
    },
    /// A file cannot be read or written.
    #[error("{path}: {source}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What failed.
        source: io::Error,
    },
    /// A file of encoded weights is not what was written.
    #[error("the encoded weights {path} are damaged, or another model's", path = path.display())]
    DamagedWeights {
        /// Its file.
        path: PathBuf,
    },
    /// The state directory cannot be used.
    #[error(transparent)]
    State(#[from] NetError),
    /// The operating system gave no randomness.
    #[error("the operating system gave no randomness")]
    Randomness,
}

impl StoreError {
    /// Whether it concerns the one piece of material, and says nothing of others.
    #[must_use]
    pub const fn is_of_material(&self) -> bool {
        matches!(self, Self::Absent { .. } | Self::Damaged { .. })
    }
}
