//! A store that ends with its process.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Capacity, Material, MaterialId, Store, StoreError};

/// Keeps material in memory.
pub struct MemoryStore {
    capacity: Capacity,
    content: Mutex<Content>,
}

#[derive(Default)]
struct Content {
    unused: BTreeMap<MaterialId, Material>,
    /// Every name ever given.
    names: HashSet<MaterialId>,
    bytes: u64,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new(capacity: Capacity) -> Self {
        Self { capacity, content: Mutex::default() }
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        // No operation leaves the content half-changed, even if it panics.
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Content {
    fn held(&self) -> Capacity {
        Capacity { pieces: self.unused.len(), bytes: self.bytes }
    }
}

impl Store for MemoryStore {
    fn put(&self, id: MaterialId, material: Material) -> Result<(), StoreError> {
        let mut content = self.content();
        let added = material.0.len() as u64;
        self.capacity.check(content.held(), added)?;
        if !content.names.insert(id) {
            return Err(StoreError::Duplicate { id });
        }
        content.bytes += added;
        content.unused.insert(id, material);
        Ok(())
    }

    fn take(&self, id: MaterialId) -> Result<Material, StoreError> {
        let mut content = self.content();
        let material = content.unused.remove(&id).ok_or(StoreError::Absent { id })?;
        content.bytes -= material.0.len() as u64;
        Ok(material)
    }

    fn discard(&self, id: MaterialId) -> Result<(), StoreError> {
        match self.take(id) {
            Err(StoreError::Absent { .. }) => Ok(()),
            other => other.map(drop),
        }
    }

    fn available(&self) -> Vec<MaterialId> {
        self.content().unused.keys().copied().collect()
    }

    fn held(&self) -> Capacity {
        self.content().held()
    }
}
