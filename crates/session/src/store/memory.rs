//! A store that ends with its process.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Capacity, Material, MaterialId, OneTime, Store, StoreError};

/// Keeps material in memory.
pub struct MemoryStore<M = Material> {
    capacity: Capacity,
    content: Mutex<Content<M>>,
}

struct Content<M> {
    unused: BTreeMap<MaterialId, M>,
    /// Every name ever given.
    names: HashSet<MaterialId>,
    bytes: u64,
}

impl<M: OneTime> MemoryStore<M> {
    /// An empty store.
    #[must_use]
    pub fn new(capacity: Capacity) -> Self {
        let content = Content { unused: BTreeMap::new(), names: HashSet::new(), bytes: 0 };
        Self { capacity, content: Mutex::new(content) }
    }

    fn content(&self) -> MutexGuard<'_, Content<M>> {
        // No operation leaves the content half-changed, even if it panics.
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<M> Content<M> {
    fn held(&self) -> Capacity {
        Capacity { pieces: self.unused.len(), bytes: self.bytes }
    }
}

impl<M: OneTime> Store<M> for MemoryStore<M> {
    fn put(&self, id: MaterialId, material: M) -> Result<(), StoreError> {
        let mut content = self.content();
        let added = material.kept_bytes();
        self.capacity.check(content.held(), added)?;
        if !content.names.insert(id) {
            return Err(StoreError::Duplicate { id });
        }
        content.bytes += added;
        content.unused.insert(id, material);
        Ok(())
    }

    fn take(&self, id: MaterialId) -> Result<M, StoreError> {
        let mut content = self.content();
        let material = content.unused.remove(&id).ok_or(StoreError::Absent { id })?;
        content.bytes -= material.kept_bytes();
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
