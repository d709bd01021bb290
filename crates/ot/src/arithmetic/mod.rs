//! Arithmetic correlated OT: additive shares of `x[i] * a[i]` in `Z_m`, for the receiver's bits `x` and the sender's `a`.
//!
//! [ALSZ13] Asharov, Lindell, Schneider, Zohner, "More Efficient Oblivious Transfer and Extensions for Faster Secure
//! Computation", section 5.1, <https://eprint.iacr.org/2013/552>. With keys `k0`, `k1` hashed from a correlated transfer
//! and mapped into `Z_m`, the sender sends `d = k0 - k1 + a` and keeps `-k0`; the receiver keeps `k_x + x * d`, which is
//! `k0 + x * a`. One value of `ceil(log2 m)` bits a transfer, packed.
//!
//! Security: a key of 128 uniform bits is mapped to `floor(key * m / 2^128)`, which is within `m / 2^128` of uniform in
//! statistical distance: at most `2^-78` for `m < 2^50`, and exact where `m` is a power of two.

mod group;
mod receiver;
mod sender;

pub use group::Group;
pub use receiver::{receive, receive_random};
pub use sender::{send, send_random};

/// Transfers of one message of corrections.
const CHUNK: usize = 1 << 16;
