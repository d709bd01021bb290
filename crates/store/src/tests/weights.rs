//! Encoded weights: made once, the same for all, and never used damaged.

use std::os::unix::fs::PermissionsExt;
use std::rc::Rc;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};

use lanner_step::EncodedWeights;

use super::*;

const MODEL: [u8; 32] = [7; 32];

fn shared(root: &TempDir) -> SharedWeights {
    SharedWeights::open(root.path().join("weights")).unwrap()
}

/// The file whose name ends so; none if there is none.
fn file(root: &TempDir, ending: &str) -> Option<PathBuf> {
    let listed = fs::read_dir(root.path().join("weights")).unwrap();
    listed.map(|entry| entry.unwrap().path()).find(|path| path.to_str().unwrap().ends_with(ending))
}

/// Parts of so many words, as a model's steps would ask for them; counts those that are made.
fn parts(encoded: &Rc<dyn EncodedWeights>, lengths: &[usize], made: &AtomicUsize) -> Vec<Vec<u64>> {
    let part = |(number, length): (usize, &usize)| {
        let name = [number as u8; 32];
        if let Some(words) = encoded.get(&name) {
            return words.to_vec();
        }
        made.fetch_add(1, Ordering::Relaxed);
        let words: Vec<u64> = (0..*length as u64).map(|i| i << 32 | number as u64).collect();
        encoded.put(&name, &mut words.chunks(3));
        words
    };
    lengths.iter().enumerate().map(part).collect()
}

fn take(root: &TempDir, model: &[u8; 32], lengths: &[usize]) -> (Result<Vec<Vec<u64>>, StoreError>, usize) {
    let made = AtomicUsize::new(0);
    let taken = shared(root).of(model, |encoded| Ok(parts(&encoded, lengths, &made)));
    (taken, made.into_inner())
}

#[test]
fn weights_are_made_once_and_lie_where_their_owner_alone_reads_them() {
    let root = tempfile::tempdir().unwrap();
    let lengths = [8, 5, 1, 64, 0];
    let (first, made) = take(&root, &MODEL, &lengths);
    assert_eq!(made, lengths.len());
    let (second, made) = take(&root, &MODEL, &lengths);
    assert_eq!((first.unwrap(), made), (second.unwrap(), 0));
    let mode = fs::metadata(file(&root, ".weights").unwrap()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(file(&root, ".draft").is_none());
}

#[test]
fn who_makes_them_has_them_from_the_file_too() {
    let root = tempfile::tempdir().unwrap();
    let made = shared(&root).of(&MODEL, |encoded| {
        let words: Vec<u64> = (0..700).collect();
        let parts = [("conv", &words[..]), ("dense", &words[..13]), ("output", &words[1..])];
        let name = |text: &str| [text.len() as u8; 32];
        let put = parts.map(|(text, words)| {
            encoded.put(&name(text), &mut words.chunks(99));
            encoded.get(&name(text)).unwrap()
        });
        assert!(put.iter().zip(parts).all(|(extent, (_, words))| extent[..] == *words));
        Ok::<_, StoreError>(put)
    });
    // The draft has another name by now, and the pages are the same.
    assert!(file(&root, ".draft").is_none());
    assert!(made.unwrap()[2].iter().copied().eq(1..700));
}

#[test]
fn processes_that_come_at_once_make_them_once() {
    let root = tempfile::tempdir().unwrap();
    let (made, together) = (AtomicUsize::new(0), Barrier::new(4));
    std::thread::scope(|scope| {
        let come = || {
            together.wait();
            shared(&root)
                .of(&MODEL, |encoded| Ok::<_, StoreError>(parts(&encoded, &[100, 200], &made)))
                .unwrap()
        };
        let all: Vec<_> = (0..4).map(|_| scope.spawn(come)).collect();
        let all: Vec<_> = all.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert!(all.windows(2).all(|pair| pair[0] == pair[1]));
    });
    assert_eq!(made.into_inner(), 2);
}

#[test]
fn whatever_byte_changes_is_noticed() {
    let root = tempfile::tempdir().unwrap();
    take(&root, &MODEL, &[16, 8]).0.unwrap();
    let path = file(&root, ".weights").unwrap();
    let whole = fs::read(&path).unwrap();
    let refused = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        let (taken, made) = take(&root, &MODEL, &[16, 8]);
        assert!(matches!(taken, Err(StoreError::DamagedWeights { .. })) && made == 0);
    };
    for place in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[place] ^= 1 << (place % 8);
        refused(&bytes);
        refused(&whole[..place]);
    }
    for more in [1, 7, 8, 64, 80, 4096] {
        refused(&[&whole[..], &vec![0; more]].concat());
    }
    fs::write(&path, &whole).unwrap();
    assert_eq!(take(&root, &MODEL, &[16, 8]).1, 0);
}

#[test]
fn another_models_file_is_refused_and_one_that_lacks_something_is_made_anew() {
    let root = tempfile::tempdir().unwrap();
    take(&root, &MODEL, &[16]).0.unwrap();
    let own = file(&root, ".weights").unwrap();
    let (both, made) = take(&root, &MODEL, &[16, 8]);
    // The second is missed before others are kept out and then once more, and both are made for the file.
    assert_eq!((both.unwrap().len(), made), (2, 4));
    assert_eq!(take(&root, &MODEL, &[16, 8]).1, 0);
    let kept = fs::read(&own).unwrap();
    fs::remove_file(&own).unwrap();
    take(&root, &[8; 32], &[16, 8]).0.unwrap();
    fs::rename(file(&root, ".weights").unwrap(), &own).unwrap();
    assert!(
        matches!(take(&root, &MODEL, &[16, 8]).0, Err(StoreError::DamagedWeights { path }) if path == own)
    );
    fs::write(&own, kept).unwrap();
    take(&root, &MODEL, &[16, 8]).0.unwrap();
}

#[test]
fn what_a_death_or_a_failure_leaves_harms_nobody() {
    let root = tempfile::tempdir().unwrap();
    let failing = shared(&root).of(&MODEL, |encoded| {
        parts(&encoded, &[16], &AtomicUsize::new(0));
        Err::<(), _>(StoreError::Unpaired)
    });
    assert!(matches!(failing, Err(StoreError::Unpaired)));
    assert!(file(&root, ".draft").is_none() && file(&root, ".weights").is_none());
    // The lock has the name of the file that a dead process did not complete.
    let draft = file(&root, ".lock").unwrap().with_extension("draft");
    fs::write(&draft, b"half").unwrap();
    take(&root, &MODEL, &[16]).0.unwrap();
    assert!(!draft.exists());
}

#[test]
fn a_file_or_directory_that_others_may_read_is_refused() {
    let root = tempfile::tempdir().unwrap();
    take(&root, &MODEL, &[16]).0.unwrap();
    let open_to_others =
        |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    open_to_others(&file(&root, ".weights").unwrap(), 0o644);
    assert!(matches!(take(&root, &MODEL, &[16]).0, Err(StoreError::State(_))));
    open_to_others(&root.path().join("weights"), 0o755);
    assert!(matches!(SharedWeights::open(root.path().join("weights")), Err(StoreError::State(_))));
}
