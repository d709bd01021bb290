//! A child that `fork` made uses its parent's stock neither knowingly nor by its locks.

use lanner_testkit::in_a_fork;

use super::*;
use crate::exclusive::Exclusive;

fn is_others<T>(result: &Result<T, StoreError>) -> bool {
    matches!(result, Err(StoreError::OtherProcess(_)))
}

#[test]
fn a_child_takes_nothing_from_a_stock_that_it_inherited() {
    let root = tempfile::tempdir().unwrap();
    let stock = paired(&root, Limits::default());
    stock.put(PAIRING, id(1), material(b"once")).unwrap();
    let mut inherited = Some(stock);
    assert!(in_a_fork(|| {
        let stock = inherited.take().unwrap();
        let refused = is_others(&stock.take(PAIRING, id(1)))
            && is_others(&stock.put(PAIRING, id(2), material(b"more")))
            && is_others(&stock.discard(id(1)))
            && is_others(&stock.available(PAIRING))
            && is_others(&stock.keys(PAIRING, &MODEL))
            && is_others(&stock.revoke(PAIRING));
        drop(stock);
        refused
    }));
    let stock = inherited.unwrap();
    assert_eq!(stock.available(PAIRING).unwrap(), [id(1)]);
    assert_eq!(stock.take(PAIRING, id(1)).unwrap().as_bytes(), b"once");
    stock.put(PAIRING, id(2), material(b"more")).unwrap();
}

#[test]
fn no_index_is_opened_where_the_parent_was_at_work_in_one() {
    let [root, other] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    drop(paired(&other, Limits::default()));
    let stock = paired(&root, Limits::default());
    let opened = stock.open_for(1).unwrap();
    let forked = opened.index(|_| {
        Ok(in_a_fork(|| {
            let other = super::stock(&other, Limits::default());
            matches!(other.available(PAIRING), Err(StoreError::Inherited { .. }))
        }))
    });
    assert!(forked.unwrap());
}

#[test]
fn a_lock_is_given_back_by_its_owner_alone_and_though_a_child_has_the_file() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("lock");
    let open = || fs::File::options().create(true).append(true).open(&path).unwrap();
    let is_free = || Exclusive::try_now(open()).is_ok();
    let mut held = Some(Exclusive::wait(open()).unwrap());
    assert!(in_a_fork(|| {
        drop(held.take());
        !is_free()
    }));
    assert!(!is_free());
    thread::scope(|scope| {
        let child = scope.spawn(|| {
            in_a_fork(|| {
                thread::sleep(std::time::Duration::from_millis(500));
                true
            })
        });
        thread::sleep(std::time::Duration::from_millis(100));
        drop(held.take());
        assert!(is_free(), "the child still has the file open");
        assert!(child.join().unwrap());
    });
}
