//! Every kind of message is uniform whatever the shares are: transcripts of each protocol on constant shares, both directions, by chi-square
//! tests under fixed seeds at a level of `10^-6`.
//!
//! What a kind is drawn from is said in [`kinds`]; one that is not listed there fails. Each protocol also runs twice with the same masks on
//! other shares: what the messages add up to is what they would be without masks, and must be found.

mod chosen;
mod circuits;
mod compare;
mod kinds;
mod linear;
mod select;
mod spectral;
mod tabula;

use std::collections::BTreeSet;

use crate::common::Party;
use lanner_primitives::{Ring, Share};
use lanner_testkit::{Domains, Fault, Transcript};

/// Constant shares: every element of the client's is one value, and every element of the server's.
#[derive(Clone, Copy, Debug)]
struct Shares {
    client: Edge,
    server: Edge,
}

#[derive(Clone, Copy, Debug)]
enum Edge {
    Zero,
    Middle,
    Top,
}

impl Edge {
    fn share(self, ring: Ring, length: usize) -> Share {
        let top = ring.neg(1);
        let value = match self {
            Self::Zero => 0,
            Self::Middle => top / 2 + 1,
            Self::Top => top,
        };
        Share::new(ring, vec![value; length]).unwrap()
    }
}

/// The least and the largest against each other, and the middle against itself, which wraps around.
const EXTREMES: [Shares; 5] = [
    Shares { client: Edge::Zero, server: Edge::Zero },
    Shares { client: Edge::Zero, server: Edge::Top },
    Shares { client: Edge::Top, server: Edge::Zero },
    Shares { client: Edge::Top, server: Edge::Top },
    Shares { client: Edge::Middle, server: Edge::Middle },
];

/// Those of them that say most, for sessions that take long.
const OPPOSITES: &[Shares] = EXTREMES.split_at(1).1.split_at(2).0;

/// A protocol in a session of its own, from its set-up on. Its masks follow from the session's number alone.
type Session = fn(u8, Shares) -> Transcript;

/// Sessions that are judged together: one has a single salt.
const SESSIONS: u8 = 8;

/// All that both parties sent.
fn transcript((client, server): &(Party, Party)) -> Transcript {
    Transcript::of([("client", client), ("server", server)])
}

fn check_uniform(session: Session, domains: &Domains, extremes: &[Shares]) {
    for shares in extremes {
        let mut all = Transcript::default();
        (0..SESSIONS).for_each(|number| all.extend(session(number, *shares)));
        assert_eq!(all.faults(domains), [], "{shares:?}");
    }
}

/// Finds what each kind masks, by changing one share and then the other.
fn check_masks(session: Session, domains: &Domains, masked: &[(&'static str, u16)]) {
    let zero = Shares { client: Edge::Zero, server: Edge::Zero };
    let mut found = BTreeSet::new();
    for other in [Shares { client: Edge::Top, ..zero }, Shares { server: Edge::Top, ..zero }] {
        let bare = session(1, zero).unmasked_by(&session(1, other));
        found.extend(bare.faults(domains).into_iter().map(|Fault { party, kind, .. }| (party, kind)));
    }
    let missed: Vec<_> = masked.iter().filter(|kind| !found.contains(*kind)).collect();
    assert!(missed.is_empty(), "without masks the kinds {missed:02x?} look the same");
}
