//! What a session owns and its steps draw from, by what it is.

mod garbling;
mod keys;
mod sets;
mod transfers;

pub use garbling::{EvaluationSession, GarblingSession, Tweaks, garbling_cost};
pub use keys::{ClientKeys, keys_cost, receive_keys, secret_key, send_keys};
pub use sets::Sets;
pub use transfers::{Correlations, CotSupply, Transfers, transfer_sets, transfers_cost};
