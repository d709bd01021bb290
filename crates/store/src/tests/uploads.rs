//! Uploads: kept within bounds, gone on with after any cut, never other bytes than those of their hash.

use std::env;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::time::{Duration, SystemTime};

use sha2::{Digest, Sha256};

use super::*;
use crate::uploads::name_of;

/// Bytes of their own, and their hash.
fn content(seed: u8, length: usize) -> (Vec<u8>, [u8; 32]) {
    let bytes: Vec<u8> = (0..length)
        .map(|index| (index as u8).wrapping_mul(31).wrapping_add(seed) ^ (index >> 8) as u8)
        .collect();
    let hash = Sha256::digest(&bytes).into();
    (bytes, hash)
}

fn uploads(root: &TempDir, limit: u64) -> Uploads {
    Uploads::new(state(root), limit)
}

fn names(root: &TempDir) -> Vec<String> {
    let listed = fs::read_dir(state(root).join("keys")).unwrap();
    let names = listed.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter(|name| name != "lock").collect();
    names.sort();
    names
}

fn path(root: &TempDir, hash: &[u8; 32], ending: &str) -> PathBuf {
    state(root).join("keys").join(name_of(hash) + ending)
}

fn age(path: &Path, seconds: u64) {
    let time = SystemTime::now() - Duration::from_secs(seconds);
    File::open(path).unwrap().set_modified(time).unwrap();
}

/// Uploads what is missing, in chunks; how much that was.
fn upload(uploads: &Uploads, bytes: &[u8], hash: [u8; 32], chunk: usize) -> usize {
    let mut upload = uploads.open(hash, bytes.len()).unwrap();
    let held = upload.held();
    assert_eq!(upload.missing(), bytes.len() - held);
    for chunk in bytes[held..].chunks(chunk) {
        upload.append(chunk).unwrap();
    }
    assert_eq!(upload.content(), Some(bytes));
    upload.keep().unwrap();
    bytes.len() - held
}

#[test]
fn what_is_uploaded_once_is_there() {
    let root = tempfile::tempdir().unwrap();
    let (bytes, hash) = content(1, 1000);
    assert_eq!(uploads(&root, 1000).held(), 0);
    assert!(!state(&root).exists());
    assert_eq!(upload(&uploads(&root, 1000), &bytes, hash, 300), 1000);
    assert_eq!(upload(&uploads(&root, 1000), &bytes, hash, 300), 0);
    assert_eq!(uploads(&root, 0).held(), 1000);
    let path = path(&root, &hash, "");
    assert_eq!(fs::read(&path).unwrap(), bytes);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    // Of another length it is another thing.
    assert_eq!(uploads(&root, 1000).open(hash, 999).unwrap().held(), 0);
}

#[test]
fn an_upload_goes_on_after_a_cut_anywhere() {
    let (bytes, hash) = content(2, 50);
    for cut in 0..=50 {
        let root = tempfile::tempdir().unwrap();
        let uploads = uploads(&root, 1000);
        let mut first = uploads.open(hash, 50).unwrap();
        first.append(&bytes[..cut]).unwrap();
        drop(first);
        assert_eq!(names(&root).len(), 1);
        assert_eq!(upload(&uploads, &bytes, hash, 7), 50 - cut, "cut at {cut}");
        assert_eq!(names(&root), [path(&root, &hash, "").file_name().unwrap().to_str().unwrap()]);
    }
}

#[test]
fn wrong_bytes_are_never_content() {
    let root = tempfile::tempdir().unwrap();
    let (bytes, hash) = content(3, 100);
    let uploads = uploads(&root, 1000);
    let mut wrong = uploads.open(hash, 100).unwrap();
    wrong.append(&[0; 100]).unwrap();
    assert_eq!(wrong.content(), None);
    wrong.keep().unwrap();
    assert!(!path(&root, &hash, "").exists(), "wrong bytes get no name");
    // Whoever comes next begins anew, whether or not the first could say that they are wrong.
    let mut wrong = uploads.open(hash, 100).unwrap();
    assert_eq!(wrong.held(), 0);
    wrong.append(&[0; 100]).unwrap();
    wrong.discard();
    assert!(names(&root).is_empty());
    assert_eq!(upload(&uploads, &bytes, hash, 100), 100);
}

#[test]
fn damaged_files_are_asked_for_again() {
    let root = tempfile::tempdir().unwrap();
    let (bytes, hash) = content(4, 100);
    let uploads = uploads(&root, 1000);
    let damages: [&dyn Fn(&Path); 4] = [
        &|path| fs::write(path, [9; 100]).unwrap(),
        &|path| fs::write(path, &bytes[..99]).unwrap(),
        &|path| fs::write(path, [&bytes[..], &[0]].concat()).unwrap(),
        &|path| fs::write(path, []).unwrap(),
    ];
    for damage in damages {
        upload(&uploads, &bytes, hash, 100);
        damage(&path(&root, &hash, ""));
        assert_eq!(upload(&uploads, &bytes, hash, 100), 100);
    }
    // A part that is too long, and a complete one that lacks its name alone.
    fs::rename(path(&root, &hash, ""), path(&root, &hash, ".part")).unwrap();
    assert_eq!(upload(&uploads, &bytes, hash, 100), 0);
    fs::remove_file(path(&root, &hash, "")).unwrap();
    fs::write(path(&root, &hash, ".part"), [0; 101]).unwrap();
    assert_eq!(upload(&uploads, &bytes, hash, 100), 100);
}

#[test]
fn the_least_recently_used_goes_first() {
    let root = tempfile::tempdir().unwrap();
    let uploads = uploads(&root, 300);
    let contents = [10, 11, 12, 13].map(|seed| content(seed, 100));
    for ((bytes, hash), seconds) in contents[..3].iter().zip([30, 20, 10]) {
        upload(&uploads, bytes, *hash, 40);
        age(&path(&root, hash, ""), seconds);
    }
    // The first is used, so that the second goes.
    assert_eq!(upload(&uploads, &contents[0].0, contents[0].1, 40), 0);
    assert_eq!(upload(&uploads, &contents[3].0, contents[3].1, 40), 100);
    let there = contents.each_ref().map(|(_, hash)| path(&root, hash, "").exists());
    assert_eq!(there, [true, false, true, true]);
    assert_eq!(uploads.held(), 300);
}

#[test]
fn no_more_is_kept_than_may_be() {
    let root = tempfile::tempdir().unwrap();
    let uploads = uploads(&root, 250);
    let (large, large_hash) = content(20, 251);
    assert_eq!(upload(&uploads, &large, large_hash, 100), 251);
    assert_eq!(upload(&uploads, &large, large_hash, 100), 251, "what never fits is in memory alone");
    // Two at once that do not fit together: parts that grow are not removed, so one goes on in memory.
    let [(bytes, hash), (other, other_hash)] = [21, 22].map(|seed| content(seed, 150));
    let mut first = uploads.open(hash, 150).unwrap();
    let mut second = uploads.open(other_hash, 150).unwrap();
    first.append(&bytes[..100]).unwrap();
    second.append(&other[..100]).unwrap();
    assert!(uploads.held() <= 250);
    first.append(&bytes[100..]).unwrap();
    assert!(matches!(second.append(&other[100..]), Err(StoreError::Full { limit: 250, .. })));
    assert_eq!((first.content(), second.content()), (Some(&bytes[..]), Some(&other[..])));
    first.keep().unwrap();
    second.keep().unwrap();
    assert_eq!(uploads.held(), 150);
    // A part that nobody adds to goes as others do.
    drop({
        let mut part = uploads.open(other_hash, 150).unwrap();
        part.append(&other[..90]).unwrap();
        part
    });
    age(&path(&root, &other_hash, ".part"), 60);
    let (third, third_hash) = content(23, 60);
    assert_eq!(upload(&uploads, &third, third_hash, 60), 60);
    assert!(!path(&root, &other_hash, ".part").exists() && path(&root, &hash, "").exists());
}

/// What a child does that may write no file beyond some hundred bytes. It is no test of its own.
#[test]
fn limited_child() {
    let Ok(root) = env::var(LIMITED_ROOT) else { return };
    let (bytes, hash) = content(30, LENGTH);
    let mut upload = Uploads::new(root, 1 << 30).open(hash, LENGTH).unwrap();
    let failures = bytes.chunks(CHUNK).filter(|chunk| upload.append(chunk).is_err()).count();
    assert_eq!(failures, 1, "it is tried once");
    assert_eq!(upload.content(), Some(&bytes[..]));
    upload.keep().unwrap();
}

#[test]
fn a_disk_that_fails_costs_nothing_but_the_cache() {
    let root = tempfile::tempdir().unwrap();
    let limited = "trap '' XFSZ; ulimit -f 1; exec \"$0\" --exact tests::uploads::limited_child --nocapture";
    let mut command = Command::new("sh");
    command.args(["-c", limited]).arg(env::current_exe().unwrap()).env(LIMITED_ROOT, state(&root));
    assert!(command.stdout(Stdio::null()).status().unwrap().success());
    assert!(names(&root).is_empty(), "what was written is removed");
    // A directory that is none.
    let root = tempfile::tempdir().unwrap();
    fs::write(state(&root), b"").unwrap();
    assert!(uploads(&root, 1000).open([0; 32], 100).is_err());
}

#[test]
fn parts_that_nobody_goes_on_with_expire() {
    let root = tempfile::tempdir().unwrap();
    let uploads = uploads(&root, 1000);
    let [old, open, new] = [40, 41, 42].map(|seed| content(seed, 100));
    let part = |(bytes, hash): &(Vec<u8>, [u8; 32])| {
        let mut part = uploads.open(*hash, 100).unwrap();
        part.append(&bytes[..10]).unwrap();
        part
    };
    drop(part(&old));
    let mut still_open = part(&open);
    for (_, hash) in [&old, &open] {
        age(&path(&root, hash, ".part"), 25 * 3600);
    }
    upload(&uploads, &new.0, new.1, 100);
    let there = [&old, &open].map(|(_, hash)| path(&root, hash, ".part").exists());
    assert_eq!(there, [false, true]);
    still_open.append(&open.0[10..]).unwrap();
    still_open.keep().unwrap();
    assert!(path(&root, &open.1, "").exists());
}

#[test]
fn several_may_upload_the_same_at_once() {
    let root = tempfile::tempdir().unwrap();
    let (bytes, hash) = content(50, 100_000);
    for round in 0..20 {
        let start = Barrier::new(4);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    // As four processes have them.
                    let uploads = uploads(&root, 1 << 20);
                    start.wait();
                    upload(&uploads, &bytes, hash, 1000);
                });
            }
        });
        assert_eq!(names(&root).len(), 1, "round {round}");
        assert_eq!(upload(&uploads(&root, 1 << 20), &bytes, hash, 1000), 0);
        fs::remove_file(path(&root, &hash, "")).unwrap();
    }
}

#[test]
fn who_comes_while_another_uploads_begins_anew_and_leaves_nothing() {
    let root = tempfile::tempdir().unwrap();
    let (bytes, hash) = content(51, 100);
    let uploads = uploads(&root, 1000);
    let mut first = uploads.open(hash, 100).unwrap();
    first.append(&bytes[..60]).unwrap();
    assert_eq!(upload(&uploads, &bytes, hash, 50), 100);
    first.append(&bytes[60..]).unwrap();
    first.keep().unwrap();
    assert_eq!(upload(&uploads, &bytes, hash, 50), 0);
}

/// What a child does: uploads the same again and again, and says how far it is. It is no test of its own.
#[test]
fn child() {
    let Ok(root) = env::var(ROOT) else { return };
    let (bytes, hash) = content(60, LENGTH);
    let uploads = Uploads::new(&root, 1 << 30);
    let mut said = std::io::stderr();
    loop {
        let mut upload = uploads.open(hash, LENGTH).unwrap();
        assert_eq!(upload.held() % CHUNK, 0, "chunks are written whole unless the machine stops");
        while upload.missing() > 0 {
            let held = upload.held();
            upload.append(&bytes[held..held + CHUNK]).unwrap();
            said.write_all(format!("held {}\n", held + CHUNK).as_bytes()).unwrap();
        }
        upload.keep().unwrap();
        said.write_all(b"kept\n").unwrap();
        fs::remove_dir_all(Path::new(&root).join("keys")).unwrap();
        said.write_all(b"gone\n").unwrap();
    }
}

#[test]
fn what_a_killed_process_leaves_is_a_beginning() {
    let root = tempfile::tempdir().unwrap();
    let (bytes, hash) = content(60, LENGTH);
    for life in 0..40 {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", "tests::uploads::child", "--nocapture"]).env(ROOT, state(&root));
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        // After so many steps, wherever the next has got by then.
        let mut last = lines.by_ref().take(1 + life * 7 % 50).last().unwrap().unwrap();
        child.kill().unwrap();
        if let Some(later) = lines.map_while(Result::ok).last() {
            last = later;
        }
        child.wait().unwrap();
        let uploads = Uploads::new(state(&root), 1 << 30);
        let upload = uploads.open(hash, LENGTH).unwrap();
        match last.split_once(' ') {
            // The last may have gone before its word.
            Some(("held", said)) => {
                let said: usize = said.parse().unwrap();
                assert!(upload.held() >= said || said == LENGTH, "{} of {said}", upload.held());
            }
            _ => assert!(["kept", "gone"].contains(&&last[..]), "{last}"),
        }
        assert!(upload.held() <= LENGTH);
        drop(upload);
        let mut upload = uploads.open(hash, LENGTH).unwrap();
        let held = upload.held();
        upload.append(&bytes[held..]).unwrap();
        assert_eq!(upload.content(), Some(&bytes[..]));
        drop(upload);
        // Half of it for the next to go on with.
        let file = OpenOptions::new().write(true).open(path(&root, &hash, ".part"));
        match file {
            Ok(file) => file.set_len((LENGTH / 2) as u64).unwrap(),
            Err(_) => fs::remove_file(path(&root, &hash, "")).unwrap(),
        }
    }
}

const ROOT: &str = "LANNER_UPLOADS_ROOT";
const LIMITED_ROOT: &str = "LANNER_LIMITED_UPLOADS_ROOT";
const LENGTH: usize = 40 * CHUNK;
const CHUNK: usize = 4096;
