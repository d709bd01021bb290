//! A store that survives its process.
//!
//! Putting: the bytes become durable under their name, then the log says "put". Taking: the bytes are read, the log says
//! "consumed", the file is removed, and only when both are durable are the bytes handed out. So material that was
//! handed out has neither a file nor the right to one, and either alone keeps it from being handed out again.

use std::collections::{BTreeMap, HashSet};
use std::io::{self, ErrorKind};
use std::sync::{Mutex, MutexGuard, PoisonError};

use lanner_net::StateDirectory;

use super::disk::{Directory, Disk};
use super::log::{self, End, Piece, Record};
use super::{Capacity, Material, MaterialId, Store, StoreError};

/// Keeps material in a private directory, for one process at a time.
///
/// Material is not encrypted on disk, and removed files are not overwritten: who reads the disk reads the material.
pub struct FileStore {
    capacity: Capacity,
    content: Mutex<Content>,
}

impl FileStore {
    /// Opens the store in a state directory. Material that is not provably unused is discarded.
    ///
    /// # Errors
    /// [`StoreError::Locked`] if another process has it open, [`StoreError::Version`] if another release wrote it,
    /// [`StoreError::State`] or [`StoreError::Disk`] if the directory cannot be used.
    pub fn open(state: &StateDirectory, capacity: Capacity) -> Result<Self, StoreError> {
        let directory = state.subdirectory(DIRECTORY)?;
        Self::on(Box::new(Directory::open(directory.path())?), capacity)
    }

    /// Opens the store on any disk.
    pub(super) fn on(disk: Box<dyn Disk>, capacity: Capacity) -> Result<Self, StoreError> {
        Ok(Self { capacity, content: Mutex::new(Content::recover(disk)?) })
    }

    /// How many names were ever given.
    #[cfg(test)]
    pub(super) fn names_given(&self) -> usize {
        self.content().map_or(0, |content| content.names.len())
    }

    fn content(&self) -> Result<MutexGuard<'_, Content>, StoreError> {
        let content = self.content.lock().unwrap_or_else(PoisonError::into_inner);
        if content.failed { Err(StoreError::Failed) } else { Ok(content) }
    }
}

impl Store for FileStore {
    fn put(&self, id: MaterialId, material: Material) -> Result<(), StoreError> {
        let mut content = self.content()?;
        self.capacity.check(content.held(), material.as_bytes().len() as u64)?;
        if content.names.contains(&id) {
            return Err(StoreError::Duplicate { id });
        }
        content.put(id, material.as_bytes())
    }

    fn take(&self, id: MaterialId) -> Result<Material, StoreError> {
        let mut content = self.content()?;
        let piece = content.unused.get(&id).copied().ok_or(StoreError::Absent { id })?;
        let read = content.disk.read_file(&file_name(id)).map(Material::new);
        content.consume(id)?;
        match read {
            Ok(material) if Piece::of(material.as_bytes()) == piece => Ok(material),
            Ok(_) => Err(StoreError::Damaged { id }),
            Err(error) if error.kind() == ErrorKind::NotFound => Err(StoreError::Damaged { id }),
            Err(error) => Err(error.into()),
        }
    }

    fn discard(&self, id: MaterialId) -> Result<(), StoreError> {
        let mut content = self.content()?;
        if content.unused.contains_key(&id) { content.consume(id) } else { Ok(()) }
    }

    fn available(&self) -> Vec<MaterialId> {
        self.content().map_or_else(|_| Vec::new(), |content| content.unused.keys().copied().collect())
    }

    fn held(&self) -> Capacity {
        self.content().map_or(Capacity { pieces: 0, bytes: 0 }, |content| content.held())
    }
}

struct Content {
    disk: Box<dyn Disk>,
    unused: BTreeMap<MaterialId, Piece>,
    /// Every name ever given.
    names: HashSet<MaterialId>,
    bytes: u64,
    /// Records in the log.
    records: u64,
    /// Set while the disk is being changed: what a failure leaves there is unknown.
    failed: bool,
}

impl Content {
    fn held(&self) -> Capacity {
        Capacity { pieces: self.unused.len(), bytes: self.bytes }
    }

    fn put(&mut self, id: MaterialId, bytes: &[u8]) -> Result<(), StoreError> {
        let piece = Piece::of(bytes);
        self.names.insert(id);
        self.failed = true;
        self.disk.write_file(&file_name(id), bytes)?;
        self.disk.sync_names()?;
        self.append(&Record::Put(id, piece))?;
        self.failed = false;
        self.bytes += piece.length;
        self.unused.insert(id, piece);
        Ok(())
    }

    /// Makes it durable that nobody gets this material again.
    fn consume(&mut self, id: MaterialId) -> Result<(), StoreError> {
        let Some(piece) = self.unused.remove(&id) else { return Err(StoreError::Absent { id }) };
        self.bytes -= piece.length;
        self.failed = true;
        self.append(&Record::Consumed(id))?;
        self.disk.remove_file(&file_name(id))?;
        self.disk.sync_names()?;
        self.failed = false;
        Ok(())
    }

    fn append(&mut self, record: &Record) -> io::Result<()> {
        self.disk.append_log(&log::encode(record, self.records))?;
        self.disk.sync_log()?;
        self.records += 1;
        Ok(())
    }

    fn recover(disk: Box<dyn Disk>) -> Result<Self, StoreError> {
        let mut content = Self {
            disk,
            unused: BTreeMap::new(),
            names: HashSet::new(),
            bytes: 0,
            records: 0,
            failed: false,
        };
        let bytes = content.disk.read_log()?;
        let log = log::parse(&bytes)?;
        log.records.iter().for_each(|record| content.replay(record));
        let files: HashSet<String> = content.disk.file_names()?.into_iter().collect();
        if log.end == End::Garbled {
            // A lost record may have been a "consumed".
            content.unused.clear();
        }
        content.unused.retain(|id, _| files.contains(&file_name(*id)));
        content.bytes = content.unused.values().map(|piece| piece.length).sum();
        content.rewrite_log()?;
        content.remove_orphans(&files)?;
        Ok(content)
    }

    fn replay(&mut self, record: &Record) {
        match *record {
            // A name that comes back was never written so; what it means is unknown, and nobody gets it.
            Record::Put(id, piece) if self.names.insert(id) => {
                self.unused.insert(id, piece);
            }
            Record::Put(id, _) | Record::Consumed(id) => {
                self.names.insert(id);
                self.unused.remove(&id);
            }
        }
    }

    /// Writes what is known as a new log: for each name one record, and "put" only for what can still be taken.
    fn rewrite_log(&mut self) -> io::Result<()> {
        let mut bytes = log::header();
        self.records = 0;
        for id in &self.names {
            let record = self.unused.get(id).map_or(Record::Consumed(*id), |piece| Record::Put(*id, *piece));
            bytes.extend(log::encode(&record, self.records));
            self.records += 1;
        }
        self.disk.replace_log(&bytes)
    }

    /// Removes drafts, material that was never said to be put, and material that is consumed.
    fn remove_orphans(&mut self, files: &HashSet<String>) -> io::Result<()> {
        let kept: HashSet<String> = self.unused.keys().map(|id| file_name(*id)).collect();
        for name in files.difference(&kept) {
            self.disk.remove_file(name)?;
        }
        self.disk.sync_names()
    }
}

fn file_name(id: MaterialId) -> String {
    id.to_string()
}

const DIRECTORY: &str = "material";
