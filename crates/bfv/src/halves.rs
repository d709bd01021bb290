//! Encryption, evaluation and decryption in two halves, most of the work before the message is known.
//!
//! In a ciphertext `(c0, c1)` with `c0 + c1 s = round(q m / t) + e` the second half is uniform and the message is in the first
//! alone. So the client can announce `c1` ahead of time, as a seed, and the server can do ahead of time all that
//! depends on it: the digits and inner products of every key switching. What a linear function `F` makes of `(c0, c1)` is
//!
//! ```text
//! F(c0, c1) = F(0, c1) + (F'(c0), 0)
//! ```
//!
//! to the last bit, where `F'` permutes, multiplies and adds without any key: a rotation's rounding is of `c1` alone.
//!
//! ```text
//! C                                         S
//! ahead:   C1          -------->    expand, F(0, c1), Sealing
//!          prepare_decryption  <--------    SealedC1
//! online:  C0           -------->    F'(c0), Sealing::seal
//!          decrypt             <--------    SealedC0
//! ```
//!
//! The two halves together are the messages of the undivided way, in another order: a semi-honest party learns nothing from
//! seeing a half earlier. An announced half serves one message only, since two would give away their difference; so all
//! that was prepared is consumed by value, and nothing of it can be cloned.

mod c0;
mod client;
mod combination;
mod rounded;

pub use c0::{C0, Permutations};
pub use client::{C1, PreparedDecryption, PreparedEncryption};
pub use combination::C0Combinations;
pub use rounded::{InputModulus, PreparedInput};

#[cfg(test)]
mod tests;
