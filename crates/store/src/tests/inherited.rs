//! A child that `fork` made opens an index of its own. Alone in its process: no other thread is at work in an index at the fork.

use std::path::Path;

use lanner_step::Party;
use lanner_testkit::{alone, in_a_fork};

use crate::{Limits, Material, MaterialId, Pairing, PairingId, Secret, Stock, StoreError};

const PAIRING: PairingId = PairingId::from_bytes([7; 16]);
const ID: MaterialId = MaterialId::from_bytes([1; 16]);

fn stock(root: &Path) -> Stock {
    Stock::new(root.join("state"), Party::Client, Limits::default())
}

/// A stock with one pairing and a piece of material.
fn filled(root: &Path) -> Stock {
    let stock = stock(root);
    let pairing = Pairing {
        id: PAIRING,
        secret: Secret([7; 32]),
        model: [9; 32],
        model_name: "digits".into(),
        peer: "peer".into(),
        certificate: None,
    };
    stock.pair(&pairing, None).unwrap();
    stock.put(PAIRING, ID, Material::new(b"once".to_vec())).unwrap();
    stock
}

fn takes(root: &Path) -> Result<Vec<u8>, StoreError> {
    stock(root).take(PAIRING, ID).map(|taken| taken.as_bytes().to_vec())
}

#[test]
fn a_child_opens_an_index_unless_its_parent_has_it_open() {
    alone(|| {
        let [one, other] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let [one, other] = [one.path(), other.path()];
        drop(filled(other));
        let parents = filled(one);
        let is_inherited = || matches!(takes(one), Err(StoreError::Inherited { .. }));
        assert!(in_a_fork(|| is_inherited() && takes(other).is_ok_and(|taken| taken == b"once")));
        // In a child of the child, too, and by another name.
        assert!(in_a_fork(|| in_a_fork(is_inherited)));
        let link = other.join("link");
        std::os::unix::fs::symlink(one, &link).unwrap();
        assert!(in_a_fork(|| matches!(takes(&link), Err(StoreError::Inherited { .. }))));
        drop(parents);
        assert!(in_a_fork(|| takes(one).is_ok_and(|taken| taken == b"once")));
        for root in [one, other] {
            assert!(matches!(takes(root), Err(StoreError::Absent { .. })), "what a child took is gone");
        }
    });
}
