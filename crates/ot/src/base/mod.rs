//! Base OT: endemic OT of one round over Ristretto255.
//!
//! [MR19](https://eprint.iacr.org/2019/706): Masny, Rindal, "Endemic Oblivious Transfer", the one-round
//! protocol from Diffie-Hellman. For each transfer the sender sends `A = aG`. The receiver with choice `c` draws
//! `b` and a group element `R_(1-c)` whose logarithm it does not know, and sends `(R_0, R_1)` with
//! `R_c = bG - H_c(R_(1-c))`. Then key `j` is `K(a(R_j + H_j(R_(1-j))))`, which for `j = c` is `K(bA)`. Neither message
//! depends on the other.
//!
//! Security: UC against malicious parties in the random oracle model from computational Diffie-Hellman assumptions; a
//! malicious party may choose its own keys ("endemic"), which seeds of an extension allow. The random oracles are
//! SHA-256 and SHA-512 over a name, the transfer's number and the transcript.
//!
//! Deviation: `K` hashes the whole transcript of the transfer beside the point, so equal points in two transfers give
//! unrelated keys.

mod messages;
mod receiver;
mod sender;

pub use receiver::receive;
pub use sender::send;

use crate::Cost;

/// Bits of security: half of those of the group's order.
pub const SECURITY_BITS: u32 = 126;

/// The cost of `count` transfers.
#[must_use]
pub const fn cost(count: usize) -> Cost {
    Cost {
        sender_bytes: (count * messages::POINT) as u64,
        sender_messages: 1,
        receiver_bytes: (count * messages::PAIR) as u64,
        receiver_messages: 1,
    }
}
