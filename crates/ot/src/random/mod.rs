//! Random OT: correlated transfers whose correlation is hashed away.
//!
//! [IKNP03](https://doi.org/10.1007/978-3-540-45146-4_9) section 3 with the correlation-robust hash of the session: key `j` of transfer `i` is
//! `H(q[i] xor j * delta, i)`, which for `j = x[i]` is `H(t[i], i)`. No message beyond the extension's.
//!
//! The results are material for one use: they move into the protocol that uses them up and are wiped when dropped.

mod receiver;
mod sender;

pub use receiver::RandomChoices;
pub use sender::RandomPairs;
