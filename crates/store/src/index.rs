//! The index: which pairings there are, and what became of each name.
//!
//! `SQLite` in its write-ahead mode with full synchronisation: what a statement changed is durable when it returns.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use lanner_step::Party;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, Row, named_params};

use crate::open_indexes::OpenIndex;
use crate::seal::Salt;
use crate::{Held, MaterialId, Pairing, PairingEntry, PairingId, StoreError};

/// The index of a store, as one party uses it.
pub(crate) struct Index {
    connection: Connection,
    path: PathBuf,
    /// Goes after the connection.
    _open: OpenIndex,
}

/// What the index says of a piece that can be taken.
pub(crate) struct Piece {
    pub(crate) salt: Salt,
    pub(crate) expires: u64,
}

/// What is sealed of a pairing.
pub(crate) struct Sealed {
    pub(crate) secret: Vec<u8>,
    /// Of the secret.
    pub(crate) salt: Salt,
    /// Of the file of keys, if there is one.
    pub(crate) keys: Option<Salt>,
}

/// What the index keeps of a pairing.
pub(crate) struct PairingRow {
    pub(crate) sealed: Sealed,
    pub(crate) model_name: String,
    pub(crate) peer: String,
    pub(crate) certificate: Option<String>,
}

impl Index {
    /// Opens the index, and makes it where it is new. The file exists. A child that `fork` made must neither use nor drop it.
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        let failed = |source| failed(path, source);
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let open = OpenIndex::note(path)?;
        let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
        let set_up = || -> Result<u32, rusqlite::Error> {
            connection.busy_timeout(BUSY)?;
            connection.pragma_update(None, "journal_mode", "WAL")?;
            // At least as much as FULL in every journal mode; and where fsync leaves bytes in the drive, more than that.
            connection.pragma_update(None, "synchronous", "EXTRA")?;
            connection.pragma_update(None, "fullfsync", true)?;
            connection.pragma_update(None, "checkpoint_fullfsync", true)?;
            connection.pragma_update(None, "secure_delete", true)?;
            connection.pragma_update(None, "foreign_keys", true)?;
            connection.pragma_query_value(None, "user_version", |row| row.get(0))
        };
        match patiently(set_up).map_err(failed)? {
            0 => connection.execute_batch(SCHEMA).map_err(failed)?,
            VERSION => {}
            theirs => return Err(StoreError::Version { ours: VERSION, theirs }),
        }
        Ok(Self { connection, path: path.to_owned(), _open: open })
    }

    /// Adds a pairing, whose keys are sealed under a salt if there are any.
    pub(crate) fn add_pairing(
        &self,
        party: Party,
        pairing: &Pairing,
        sealed: &Sealed,
        key_bytes: u64,
        now: u64,
    ) -> Result<(), StoreError> {
        self.execute(
            "INSERT INTO pairings (party, id, secret, salt, keys, key_bytes, model, model_name, peer, certificate, created, used)
             VALUES (:party, :id, :secret, :salt, :keys, :key_bytes, :model, :model_name, :peer, :certificate, :now, :now)",
            named_params! {
                ":party": code(party), ":id": pairing.id.as_bytes(), ":secret": sealed.secret, ":salt": sealed.salt,
                ":keys": sealed.keys, ":key_bytes": key_bytes, ":model": pairing.model, ":model_name": pairing.model_name,
                ":peer": pairing.peer, ":certificate": pairing.certificate, ":now": now,
            },
        )?;
        Ok(())
    }

    /// A pairing over a model.
    pub(crate) fn pairing(
        &self,
        party: Party,
        id: PairingId,
        model: &[u8; 32],
    ) -> Result<Option<PairingRow>, StoreError> {
        let read = |row: &Row<'_>| {
            Ok(PairingRow {
                sealed: Sealed { secret: row.get(0)?, salt: row.get(1)?, keys: row.get(2)? },
                model_name: row.get(3)?,
                peer: row.get(4)?,
                certificate: row.get(5)?,
            })
        };
        let statement = "SELECT secret, salt, keys, model_name, peer, certificate FROM pairings
             WHERE party = ? AND id = ? AND model = ?";
        let found = self.connection.query_row(statement, (code(party), id.as_bytes(), model), read);
        self.checked(found.optional())
    }

    /// The names of all pairings with a peer over a model, the last used first.
    pub(crate) fn pairings_with(
        &self,
        party: Party,
        peer: &str,
        model: &[u8; 32],
    ) -> Result<Vec<PairingId>, StoreError> {
        let statement = "SELECT id FROM pairings WHERE party = ? AND peer = ? AND model = ? ORDER BY used DESC, rowid DESC";
        self.list(statement, (code(party), peer, model), |row| Ok(PairingId::from_bytes(row.get(0)?)))
    }

    /// Notes that a pairing is in use.
    pub(crate) fn touch(&self, party: Party, id: PairingId, now: u64) -> Result<(), StoreError> {
        self.execute(
            "UPDATE pairings SET used = ? WHERE party = ? AND id = ?",
            (now, code(party), id.as_bytes()),
        )?;
        Ok(())
    }

    /// Forgets a pairing and all that was made with it; whether there was one.
    pub(crate) fn remove_pairing(&self, party: Party, id: PairingId) -> Result<bool, StoreError> {
        let removed =
            self.execute("DELETE FROM pairings WHERE party = ? AND id = ?", (code(party), id.as_bytes()))?;
        Ok(removed > 0)
    }

    /// Forgets where the keys of a pairing are.
    pub(crate) fn forget_keys(&self, party: Party, id: PairingId) -> Result<(), StoreError> {
        let statement = "UPDATE pairings SET keys = NULL WHERE party = ? AND id = ?";
        self.execute(statement, (code(party), id.as_bytes())).map(drop)
    }

    /// All pairings, of both parties, with what is kept for them.
    pub(crate) fn entries(&self, now: u64) -> Result<Vec<PairingEntry>, StoreError> {
        let statement =
            "SELECT hex(p.id), p.party, p.model_name, hex(p.model), p.peer, p.certificate, p.created, p.used,
                    count(m.id), p.key_bytes + coalesce(sum(m.bytes), 0)
             FROM pairings p LEFT JOIN material m
               ON m.party = p.party AND m.pairing = p.id AND m.state = 1 AND m.expires > ?
             GROUP BY p.party, p.id ORDER BY p.used DESC, p.rowid DESC";
        self.list(statement, [now], |row| {
            Ok(PairingEntry {
                id: row.get::<_, String>(0)?.to_lowercase(),
                party: if row.get::<_, u8>(1)? == code(Party::Client) { "client" } else { "server" },
                model: row.get(2)?,
                commitment: row.get::<_, String>(3)?.to_lowercase(),
                peer: row.get(4)?,
                certificate: row.get(5)?,
                created: row.get(6)?,
                used: row.get(7)?,
                predictions: row.get(8)?,
                bytes: row.get(9)?,
            })
        })
    }

    /// Notes that material is about to be written: its name is used from here on.
    pub(crate) fn begin(
        &self,
        party: Party,
        pairing: PairingId,
        id: MaterialId,
        bytes: u64,
        [now, expires]: [u64; 2],
    ) -> Result<(), StoreError> {
        let added = self.execute(
            "INSERT OR IGNORE INTO material (party, id, pairing, salt, bytes, created, expires, state)
             SELECT :party, :id, id, zeroblob(32), :bytes, :now, :expires, 0 FROM pairings WHERE party = :party AND id = :pairing",
            named_params! {
                ":party": code(party), ":id": id.as_bytes(), ":pairing": pairing.as_bytes(), ":bytes": bytes, ":now": now,
                ":expires": expires,
            },
        )?;
        match added {
            1 => Ok(()),
            _ if self.is_known(party, id)? => Err(StoreError::Duplicate { id }),
            _ => Err(StoreError::Unpaired),
        }
    }

    /// Notes that material is written: it can be taken from here on.
    pub(crate) fn complete(&self, party: Party, id: MaterialId, salt: &Salt) -> Result<(), StoreError> {
        let statement = "UPDATE material SET state = 1, salt = ? WHERE party = ? AND id = ? AND state = 0";
        match self.execute(statement, (salt, code(party), id.as_bytes()))? {
            1 => Ok(()),
            // The pairing was revoked meanwhile.
            _ => Err(StoreError::Unpaired),
        }
    }

    /// What can be taken by a name.
    pub(crate) fn piece(
        &self,
        party: Party,
        pairing: PairingId,
        id: MaterialId,
    ) -> Result<Option<Piece>, StoreError> {
        let found = self.connection.query_row(
            "SELECT salt, expires FROM material WHERE party = ? AND pairing = ? AND id = ? AND state = 1",
            (code(party), pairing.as_bytes(), id.as_bytes()),
            |row| Ok(Piece { salt: row.get(0)?, expires: row.get(1)? }),
        );
        self.checked(found.optional())
    }

    /// Uses a name up; whether this call did, of several that try.
    pub(crate) fn burn(&self, party: Party, id: MaterialId) -> Result<bool, StoreError> {
        let statement =
            "UPDATE material SET state = 2, salt = zeroblob(32) WHERE party = ? AND id = ? AND state < 2";
        Ok(self.execute(statement, (code(party), id.as_bytes()))? == 1)
    }

    /// The names of what can be taken of a pairing, the oldest first.
    pub(crate) fn available(
        &self,
        party: Party,
        pairing: PairingId,
        now: u64,
    ) -> Result<Vec<MaterialId>, StoreError> {
        let statement = "SELECT id FROM material WHERE party = ? AND pairing = ? AND state = 1 AND expires > ? ORDER BY rowid";
        self.list(statement, (code(party), pairing.as_bytes(), now), |row| {
            Ok(MaterialId::from_bytes(row.get(0)?))
        })
    }

    /// What a party keeps.
    pub(crate) fn held(&self, party: Party, now: u64) -> Result<Held, StoreError> {
        let statement = "SELECT (SELECT count(*) FROM pairings WHERE party = :party),
                    (SELECT coalesce(sum(key_bytes), 0) FROM pairings WHERE party = :party) + coalesce(sum(bytes), 0),
                    coalesce(sum(state), 0)
             FROM material WHERE party = :party AND state < 2 AND expires > :now";
        let found =
            self.connection.query_row(statement, named_params! {":party": code(party), ":now": now}, |row| {
                Ok(Held { pairings: row.get(0)?, bytes: row.get(1)?, predictions: row.get(2)? })
            });
        self.checked(found)
    }

    /// The bytes kept of a pairing: material and keys.
    pub(crate) fn pairing_bytes(&self, party: Party, id: PairingId, now: u64) -> Result<u64, StoreError> {
        let statement = "SELECT coalesce((SELECT key_bytes FROM pairings WHERE party = :party AND id = :id), 0) + coalesce(sum(bytes), 0)
             FROM material WHERE party = :party AND pairing = :id AND state < 2 AND expires > :now";
        let values = named_params! {":party": code(party), ":id": id.as_bytes(), ":now": now};
        self.checked(self.connection.query_row(statement, values, |row| row.get(0)))
    }

    /// The names of all material of a pairing that has files.
    pub(crate) fn of_pairing(&self, party: Party, pairing: PairingId) -> Result<Vec<MaterialId>, StoreError> {
        let statement = "SELECT id FROM material WHERE party = ? AND pairing = ? AND state < 2";
        self.list(statement, (code(party), pairing.as_bytes()), |row| Ok(MaterialId::from_bytes(row.get(0)?)))
    }

    /// Some of the names whose files are of no use any more: of what has expired, was used, or was being written by a process that must have died.
    pub(crate) fn stale(&self, party: Party, now: u64, begun: u64) -> Result<Vec<MaterialId>, StoreError> {
        let statement = "SELECT id FROM material WHERE party = ? AND (state = 2 OR state = 1 AND expires <= ? OR state = 0 AND created < ?) LIMIT 256";
        self.list(statement, (code(party), now, begun), |row| Ok(MaterialId::from_bytes(row.get(0)?)))
    }

    /// Uses names up whose files are about to be removed.
    pub(crate) fn retire(&self, party: Party, ids: &[MaterialId]) -> Result<(), StoreError> {
        self.mark(party, ids, "UPDATE material SET state = 2, salt = zeroblob(32) WHERE party = ? AND id = ?")
    }

    /// Notes that the files of names that were used are removed.
    pub(crate) fn settle(&self, party: Party, ids: &[MaterialId]) -> Result<(), StoreError> {
        self.mark(party, ids, "UPDATE material SET state = 3 WHERE party = ? AND id = ?")
    }

    /// The same change for all of these, in one transaction.
    fn mark(&self, party: Party, ids: &[MaterialId], statement: &str) -> Result<(), StoreError> {
        let change = || {
            let transaction = self.connection.unchecked_transaction()?;
            for id in ids {
                transaction.execute(statement, (code(party), id.as_bytes()))?;
            }
            transaction.commit()
        };
        if ids.is_empty() { Ok(()) } else { self.checked(change()) }
    }

    /// The names of all files that are in use: of material and of pairings.
    pub(crate) fn names(&self, party: Party) -> Result<(Vec<MaterialId>, Vec<PairingId>), StoreError> {
        let statement = "SELECT id FROM material WHERE party = ? AND state < 2";
        let material = self.list(statement, [code(party)], |row| Ok(MaterialId::from_bytes(row.get(0)?)))?;
        let statement = "SELECT id FROM pairings WHERE party = ? AND keys IS NOT NULL";
        let keys = self.list(statement, [code(party)], |row| Ok(PairingId::from_bytes(row.get(0)?)))?;
        Ok((material, keys))
    }

    /// Forgets names that have long expired: no session that could give them again lives.
    pub(crate) fn forget(&self, party: Party, expired: u64) -> Result<(), StoreError> {
        self.execute("DELETE FROM material WHERE party = ? AND expires < ?", (code(party), expired)).map(drop)
    }

    /// Pairings without material that nobody has used since.
    pub(crate) fn idle_pairings(
        &self,
        party: Party,
        now: u64,
        since: u64,
    ) -> Result<Vec<PairingId>, StoreError> {
        let statement = "SELECT id FROM pairings p WHERE party = ? AND used < ? AND NOT EXISTS
                (SELECT 1 FROM material m WHERE m.party = p.party AND m.pairing = p.id AND m.state < 2 AND m.expires > ?)";
        self.list(statement, (code(party), since, now), |row| Ok(PairingId::from_bytes(row.get(0)?)))
    }

    fn is_known(&self, party: Party, id: MaterialId) -> Result<bool, StoreError> {
        let statement = "SELECT 1 FROM material WHERE party = ? AND id = ?";
        let found = self.connection.query_row(statement, (code(party), id.as_bytes()), |_| Ok(()));
        Ok(self.checked(found.optional())?.is_some())
    }

    fn execute(&self, statement: &str, values: impl rusqlite::Params) -> Result<usize, StoreError> {
        self.checked(self.connection.execute(statement, values))
    }

    fn list<T>(
        &self,
        statement: &str,
        values: impl rusqlite::Params,
        read: impl FnMut(&Row<'_>) -> Result<T, rusqlite::Error>,
    ) -> Result<Vec<T>, StoreError> {
        let listed = || self.connection.prepare(statement)?.query_map(values, read)?.collect();
        self.checked(listed())
    }

    fn checked<T>(&self, result: Result<T, rusqlite::Error>) -> Result<T, StoreError> {
        result.map_err(|source| failed(&self.path, source))
    }
}

/// Sets up again while another process does: some of the statements do not wait by themselves.
fn patiently<T>(set_up: impl Fn() -> Result<T, rusqlite::Error>) -> Result<T, rusqlite::Error> {
    let patience = Instant::now() + BUSY;
    loop {
        match set_up() {
            Err(error) if is_busy(&error) && Instant::now() < patience => thread::sleep(BUSY / 1000),
            done => return done,
        }
    }
}

fn failed(path: &Path, source: rusqlite::Error) -> StoreError {
    let path = path.to_owned();
    if is_busy(&source) { StoreError::Busy { path } } else { StoreError::Index { path, source } }
}

/// Whether another process holds the index.
fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

const fn code(party: Party) -> u8 {
    match party {
        Party::Client => 0,
        Party::Server => 1,
    }
}

/// How long a statement waits for another process's.
const BUSY: Duration = Duration::from_secs(30);

/// Changes with [`SCHEMA`].
const VERSION: u32 = 1;

/// A name's state: 0 while it is being written, 1 while it can be taken, 2 once it was used, 3 once its file was removed.
const SCHEMA: &str = "
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS pairings (
    party INTEGER NOT NULL,
    id BLOB NOT NULL,
    secret BLOB NOT NULL,
    salt BLOB NOT NULL,
    keys BLOB,
    key_bytes INTEGER NOT NULL,
    model BLOB NOT NULL,
    model_name TEXT NOT NULL,
    peer TEXT NOT NULL,
    certificate TEXT,
    created INTEGER NOT NULL,
    used INTEGER NOT NULL,
    PRIMARY KEY (party, id)
) STRICT;
CREATE TABLE IF NOT EXISTS material (
    party INTEGER NOT NULL,
    id BLOB NOT NULL,
    pairing BLOB NOT NULL,
    salt BLOB NOT NULL,
    bytes INTEGER NOT NULL,
    created INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    state INTEGER NOT NULL,
    PRIMARY KEY (party, id),
    FOREIGN KEY (party, pairing) REFERENCES pairings (party, id) ON DELETE CASCADE
) STRICT;
CREATE INDEX IF NOT EXISTS material_of_pairing ON material (party, pairing, state, expires, bytes);
CREATE INDEX IF NOT EXISTS material_by_state ON material (party, state, expires, bytes);
CREATE INDEX IF NOT EXISTS material_by_expiry ON material (party, expires);
PRAGMA user_version = 1;
COMMIT;";
