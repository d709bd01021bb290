//! What each kind of message is drawn from.

use std::collections::BTreeSet;

use lanner_testkit::{Domain, Domains};

use crate::transcripts::{EXTREMES, circuits, compare, linear, spectral, tabula};

pub fn bits(widths: &[usize]) -> Domain {
    Domain::Bits(widths.to_vec())
}

/// What sets a direction of transfers up and extends it, of either crate.
fn transfers() -> Domains {
    [
        (0x10, Domain::Points),
        (0x11, Domain::Points),
        (0x12, bits(&[])),
        (0x13, bits(&[128])),
        (0x14, bits(&[128])),
        (0x16, bits(&[128])),
        (0x18, bits(&[128])),
    ]
    .into()
}

/// Of comparisons: values have these widths.
pub fn of_compare(widths: &[usize]) -> Domains {
    let mut domains = transfers();
    domains.extend([
        (0x70, bits(widths)),
        (0x71, bits(&[8, 16, 32, 64])),
        (0x72, bits(&[64])),
        (0x73, bits(widths)),
        (0x74, bits(widths)),
        (0x75, bits(widths)),
        (0x76, bits(widths)),
    ]);
    domains
}

/// Of circuits: shares are of a ring of these values.
pub fn of_circuits(ring: &Domain) -> Domains {
    let mut domains = transfers();
    domains.extend([
        (0x17, ring.clone()),
        (0x32, bits(&[])),
        (0x50, bits(&[128])),
        (0x51, bits(&[])),
        (0x52, bits(&[])),
        (0x53, bits(&[128])),
        (0x60, bits(&[])),
        (0x61, ring.clone()),
        (0x62, ring.clone()),
    ]);
    domains
}

/// Of linear layers: polynomials of a given number of values below each modulus, outputs, and differences of shares of a given width.
pub fn of_linear(
    values: usize,
    moduli: &[u64],
    evaluation: Domain,
    output: &Domain,
    share: usize,
) -> Domains {
    let residues = |seed| Domain::Residues { seed, values, moduli: moduli.to_vec() };
    [
        (0x30, residues(16)),
        (0x31, evaluation),
        (0x40, residues(0)),
        (0x41, output.clone()),
        (0x42, bits(&[])),
        (0x43, output.clone()),
        (0x44, bits(&[share])),
    ]
    .into()
}

#[test]
fn every_kind_of_the_crate_is_said_by_a_protocol_here() {
    let sessions = [compare::session, circuits::session, linear::split, tabula::session, spectral::session];
    let said: BTreeSet<u16> =
        sessions.iter().flat_map(|session| session(0, EXTREMES[0]).kinds()).map(|(_, kind)| kind).collect();
    let number = |rest: &str| u16::from_str_radix(rest.split_once(')').unwrap().0, 16).unwrap();
    let kinds = include_str!("../../../step/src/kind.rs").split("= Kind(0x").skip(1).map(number);
    // Those behind are of networks whose client is checked, which have a crate and tests of their own.
    let kinds: Vec<u16> = kinds.filter(|kind| *kind < lanner_step::kind::KEY_HALF.0).collect();
    assert!(!kinds.is_empty());
    let missed: Vec<&u16> = kinds.iter().filter(|kind| !said.contains(kind)).collect();
    assert!(missed.is_empty(), "no protocol of these tests sends the kinds {missed:02x?}");
}
