//! Who shares kept keys and material with whom, in a state directory.

use std::path::Path;

use lanner_step::Party;
use lanner_store::{Limits, PairingEntry, Stock};

use crate::Result;

/// All pairings in a state directory, of its clients and its servers, the last used first.
///
/// # Errors
/// [`ErrorKind::Misuse`](crate::ErrorKind::Misuse) if the directory cannot be used.
pub fn pairings(state_dir: &Path) -> Result<Vec<PairingEntry>> {
    Ok(stock(state_dir, Party::Client).entries()?)
}

/// Forgets a pairing with its keys and material, on this side: the other side's serve nobody any more. Whether there was one.
///
/// # Errors
/// [`ErrorKind::Misuse`](crate::ErrorKind::Misuse) if it is no name of a pairing, or the directory cannot be used.
pub fn revoke(state_dir: &Path, id: &str) -> Result<bool> {
    let id = id.parse()?;
    let [client, server] = [Party::Client, Party::Server].map(|party| stock(state_dir, party).revoke(id));
    Ok(client? | server?)
}

fn stock(state_dir: &Path, party: Party) -> Stock {
    Stock::new(state_dir, party, Limits::default())
}
