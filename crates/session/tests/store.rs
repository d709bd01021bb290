//! Stores as their users see them.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::thread;

use lanner_net::StateDirectory;
use lanner_primitives::{Direction, Label};
use lanner_session::store::{Capacity, FileStore, Material, MaterialId, MemoryStore, Store, StoreError};
use tempfile::TempDir;

fn id(byte: u8) -> MaterialId {
    MaterialId::from_bytes([byte; 16])
}

fn state(root: &TempDir) -> StateDirectory {
    StateDirectory::open(root.path().join("state")).unwrap()
}

/// The same laws for every store.
fn each_store(capacity: Capacity, law: impl Fn(&dyn Store)) {
    law(&MemoryStore::new(capacity));
    let root = tempfile::tempdir().unwrap();
    law(&FileStore::open(&state(&root), capacity).unwrap());
}

#[test]
fn what_is_put_is_taken_once() {
    each_store(Capacity::default(), |store| {
        store.put(id(1), Material::new(vec![1, 2, 3])).unwrap();
        store.put(id(2), Material::new(vec![])).unwrap();
        assert_eq!(store.available(), [id(1), id(2)]);
        assert_eq!(store.held(), Capacity { pieces: 2, bytes: 3 });
        assert_eq!(store.take(id(1)).unwrap().as_bytes(), [1, 2, 3]);
        assert!(matches!(store.take(id(1)), Err(StoreError::Absent { .. })));
        assert_eq!(store.take(id(2)).unwrap().as_bytes(), b"");
        assert_eq!(store.held(), Capacity { pieces: 0, bytes: 0 });
    });
}

#[test]
fn a_name_never_returns() {
    each_store(Capacity::default(), |store| {
        store.put(id(1), Material::new(vec![1])).unwrap();
        assert!(matches!(store.put(id(1), Material::new(vec![2])), Err(StoreError::Duplicate { .. })));
        store.take(id(1)).unwrap();
        assert!(matches!(store.put(id(1), Material::new(vec![2])), Err(StoreError::Duplicate { .. })));
        store.put(id(2), Material::new(vec![1])).unwrap();
        store.discard(id(2)).unwrap();
        store.discard(id(2)).unwrap();
        assert!(matches!(store.take(id(2)), Err(StoreError::Absent { .. })));
        assert!(matches!(store.put(id(2), Material::new(vec![2])), Err(StoreError::Duplicate { .. })));
    });
}

#[test]
fn a_full_store_takes_no_more_until_something_is_used() {
    let full = |result| matches!(result, Err(StoreError::Full { .. }));
    each_store(Capacity { pieces: 2, bytes: 10 }, |store| {
        assert!(full(store.put(id(1), Material::new(vec![0; 11]))));
        store.put(id(1), Material::new(vec![0; 6])).unwrap();
        assert!(full(store.put(id(2), Material::new(vec![0; 5]))));
        store.put(id(2), Material::new(vec![0; 4])).unwrap();
        assert!(full(store.put(id(3), Material::new(vec![]))));
        store.take(id(1)).unwrap();
        store.put(id(3), Material::new(vec![0; 6])).unwrap();
    });
}

#[test]
fn of_concurrent_takers_one_gets_the_material() {
    let root = tempfile::tempdir().unwrap();
    let file: Arc<dyn Store> = Arc::new(FileStore::open(&state(&root), Capacity::default()).unwrap());
    let memory: Arc<dyn Store> = Arc::new(MemoryStore::new(Capacity::default()));
    for store in [file, memory] {
        for byte in 0..20 {
            store.put(id(byte), Material::new(vec![byte])).unwrap();
        }
        let takers: Vec<_> = (0..4)
            .map(|_| {
                let store = Arc::clone(&store);
                thread::spawn(move || (0..20).filter(|byte| store.take(id(*byte)).is_ok()).count())
            })
            .collect();
        let taken: usize = takers.into_iter().map(|taker| taker.join().unwrap()).sum();
        assert_eq!(taken, 20);
    }
}

#[test]
fn a_reopened_store_offers_what_was_not_used() {
    let root = tempfile::tempdir().unwrap();
    let store = FileStore::open(&state(&root), Capacity::default()).unwrap();
    for byte in 1..=3 {
        store.put(id(byte), Material::new(vec![byte; 1000])).unwrap();
    }
    store.take(id(2)).unwrap();
    drop(store);
    let store = FileStore::open(&state(&root), Capacity::default()).unwrap();
    assert_eq!(store.available(), [id(1), id(3)]);
    assert_eq!(store.take(id(3)).unwrap().as_bytes(), [3; 1000]);
}

#[test]
fn a_store_serves_one_process_and_is_private() {
    let root = tempfile::tempdir().unwrap();
    let state = state(&root);
    let store = FileStore::open(&state, Capacity::default()).unwrap();
    let second = FileStore::open(&state, Capacity::default()).err().unwrap();
    assert!(matches!(second, StoreError::Locked { .. }), "{second}");
    store.put(id(1), Material::new(vec![1])).unwrap();
    let directory = state.path().join("material");
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&directory), 0o700);
    for entry in fs::read_dir(&directory).unwrap() {
        assert_eq!(mode(&entry.unwrap().path()), 0o600);
    }
    drop(store);
    FileStore::open(&state, Capacity::default()).unwrap();
}

#[test]
fn a_store_of_another_version_is_left_alone() {
    let root = tempfile::tempdir().unwrap();
    let state = state(&root);
    let store = FileStore::open(&state, Capacity::default()).unwrap();
    store.put(id(1), Material::new(vec![1])).unwrap();
    drop(store);
    let log = state.path().join("material/log");
    let mut bytes = fs::read(&log).unwrap();
    bytes[8] = 2;
    fs::write(&log, &bytes).unwrap();
    let error = FileStore::open(&state, Capacity::default()).err().unwrap();
    assert!(matches!(error, StoreError::Version { ours: 1, theirs: 2 }), "{error}");
    assert_eq!(fs::read(&log).unwrap(), bytes);
    assert!(state.path().join("material").join(id(1).to_string()).exists());
}

#[test]
fn labels_name_material() {
    let label =
        Label { session: [1; 32], layer: 2, op: "tables", index: 3, direction: Direction::ServerToClient };
    assert_eq!(MaterialId::of(&label), MaterialId::of(&label));
    assert_ne!(MaterialId::of(&label), MaterialId::of(&Label { index: 4, ..label }));
}
