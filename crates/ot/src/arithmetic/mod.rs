//! Arithmetic correlated OT: additive shares of `x[i] * a[i]` in `Z_m`, for the receiver's bits `x` and the sender's `a`.
//!
//! [ALSZ13](https://eprint.iacr.org/2013/552): Asharov, Lindell, Schneider, Zohner, "More Efficient Oblivious Transfer and
//! Extensions for Faster Secure Computation", its correlated OT. With keys `k0`, `k1` hashed from a correlated transfer
//! and mapped into `Z_m`, the sender sends `d = k0 - k1 + a` and keeps `-k0`; the receiver keeps `k_x + x * d`, which is
//! `k0 + x * a`. One value of `ceil(log2 m)` bits a transfer, packed.
//!
//! Security: a key of 128 uniform bits is mapped to `floor(key * m / 2^128)`, which is within `m / 2^128` of uniform in
//! statistical distance: at most `2^-78` for `m < 2^50`, and exact where `m` is a power of two.

mod group;
mod receiver;
mod sender;

pub use group::Group;
pub use receiver::{receive, receive_extended, receive_random};
pub use sender::{send, send_extended, send_random};

use lanner_wire::packed_len;

use crate::{Cost, softspoken};

/// The cost of `count` shares for bits that the receiver gives, with [`softspoken`] as the source.
#[must_use]
pub fn cost(group: Group, count: usize) -> Cost {
    softspoken::extension_cost(count).plus(corrections(group, count))
}

/// The cost of `count` shares for random bits, with [`softspoken`] as the source.
#[must_use]
pub fn random_cost(group: Group, count: usize) -> Cost {
    softspoken::random_extension_cost(count).plus(corrections(group, count))
}

fn corrections(group: Group, count: usize) -> Cost {
    let last = packed_len(count % CHUNK, group.bits());
    Cost {
        sender_bytes: (count / CHUNK * packed_len(CHUNK, group.bits()) + last) as u64,
        sender_messages: count.div_ceil(CHUNK) as u64,
        ..Cost::default()
    }
}

/// Transfers of one message of corrections.
const CHUNK: usize = 1 << 16;

/// Transfers that one core takes at a time.
const RUN: usize = 1 << 10;
