//! No crash makes a store hand out one piece of material twice.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::{BTreeMap, HashSet};
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use lanner_net::StateDirectory;

use super::disk::{Directory, Disk};
use super::file::FileStore;
use super::{Capacity, Material, MaterialId, Store, StoreError};

fn id(byte: u8) -> MaterialId {
    MaterialId::from_bytes([byte; 16])
}

fn bytes(byte: u8) -> Vec<u8> {
    vec![byte; 100 + usize::from(byte)]
}

/// Everything that changes the disk, in an order that mixes puts, takes and discards. `serve` hears of each taken piece.
fn script(store: &FileStore, first: u8, mut serve: impl FnMut(MaterialId)) -> Result<(), StoreError> {
    let mut take = |byte: u8| {
        let material = store.take(id(byte))?;
        assert_eq!(material.as_bytes(), bytes(byte));
        serve(id(byte));
        Ok::<_, StoreError>(())
    };
    let put = |byte: u8| store.put(id(byte), Material::new(bytes(byte)));
    put(first)?;
    put(first + 1)?;
    take(first)?;
    put(first + 2)?;
    put(first + 3)?;
    take(first + 2)?;
    store.discard(id(first + 1))?;
    put(first + 4)?;
    take(first + 3)
}

/// A disk in memory that loses what was not synchronised.
#[derive(Clone, Default)]
struct Platter {
    log: Vec<u8>,
    synced_log: Vec<u8>,
    files: BTreeMap<String, Vec<u8>>,
    synced_files: BTreeMap<String, Vec<u8>>,
    /// Operations until the power fails.
    left: Option<usize>,
    operations: usize,
}

#[derive(Clone, Default)]
struct ModelDisk(Arc<Mutex<Platter>>);

impl ModelDisk {
    fn step<T>(&self, change: impl FnOnce(&mut Platter) -> io::Result<T>) -> io::Result<T> {
        let mut platter = self.0.lock().unwrap();
        if platter.left == Some(0) {
            return Err(io::Error::other("power failure"));
        }
        platter.left = platter.left.map(|left| left - 1);
        platter.operations += 1;
        change(&mut platter)
    }
}

impl Disk for ModelDisk {
    fn read_log(&mut self) -> io::Result<Vec<u8>> {
        self.step(|platter| Ok(platter.log.clone()))
    }

    fn replace_log(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.step(|platter| {
            platter.log = bytes.to_vec();
            platter.synced_log = bytes.to_vec();
            Ok(())
        })
    }

    fn append_log(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.step(|platter| {
            platter.log.extend(bytes);
            Ok(())
        })
    }

    fn sync_log(&mut self) -> io::Result<()> {
        self.step(|platter| {
            platter.synced_log = platter.log.clone();
            Ok(())
        })
    }

    fn write_file(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.step(|platter| {
            platter.files.insert(name.to_owned(), bytes.to_vec());
            Ok(())
        })
    }

    fn read_file(&mut self, name: &str) -> io::Result<Vec<u8>> {
        self.step(|platter| platter.files.get(name).cloned().ok_or_else(|| io::ErrorKind::NotFound.into()))
    }

    fn remove_file(&mut self, name: &str) -> io::Result<()> {
        self.step(|platter| {
            platter.files.remove(name);
            Ok(())
        })
    }

    fn sync_names(&mut self) -> io::Result<()> {
        self.step(|platter| {
            platter.synced_files = platter.files.clone();
            Ok(())
        })
    }

    fn file_names(&mut self) -> io::Result<Vec<String>> {
        self.step(|platter| Ok(platter.files.keys().cloned().collect()))
    }
}

/// What a disk may hold after a power failure: of the log's unsynchronised bytes any part, or garbage of their length;
/// of the unsynchronised names none or all.
fn survivors(platter: &Platter) -> Vec<Platter> {
    let unsynced = platter.log.len() - platter.synced_log.len().min(platter.log.len());
    let synced = platter.log.len() - unsynced;
    let mut logs = vec![platter.synced_log.clone(), platter.log.clone()];
    for cut in [1, unsynced / 2, unsynced.saturating_sub(1)] {
        logs.push(platter.log[..synced + cut.min(unsynced)].to_vec());
    }
    let mut zeros = platter.log.clone();
    zeros[synced..].fill(0);
    logs.push(zeros);
    let names = [&platter.files, &platter.synced_files];
    let combine = |log: &Vec<u8>| names.map(|files| restart(log.clone(), files.clone()));
    logs.iter().flat_map(combine).collect()
}

fn restart(log: Vec<u8>, files: BTreeMap<String, Vec<u8>>) -> Platter {
    Platter { synced_log: log.clone(), synced_files: files.clone(), log, files, left: None, operations: 0 }
}

fn open(platter: Platter) -> (ModelDisk, Result<FileStore, StoreError>) {
    let disk = ModelDisk(Arc::new(Mutex::new(platter)));
    (disk.clone(), FileStore::on(Box::new(disk), Capacity::default()))
}

/// Takes all that a recovered store offers, and finds nothing of what was served.
fn take_all(store: &FileStore, served: &HashSet<MaterialId>) {
    for id in store.available() {
        assert!(!served.contains(&id), "{id} is offered twice");
        store.take(id).unwrap();
    }
    for id in served {
        assert!(matches!(store.take(*id), Err(StoreError::Absent { .. })));
    }
}

#[test]
fn power_failures_at_every_operation_serve_nothing_twice() {
    let (disk, store) = open(Platter::default());
    script(&store.unwrap(), 1, |_| ()).unwrap();
    let operations = disk.0.lock().unwrap().operations;
    assert!(operations > 30);
    for left in 0..=operations {
        let mut served = HashSet::new();
        let (disk, store) = open(Platter { left: Some(left), ..Platter::default() });
        let finished = store.and_then(|store| script(&store, 1, |id| assert!(served.insert(id)))).is_ok();
        assert_eq!(finished, left == operations);
        let platter = disk.0.lock().unwrap().clone();
        for survivor in survivors(&platter) {
            recover_through_failures(&survivor, &served);
        }
    }
}

/// Recovers, with the power failing again at each operation of the recovery.
fn recover_through_failures(survivor: &Platter, served: &HashSet<MaterialId>) {
    for left in 0.. {
        let (disk, store) = open(Platter { left: Some(left), ..survivor.clone() });
        if let Ok(store) = store {
            disk.0.lock().unwrap().left = None;
            take_all(&store, served);
            return;
        }
        let platter = disk.0.lock().unwrap().clone();
        for again in survivors(&platter) {
            take_all(&open(again).1.unwrap(), served);
        }
    }
}

#[test]
fn a_clean_restart_keeps_exactly_what_is_unused() {
    let (disk, store) = open(Platter::default());
    script(&store.unwrap(), 1, |_| ()).unwrap();
    let mut platter = disk.0.lock().unwrap().clone();
    for _ in 0..3 {
        let (disk, store) = open(platter);
        let store = store.unwrap();
        assert_eq!(store.available(), [id(5)]);
        assert_eq!(store.held(), Capacity { pieces: 1, bytes: 105 });
        for used in 1..=4 {
            let again = store.put(id(used), Material::new(bytes(used)));
            assert!(matches!(again, Err(StoreError::Duplicate { .. })));
        }
        platter = disk.0.lock().unwrap().clone();
    }
}

#[test]
fn any_changed_byte_or_truncation_of_the_log_serves_nothing_twice() {
    let mut served = HashSet::new();
    let (disk, store) = open(Platter::default());
    script(&store.unwrap(), 1, |id| assert!(served.insert(id))).unwrap();
    let platter = disk.0.lock().unwrap().clone();
    for position in 0..platter.log.len() {
        let mut changed = platter.clone();
        changed.log[position] ^= 1 << (position % 8);
        match open(restart(changed.log, changed.files)).1 {
            Ok(store) => {
                assert!(store.available().is_empty(), "a garbled log proves nothing unused");
                take_all(&store, &served);
            }
            Err(error) => assert!(matches!(error, StoreError::Version { .. })),
        }
        let mut shorter = platter.clone();
        shorter.log.truncate(position);
        take_all(&open(restart(shorter.log, shorter.files)).1.unwrap(), &served);
    }
}

#[test]
fn records_that_are_moved_or_repeated_are_garbled() {
    let (disk, store) = open(Platter::default());
    let store = store.unwrap();
    store.put(id(1), Material::new(bytes(1))).unwrap();
    store.put(id(2), Material::new(bytes(2))).unwrap();
    let mut platter = disk.0.lock().unwrap().clone();
    let put = platter.log[12..12 + 57].to_vec();
    platter.log.extend(put);
    assert!(open(restart(platter.log, platter.files)).1.unwrap().available().is_empty());
}

#[test]
fn damaged_material_is_consumed_and_not_handed_out() {
    let (disk, store) = open(Platter::default());
    let store = store.unwrap();
    for byte in 1..=2 {
        store.put(id(byte), Material::new(bytes(byte))).unwrap();
    }
    let mut platter = disk.0.lock().unwrap();
    platter.files.get_mut(&id(1).to_string()).unwrap()[3] ^= 1;
    platter.files.remove(&id(2).to_string());
    drop(platter);
    for byte in 1..=2 {
        assert!(matches!(store.take(id(byte)), Err(StoreError::Damaged { .. })));
        assert!(matches!(store.take(id(byte)), Err(StoreError::Absent { .. })));
    }
}

#[test]
fn after_a_failed_write_nothing_more_is_handed_out() {
    let (disk, store) = open(Platter::default());
    let store = store.unwrap();
    for byte in 1..=3 {
        store.put(id(byte), Material::new(bytes(byte))).unwrap();
    }
    disk.0.lock().unwrap().left = Some(1);
    assert!(matches!(store.take(id(1)), Err(StoreError::Disk(_))));
    disk.0.lock().unwrap().left = None;
    assert!(matches!(store.take(id(2)), Err(StoreError::Failed)));
    assert!(matches!(store.put(id(9), Material::new(bytes(9))), Err(StoreError::Failed)));
    assert!(store.available().is_empty());
}

/// A disk that stops before its n-th change, until the process is killed.
struct Stopping {
    disk: Directory,
    left: usize,
}

impl Stopping {
    fn before_change(&mut self) {
        if self.left == 0 {
            report("stopped");
            loop {
                std::thread::park();
            }
        }
        self.left -= 1;
    }
}

impl Disk for Stopping {
    fn read_log(&mut self) -> io::Result<Vec<u8>> {
        self.disk.read_log()
    }

    fn replace_log(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.before_change();
        self.disk.replace_log(bytes)
    }

    fn append_log(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.before_change();
        // A record can be cut anywhere.
        let (start, rest) = bytes.split_at(bytes.len() / 2);
        self.disk.append_log(start)?;
        self.before_change();
        self.disk.append_log(rest)
    }

    fn sync_log(&mut self) -> io::Result<()> {
        self.before_change();
        self.disk.sync_log()
    }

    fn write_file(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.before_change();
        self.disk.write_file(name, bytes)
    }

    fn read_file(&mut self, name: &str) -> io::Result<Vec<u8>> {
        self.disk.read_file(name)
    }

    fn remove_file(&mut self, name: &str) -> io::Result<()> {
        self.before_change();
        self.disk.remove_file(name)
    }

    fn sync_names(&mut self) -> io::Result<()> {
        self.before_change();
        self.disk.sync_names()
    }

    fn file_names(&mut self) -> io::Result<Vec<String>> {
        self.disk.file_names()
    }
}

fn report(line: &str) {
    // Past the test harness, which would keep what is printed until the end.
    writeln!(io::stderr(), "child: {line}").unwrap();
}

/// Not a test: the process that the next one kills.
#[test]
#[ignore = "runs as a child of the test below"]
fn child_that_is_killed() {
    let Ok(arguments) = std::env::var(CHILD) else { return };
    let (left, path) = arguments.split_once(' ').unwrap();
    let state = StateDirectory::open(path).unwrap();
    let directory = state.subdirectory("material").unwrap();
    let disk = Stopping { disk: Directory::open(directory.path()).unwrap(), left: left.parse().unwrap() };
    let store = FileStore::on(Box::new(disk), Capacity::default()).unwrap();
    for id in store.available() {
        store.take(id).unwrap();
        report(&format!("served {id}"));
    }
    let first = u8::try_from(store.names_given()).unwrap() + 1;
    script(&store, first, |id| report(&format!("served {id}"))).unwrap();
    report("finished");
}

/// Runs the child until it stops or finishes, kills it, and returns what it served and whether it finished.
fn run_child(left: usize, path: &str) -> (Vec<String>, bool) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "store::tests::child_that_is_killed", "--ignored", "--nocapture"])
        .env(CHILD, format!("{left} {path}"))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut served = Vec::new();
    let mut finished = None;
    for line in BufReader::new(child.stderr.take().unwrap()).lines() {
        let line = line.unwrap();
        match line.strip_prefix("child: ") {
            Some("stopped") => finished = Some(false),
            Some("finished") => finished = Some(true),
            Some(other) => served.extend(other.strip_prefix("served ").map(str::to_owned)),
            None => {}
        }
        if finished.is_some() {
            break;
        }
    }
    // SIGKILL.
    child.kill().unwrap();
    child.wait().unwrap();
    (served, finished.expect("the child stops or finishes"))
}

#[test]
fn a_process_killed_at_any_point_of_the_log_serves_nothing_twice() {
    let root = tempfile::tempdir().unwrap();
    let mut boundaries = 0;
    for left in 0.. {
        let path = root.path().join(format!("state-{left}"));
        let path = path.to_str().unwrap();
        let (mut served, finished) = run_child(left, path);
        let (again, finished_again) = run_child(usize::MAX, path);
        assert!(finished_again);
        served.extend(again);
        let distinct: HashSet<_> = served.iter().collect();
        assert_eq!(distinct.len(), served.len(), "killed before change {left}: {served:?}");
        boundaries = left;
        if finished {
            break;
        }
    }
    assert!(boundaries > 30, "{boundaries}");
}

const CHILD: &str = "LANNER_STORE_CHILD";
