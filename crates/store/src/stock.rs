//! One party's pairings and material.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lanner_net::{StateDirectory, create_private};
use lanner_process::Mark;
use lanner_step::Party;
use serde::Serialize;

use crate::files::Files;
use crate::index::Index;
use crate::open_indexes::Inside;
use crate::seal::StoreKey;
use crate::{Material, MaterialId, PairingId, StoreError};

/// How much may be kept, and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of material and keys, of all pairings together, 4 KiB for each pairing and piece among them.
    pub bytes: u64,
    /// Bytes of one pairing.
    pub pairing_bytes: u64,
    /// Seconds after which material that was not used is discarded.
    pub seconds: u64,
}

impl Default for Limits {
    /// 16 GiB, for anyone who comes, for a week.
    fn default() -> Self {
        Self { bytes: 16 << 30, pairing_bytes: 16 << 30, seconds: 7 * DAY }
    }
}

/// How much is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Held {
    /// Pairings.
    pub pairings: u64,
    /// Predictions for which there is material.
    pub predictions: u64,
    /// Bytes of material and keys, 4 KiB for each pairing and piece among them.
    pub bytes: u64,
}

/// One party's pairings and material in a state directory. Nothing is made on the disk before there is something to keep. In a child that
/// `fork` made every call is [`StoreError::OtherProcess`].
pub struct Stock {
    state: PathBuf,
    pub(crate) party: Party,
    limits: Limits,
    opened: Mutex<Option<Arc<Opened>>>,
    mark: Mark,
}

/// A stock's directory.
pub(crate) struct Opened {
    pub(crate) files: Files,
    pub(crate) key: StoreKey,
    index: Mutex<Index>,
    /// While it is being closed; goes last.
    closing: Option<Inside>,
}

impl Stock {
    /// The stock of a party in a state directory.
    #[must_use]
    pub fn new(state: impl Into<PathBuf>, party: Party, limits: Limits) -> Self {
        Self { state: state.into(), party, limits, opened: Mutex::default(), mark: Mark::here() }
    }

    /// The same with other limits.
    #[must_use]
    pub fn within(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Keeps material of a pairing under a name that was never used; it is durable on return.
    ///
    /// # Errors
    /// [`StoreError::Duplicate`] if the name was used before, [`StoreError::Full`] if it does not fit, [`StoreError::Unpaired`] if the pairing
    /// was revoked; [`StoreError`] if the disk fails.
    pub fn put(&self, pairing: PairingId, id: MaterialId, mut material: Material) -> Result<(), StoreError> {
        let bytes = material.as_bytes().len() as u64 + OVERHEAD;
        let opened = self.open_for(bytes)?;
        self.tidy(&opened)?;
        let now = now();
        let expires = now.saturating_add(self.limits.seconds);
        opened.index(|index| {
            // Under the index's lock, so that two that come at once do not both fit.
            self.check_room(index, pairing, bytes)?;
            index.begin(self.party, pairing, id, bytes, [now, expires])
        })?;
        boundary("begun");
        let name = self.name("material", id);
        let written = opened.key.seal(&name, &mut material).and_then(|salt| {
            opened.files.write(&name, material.as_bytes())?;
            boundary("written");
            opened.index(|index| index.complete(self.party, id, &salt))
        });
        if written.is_err() {
            // The name stays used; if this fails too, whoever tidies finds it.
            let _ = self.discard(id);
        }
        boundary("complete");
        written
    }

    /// Hands material out and forgets it: of several that try one gets it, and that it is used is durable on return.
    ///
    /// # Errors
    /// [`StoreError::Absent`] if there is none of that name (any more), [`StoreError::Damaged`] if its bytes changed: it is used up then.
    /// [`StoreError`] if the disk fails.
    pub fn take(&self, pairing: PairingId, id: MaterialId) -> Result<Material, StoreError> {
        let absent = || Err(StoreError::Absent { id });
        self.read(absent, |opened| {
            let Some(piece) = opened.index(|index| index.piece(self.party, pairing, id))? else {
                return Ok(absent());
            };
            let name = self.name("material", id);
            let sealed = opened.files.read(&name)?;
            boundary("read");
            if !opened.index(|index| index.burn(self.party, id))? {
                return Ok(absent());
            }
            boundary("burnt");
            // Whatever the index's locks are worth on this file system, a name is removed once.
            let removed = opened.files.remove(&name);
            boundary("removed");
            if piece.expires <= now() {
                return Ok(absent());
            }
            let sealed = sealed.filter(|_| removed).map(Material::new);
            let opened = sealed.and_then(|sealed| opened.key.open_sealed(&name, &piece.salt, sealed));
            Ok(opened.ok_or(StoreError::Damaged { id }))
        })?
    }

    /// Uses material up without handing it out.
    ///
    /// # Errors
    /// [`StoreError`] if the disk fails.
    pub fn discard(&self, id: MaterialId) -> Result<(), StoreError> {
        self.read(
            || (),
            |opened| {
                let burnt = opened.index(|index| index.burn(self.party, id));
                opened.files.remove(&self.name("material", id));
                burnt.map(drop)
            },
        )
    }

    /// The names of what can be taken of a pairing, the oldest first.
    ///
    /// # Errors
    /// [`StoreError`] if the disk fails.
    pub fn available(&self, pairing: PairingId) -> Result<Vec<MaterialId>, StoreError> {
        self.read(Vec::new, |opened| opened.index(|index| index.available(self.party, pairing, now())))
    }

    /// How much this party keeps.
    ///
    /// # Errors
    /// [`StoreError`] if the disk fails.
    pub fn held(&self) -> Result<Held, StoreError> {
        self.read(Held::default, |opened| opened.index(|index| index.held(self.party, now())))
    }

    /// Checks that a pairing may keep more.
    pub(crate) fn check_room(&self, index: &Index, pairing: PairingId, added: u64) -> Result<(), StoreError> {
        let check = |held: u64, limit: u64| match held.checked_add(added) {
            Some(sum) if sum <= limit => Ok(()),
            _ => Err(StoreError::Full { held, added, limit }),
        };
        check(index.pairing_bytes(self.party, pairing, now())?, self.limits.pairing_bytes)?;
        check(index.held(self.party, now())?.bytes, self.limits.bytes)
    }

    /// Removes what is of no use any more.
    pub(crate) fn tidy(&self, opened: &Opened) -> Result<(), StoreError> {
        let now = now();
        let stale = opened.index(|index| {
            let stale = index.stale(self.party, now, now.saturating_sub(HOUR))?;
            index.retire(self.party, &stale)?;
            Ok(stale)
        })?;
        for id in &stale {
            opened.files.remove(&self.name("material", id));
        }
        opened.index(|index| index.settle(self.party, &stale))?;
        opened.index(|index| index.forget(self.party, now.saturating_sub(DAY)))?;
        let since = now.saturating_sub(30 * DAY);
        for id in opened.index(|index| index.idle_pairings(self.party, now, since))? {
            self.forget(opened, id)?;
        }
        Ok(())
    }

    /// The name of a file, and of what is sealed in it: of this party alone, which may share the directory with the other.
    pub(crate) fn name(&self, kind: &str, id: impl std::fmt::Display) -> String {
        format!("{}{kind}-{id}", self.prefix())
    }

    /// What all its names begin with.
    const fn prefix(&self) -> &'static str {
        match self.party {
            Party::Client => "client-",
            Party::Server => "server-",
        }
    }

    /// Works with what is on the disk, or says what there is without.
    pub(crate) fn read<T>(
        &self,
        nothing: impl FnOnce() -> T,
        work: impl FnOnce(&Opened) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.mark.check(STOCK)?;
        if self.state.join(DIRECTORY).join(INDEX).exists() { work(&*self.open()?) } else { Ok(nothing()) }
    }

    /// Opens the stock to add to it. One that may keep nothing is not made.
    pub(crate) fn open_for(&self, added: u64) -> Result<Arc<Opened>, StoreError> {
        match self.limits.bytes {
            0 => Err(StoreError::Full { held: 0, added, limit: 0 }),
            _ => self.open(),
        }
    }

    fn open(&self) -> Result<Arc<Opened>, StoreError> {
        // Before the lock, which a thread may have held that a child has not got.
        self.mark.check(STOCK)?;
        // What is opened is complete, whoever panicked.
        let mut slot = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(opened) = &*slot {
            return Ok(Arc::clone(opened));
        }
        let opened = Arc::new(Opened::at(&self.state)?);
        self.tidy(&opened)?;
        let (material, keys) = opened.index(|index| index.names(self.party))?;
        let material = material.into_iter().map(|id| self.name("material", id));
        let used = material.chain(keys.into_iter().map(|id| self.name("keys", id))).collect();
        opened.files.sweep(self.prefix(), &used, Duration::from_secs(HOUR));
        Ok(Arc::clone(slot.insert(opened)))
    }
}

impl Drop for Stock {
    fn drop(&mut self) {
        if !self.mark.is_here() {
            // `SQLite` closes a connection only where it was opened: a child leaves it as it is.
            std::mem::forget(self.opened.get_mut().unwrap_or_else(PoisonError::into_inner).take());
        }
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.closing = Some(Inside::enter());
    }
}

impl Opened {
    fn at(state: &Path) -> Result<Self, StoreError> {
        let state = StateDirectory::open(state)?;
        let directory = state.subdirectory(DIRECTORY)?;
        let key = StoreKey::open(&state)?;
        let path = directory.path().join(INDEX);
        match create_private(&path) {
            Err(source) if source.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(StoreError::File { path, source });
            }
            _ => {}
        }
        let _inside = Inside::enter();
        let index = Mutex::new(Index::open(&path)?);
        Ok(Self { files: Files::new(directory), key, index, closing: None })
    }

    pub(crate) fn index<T>(
        &self,
        work: impl FnOnce(&Index) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let _inside = Inside::enter();
        // Each statement is complete in itself, whoever panicked.
        work(&self.index.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Where tests let a process die.
fn boundary(name: &str) {
    #[cfg(test)]
    crate::tests::reached(name);
    #[cfg(not(test))]
    let _ = name;
}

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

const STOCK: &str = "the stock of material";
const DIRECTORY: &str = "material";
const INDEX: &str = "index";
/// What a pairing or a piece counts beside its bytes: its file's last block, and its place in the index.
pub(crate) const OVERHEAD: u64 = 4096;
const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;
