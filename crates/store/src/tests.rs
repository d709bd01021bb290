//! Material serves once, whatever happens to processes, files and the disk.
#![allow(clippy::unwrap_used, clippy::panic)]

mod crashes;
mod forked;
mod inherited;
mod uploads;
mod weights;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use lanner_step::Party;
use tempfile::TempDir;

pub(crate) use crashes::reached;

use super::*;

const MODEL: [u8; 32] = [9; 32];
const PAIRING: PairingId = PairingId::from_bytes([7; 16]);

fn id(number: u64) -> MaterialId {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    MaterialId::from_bytes(bytes)
}

fn pairing(byte: u8) -> Pairing {
    Pairing {
        id: PairingId::from_bytes([byte; 16]),
        secret: Secret([byte; 32]),
        model: MODEL,
        model_name: "digits".into(),
        peer: "sha256:ab".into(),
        certificate: None,
    }
}

fn material(bytes: &[u8]) -> Material {
    Material::new(bytes.to_vec())
}

fn state(root: &TempDir) -> PathBuf {
    root.path().join("state")
}

fn stock(root: &TempDir, limits: Limits) -> Stock {
    Stock::new(state(root), Party::Server, limits)
}

/// A stock with one pairing.
fn paired(root: &TempDir, limits: Limits) -> Stock {
    let stock = stock(root, limits);
    stock.pair(&pairing(7), None).unwrap();
    stock
}

fn files(root: &TempDir) -> BTreeSet<String> {
    let listed = fs::read_dir(state(root).join("material")).unwrap();
    listed.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn file_of(root: &TempDir, id: MaterialId) -> PathBuf {
    state(root).join(format!("material/server-material-{id}"))
}

fn is_absent<T>(result: &Result<T, StoreError>) -> bool {
    matches!(result, Err(StoreError::Absent { .. }))
}

#[test]
fn nothing_is_made_before_there_is_something_to_keep() {
    let root = tempfile::tempdir().unwrap();
    let stock = stock(&root, Limits::default());
    assert!(stock.pairing(PAIRING, &MODEL).unwrap().is_none());
    assert!(is_absent(&stock.take(PAIRING, id(1))));
    assert_eq!(stock.held().unwrap(), Held::default());
    assert!(!stock.revoke(PAIRING).unwrap());
    assert!(stock.entries().unwrap().is_empty());
    assert!(!state(&root).exists());
}

#[test]
fn what_is_put_is_taken_once_in_any_order() {
    let root = tempfile::tempdir().unwrap();
    let stock = paired(&root, Limits::default());
    for (number, bytes) in [(1, &b"one"[..]), (2, b""), (3, b"three")] {
        stock.put(PAIRING, id(number), material(bytes)).unwrap();
    }
    assert_eq!(stock.available(PAIRING).unwrap(), [id(1), id(2), id(3)]);
    assert_eq!(stock.held().unwrap(), Held { pairings: 1, predictions: 3, bytes: 8 + 4 * 4096 });
    assert_eq!(stock.take(PAIRING, id(3)).unwrap().as_bytes(), b"three");
    assert!(is_absent(&stock.take(PAIRING, id(3))));
    assert_eq!(stock.take(PAIRING, id(2)).unwrap().as_bytes(), b"");
    assert_eq!(stock.available(PAIRING).unwrap(), [id(1)]);
}

#[test]
fn a_name_never_returns() {
    let root = tempfile::tempdir().unwrap();
    let stock = paired(&root, Limits::default());
    let duplicate = |result| matches!(result, Err(StoreError::Duplicate { .. }));
    stock.put(PAIRING, id(1), material(b"a")).unwrap();
    assert!(duplicate(stock.put(PAIRING, id(1), material(b"b"))));
    assert_eq!(stock.take(PAIRING, id(1)).unwrap().as_bytes(), b"a");
    assert!(duplicate(stock.put(PAIRING, id(1), material(b"b"))));
    stock.put(PAIRING, id(2), material(b"a")).unwrap();
    stock.discard(id(2)).unwrap();
    assert!(is_absent(&stock.take(PAIRING, id(2))));
    assert!(duplicate(stock.put(PAIRING, id(2), material(b"b"))));
    // Neither after a restart.
    drop(stock);
    let stock = self::stock(&root, Limits::default());
    assert!(duplicate(stock.put(PAIRING, id(1), material(b"b"))));
    assert!(is_absent(&stock.take(PAIRING, id(1))));
}

#[test]
fn material_belongs_to_its_pairing_party_and_model() {
    let root = tempfile::tempdir().unwrap();
    let stock = paired(&root, Limits::default());
    stock.pair(&pairing(8), None).unwrap();
    stock.put(PAIRING, id(1), material(b"a")).unwrap();
    assert!(is_absent(&stock.take(pairing(8).id, id(1))));
    let client = Stock::new(state(&root), Party::Client, Limits::default());
    assert!(is_absent(&client.take(PAIRING, id(1))));
    assert!(matches!(client.put(PAIRING, id(1), material(b"b")), Err(StoreError::Unpaired)));
    client.pair(&pairing(7), None).unwrap();
    client.put(PAIRING, id(1), material(b"the client's")).unwrap();
    assert_eq!(stock.take(PAIRING, id(1)).unwrap().as_bytes(), b"a");
    assert_eq!(client.take(PAIRING, id(1)).unwrap().as_bytes(), b"the client's");
    assert!(stock.pairing(PAIRING, &[1; 32]).unwrap().is_none(), "another model");
    assert_eq!(stock.pairings_with("sha256:ab", &MODEL).unwrap(), [pairing(8).id, PAIRING]);
    assert!(stock.pairings_with("sha256:cd", &MODEL).unwrap().is_empty());
}

#[test]
fn a_revoked_pairing_is_gone_with_all_that_was_made() {
    let root = tempfile::tempdir().unwrap();
    let stock = stock(&root, Limits::default());
    stock.pair(&pairing(7), Some(material(b"keys"))).unwrap();
    stock.put(PAIRING, id(1), material(b"a")).unwrap();
    assert_eq!(stock.pairing(PAIRING, &MODEL).unwrap().unwrap().secret.0, [7; 32]);
    assert_eq!(stock.keys(PAIRING, &MODEL).unwrap().unwrap().as_bytes(), b"keys");
    let [entry] = &stock.entries().unwrap()[..] else { panic!("one pairing") };
    assert_eq!((entry.party, entry.predictions, entry.bytes), ("server", 1, 5 + 2 * 4096));
    assert_eq!(entry.id.parse::<PairingId>().unwrap(), PAIRING);
    assert!(stock.revoke(PAIRING).unwrap());
    assert!(!stock.revoke(PAIRING).unwrap());
    assert!(stock.pairing(PAIRING, &MODEL).unwrap().is_none());
    assert!(is_absent(&stock.take(PAIRING, id(1))));
    assert!(matches!(stock.put(PAIRING, id(2), material(b"b")), Err(StoreError::Unpaired)));
    assert!(files(&root).iter().all(|name| name.starts_with("index")));
}

#[test]
fn a_full_store_takes_no_more_until_something_is_used() {
    let root = tempfile::tempdir().unwrap();
    let of = |pieces: u64, bytes: u64| pieces * 4096 + bytes;
    let stock = paired(&root, Limits { bytes: of(4, 10), pairing_bytes: of(2, 8), ..Limits::default() });
    let full = |result| matches!(result, Err(StoreError::Full { .. }));
    assert!(full(stock.put(PAIRING, id(1), material(&[0; 9]))), "more than a pairing may have");
    stock.put(PAIRING, id(1), material(&[0; 6])).unwrap();
    assert!(full(stock.put(PAIRING, id(2), material(&[]))));
    stock.pair(&pairing(8), Some(material(&[0; 4]))).unwrap();
    assert!(full(stock.pair(&pairing(9), Some(material(&[0; 1])))), "keys count");
    stock.pair(&pairing(9), None).unwrap();
    assert!(full(stock.put(pairing(8).id, id(2), material(&[]))), "names count");
    stock.take(PAIRING, id(1)).unwrap();
    stock.put(PAIRING, id(2), material(&[0; 6])).unwrap();
}

#[test]
fn who_may_keep_nothing_makes_nothing() {
    let root = tempfile::tempdir().unwrap();
    let stock = stock(&root, Limits { bytes: 0, ..Limits::default() });
    assert!(matches!(stock.pair(&pairing(7), None), Err(StoreError::Full { .. })));
    assert!(!state(&root).exists());
}

#[test]
fn files_that_the_index_does_not_name_are_swept() {
    let root = tempfile::tempdir().unwrap();
    let stock = paired(&root, Limits::default());
    stock.put(PAIRING, id(1), material(b"a")).unwrap();
    drop(stock);
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(7200);
    for (number, age) in [(1, Some(old)), (2, Some(old)), (3, None)] {
        let path = file_of(&root, id(number));
        let file = fs::OpenOptions::new().create(true).append(true).open(&path).unwrap();
        if let Some(age) = age {
            file.set_modified(age).unwrap();
        }
    }
    let stock = self::stock(&root, Limits::default());
    stock.held().unwrap();
    assert!(!file_of(&root, id(2)).exists(), "old and not named");
    assert!(file_of(&root, id(3)).exists(), "perhaps just being written");
    assert_eq!(stock.take(PAIRING, id(1)).unwrap().as_bytes(), b"a");
}

#[test]
fn what_expires_is_discarded() {
    let root = tempfile::tempdir().unwrap();
    let stock = paired(&root, Limits { seconds: 0, ..Limits::default() });
    stock.put(PAIRING, id(1), material(b"a")).unwrap();
    assert!(stock.available(PAIRING).unwrap().is_empty());
    assert_eq!(stock.held().unwrap().predictions, 0);
    assert!(is_absent(&stock.take(PAIRING, id(1))));
    stock.put(PAIRING, id(2), material(b"b")).unwrap();
    assert!(!file_of(&root, id(1)).exists(), "whoever puts tidies");
    drop(stock);
    self::stock(&root, Limits::default()).held().unwrap();
    assert!(!file_of(&root, id(2)).exists(), "so does whoever opens");
}

#[test]
fn a_damaged_file_costs_its_own_material_only() {
    let root = tempfile::tempdir().unwrap();
    let stock = paired(&root, Limits::default());
    for number in 0..5 {
        stock.put(PAIRING, id(number), material(&[number as u8; 1000])).unwrap();
    }
    let change = |number, change: &dyn Fn(&mut Vec<u8>)| {
        let path = file_of(&root, id(number));
        let mut bytes = fs::read(&path).unwrap();
        change(&mut bytes);
        fs::write(&path, bytes).unwrap();
    };
    change(0, &|bytes| bytes[500] ^= 1);
    change(1, &|bytes| bytes.truncate(20));
    fs::copy(file_of(&root, id(4)), file_of(&root, id(2))).unwrap();
    fs::remove_file(file_of(&root, id(3))).unwrap();
    for number in 0..4 {
        let taken = stock.take(PAIRING, id(number));
        assert!(matches!(taken, Err(StoreError::Damaged { .. })), "{number}");
        assert!(is_absent(&stock.take(PAIRING, id(number))));
    }
    assert_eq!(stock.take(PAIRING, id(4)).unwrap().as_bytes(), [4; 1000]);
}

#[test]
fn damaged_keys_of_a_pairing_are_forgotten_and_nothing_else() {
    let root = tempfile::tempdir().unwrap();
    let stock = stock(&root, Limits::default());
    stock.pair(&pairing(7), Some(material(b"keys"))).unwrap();
    stock.put(PAIRING, id(1), material(b"a")).unwrap();
    fs::write(state(&root).join(format!("material/server-keys-{PAIRING}")), b"else").unwrap();
    assert!(matches!(stock.keys(PAIRING, &MODEL), Err(StoreError::DamagedPairing)));
    assert!(stock.keys(PAIRING, &MODEL).unwrap().is_none());
    assert_eq!(stock.take(PAIRING, id(1)).unwrap().as_bytes(), b"a");
}

#[test]
fn a_damaged_index_is_an_error_that_names_it() {
    let root = tempfile::tempdir().unwrap();
    drop(paired(&root, Limits::default()));
    let index = state(&root).join("material/index");
    fs::write(&index, vec![1; 4096]).unwrap();
    let error = stock(&root, Limits::default()).held().unwrap_err();
    assert!(error.to_string().contains(index.to_str().unwrap()), "{error}");
}

#[test]
fn a_store_of_another_version_is_left_alone() {
    let root = tempfile::tempdir().unwrap();
    let stock = paired(&root, Limits::default());
    stock.put(PAIRING, id(1), material(b"a")).unwrap();
    drop(stock);
    let connection = rusqlite::Connection::open(state(&root).join("material/index")).unwrap();
    connection.pragma_update(None, "user_version", 2).unwrap();
    drop(connection);
    let error = self::stock(&root, Limits::default()).held().unwrap_err();
    assert!(matches!(error, StoreError::Version { ours: 1, theirs: 2 }), "{error}");
    assert!(file_of(&root, id(1)).exists());
}

#[test]
fn what_lies_on_the_disk_is_private_and_sealed() {
    let root = tempfile::tempdir().unwrap();
    let stock = stock(&root, Limits::default());
    let secret = b"material that nobody may read";
    stock
        .pair(
            &Pairing { secret: Secret(*b"a secret of thirty-two bytes ..."), ..pairing(7) },
            Some(material(secret)),
        )
        .unwrap();
    stock.put(PAIRING, id(1), material(secret)).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let directory = state(&root).join("material");
    assert_eq!(mode(&directory), 0o700);
    for name in files(&root) {
        let path = directory.join(&name);
        assert_eq!(mode(&path), 0o600, "{name}");
        let bytes = fs::read(&path).unwrap();
        for plain in [&secret[..], b"a secret of thirty-two"] {
            assert!(!bytes.windows(plain.len()).any(|window| window == plain), "{name}");
        }
    }
}

#[test]
fn of_concurrent_takers_one_gets_the_material() {
    let root = tempfile::tempdir().unwrap();
    let first = Arc::new(paired(&root, Limits::default()));
    // As another process would see it.
    let second = Arc::new(stock(&root, Limits::default()));
    for number in 0..20 {
        first.put(PAIRING, id(number), material(b"a")).unwrap();
    }
    let takers: Vec<_> = [&first, &first, &second, &second]
        .map(|stock| {
            let stock = Arc::clone(stock);
            thread::spawn(move || (0..20).filter(|number| stock.take(PAIRING, id(*number)).is_ok()).count())
        })
        .into();
    let taken: usize = takers.into_iter().map(|taker| taker.join().unwrap()).sum();
    assert_eq!(taken, 20);
}
