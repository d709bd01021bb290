//! What a party keeps between sessions: pairings with peers, one-time material that was made with them, uploads of public keys, and a
//! model's [encoded weights](SharedWeights).
//!
//! Material used twice reveals secrets: two predictions with one garbled table give both labels of a wire, two openings under one mask
//! their difference. So material moves (nothing here can be cloned), a name never returns, and [`Stock::take`] makes "used" durable before
//! it hands the bytes out. After a crash what is not provably unused is gone.
//!
//! ```text
//! STATE/material.key          32 random bytes
//! STATE/material/index        SQLite: pairings, and the names of material with what became of each
//! STATE/material/NAME         sealed bytes: AES-256-GCM under a key for this name alone
//! ```
//!
//! Threat model: the process may die at any instruction, the disk may be full, and files may be damaged: then material is lost, one piece
//! for each damaged file, and none is served twice. Several processes of one machine may use one directory, on a file system of its own: the
//! index's locks say nothing to other machines. A child that `fork` made opens a store of its own, unless its parent had that very index
//! open. Who reads the state directory, its key
//! included, reads what was not used yet; who copies it, or restores it from a backup, undoes all of this.

#[cfg(not(target_family = "wasm"))]
mod arch;
#[cfg(not(target_family = "wasm"))]
mod convictions;
mod error;
#[cfg(not(target_family = "wasm"))]
mod exclusive;
#[cfg(not(target_family = "wasm"))]
mod files;
#[cfg(not(target_family = "wasm"))]
mod index;
mod met;
mod name;
#[cfg(target_family = "wasm")]
mod nowhere;
#[cfg(not(target_family = "wasm"))]
mod open_indexes;
#[cfg(not(target_family = "wasm"))]
mod pairing;
#[cfg(not(target_family = "wasm"))]
mod platform;
#[cfg(not(target_family = "wasm"))]
mod seal;
#[cfg(not(target_family = "wasm"))]
mod stock;
#[cfg(all(test, unix))]
mod tests;
#[cfg(not(target_family = "wasm"))]
mod uploads;
#[cfg(not(target_family = "wasm"))]
mod weights;

#[cfg(not(target_family = "wasm"))]
pub use convictions::{Convictions, Turn};
pub use error::StoreError;
#[cfg(not(target_family = "wasm"))]
pub use files::free_bytes;
pub use met::{Pairing, PairingEntry, Secret};
pub use name::{MaterialId, PairingId};
#[cfg(target_family = "wasm")]
pub use nowhere::Stock;
#[cfg(not(target_family = "wasm"))]
pub use stock::{Held, Limits, Stock};
#[cfg(not(target_family = "wasm"))]
pub use uploads::{Upload, Uploads};
#[cfg(not(target_family = "wasm"))]
pub use weights::{Contents, SharedWeights};

use zeroize::{Zeroize, ZeroizeOnDrop};

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

    /// The bytes, to seal them in place.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) const fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.0
    }
}
