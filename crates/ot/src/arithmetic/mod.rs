//! Arithmetic correlated OT: additive shares of `x[i] * a[i]` in `Z_m`, for the receiver's bits `x` and the sender's `a`.
//!
//! [ALSZ13](https://eprint.iacr.org/2013/552): Asharov, Lindell, Schneider, Zohner, "More Efficient Oblivious Transfer and
//! Extensions for Faster Secure Computation", its correlated OT. With keys `k0`, `k1` hashed from a correlated transfer
//! and mapped into `Z_m`, the sender sends `d = k0 - k1 + a` and keeps `-k0`; the receiver keeps `k_x + x * d`, which is
//! `k0 + x * a`. One value of `ceil(log2 m)` bits a transfer, packed.
//!
//! Security: a key of 128 uniform bits is mapped to `floor(key * m / 2^128)`, which is within `m / 2^128` of uniform in
//! statistical distance: at most `2^-78` for `m < 2^50`, and exact where `m` is a power of two.

mod receiver;
mod sender;

pub use receiver::{receive, receive_extended, receive_random};
pub use sender::{send, send_extended, send_random};

use lanner_primitives::{Block, Ring};
use lanner_wire::packed_len;

use crate::{Cost, OtError, softspoken};

/// The cost of `count` shares for bits that the receiver gives, with [`softspoken`] as the source.
#[must_use]
pub fn cost(ring: Ring, count: usize) -> Cost {
    softspoken::extension_cost(count).plus(corrections(ring, count))
}

/// The cost of `count` shares for random bits, with [`softspoken`] as the source.
#[must_use]
pub fn random_cost(ring: Ring, count: usize) -> Cost {
    softspoken::random_extension_cost(count).plus(corrections(ring, count))
}

fn corrections(ring: Ring, count: usize) -> Cost {
    let last = packed_len(count % CHUNK, ring.bits());
    Cost {
        sender_bytes: (count / CHUNK * packed_len(CHUNK, ring.bits()) + last) as u64,
        sender_messages: count.div_ceil(CHUNK) as u64,
        ..Cost::default()
    }
}

/// Transfers of one message of corrections.
const CHUNK: usize = 1 << 16;

/// Transfers that one core takes at a time.
const RUN: usize = 1 << 10;

/// # Errors
/// [`OtError::Range`] unless the ring is `Z_m` for `2 <= m <= 2^50` or `m = 2^l` for `1 <= l <= 64`.
const fn check_ring(ring: Ring) -> Result<(), OtError> {
    let fits = match ring {
        Ring::Prime(m) => 2 <= m && m <= 1 << 50,
        Ring::Pow2(bits) => 1 <= bits && bits <= 64,
    };
    if fits { Ok(()) } else { Err(OtError::Range { what: "modulus" }) }
}

/// Maps a uniform block into the ring: `floor(block * m / 2^128)`.
const fn map(ring: Ring, block: Block) -> u64 {
    let (low, high) = (block.0 & u64::MAX as u128, block.0 >> 64);
    match ring {
        // Below 2^128: (2^64 - 1) * m and a carry below m.
        Ring::Prime(m) => ((high * m as u128 + ((low * m as u128) >> 64)) >> 64) as u64,
        Ring::Pow2(bits) => (high >> (64 - bits)) as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_outside_the_range_are_refused() {
        let taken = [Ring::Prime(2), Ring::Prime(1 << 50), Ring::Pow2(1), Ring::Pow2(64)];
        assert!(taken.into_iter().all(|ring| check_ring(ring).is_ok()));
        let refused = [Ring::Prime(1), Ring::Prime((1 << 50) + 1), Ring::Pow2(0), Ring::Pow2(65)];
        assert!(refused.into_iter().all(|ring| check_ring(ring).is_err()));
    }

    #[test]
    fn the_map_is_the_floor() {
        for m in [3_u64, 114_689, (1 << 50) - 1] {
            let ring = Ring::Prime(m);
            let step = u128::MAX / u128::from(m) + 1;
            for i in [1, u128::from(m) / 2, u128::from(m) - 1] {
                assert_eq!(u128::from(map(ring, Block(i * step))), i);
                assert_eq!(u128::from(map(ring, Block(i * step - u128::from(m)))), i - 1);
            }
        }
        for ring in
            [Ring::Prime(114_689), Ring::Prime(1 << 50), Ring::Pow2(1), Ring::Pow2(37), Ring::Pow2(64)]
        {
            assert_eq!((map(ring, Block::ZERO), map(ring, Block::ONES)), (0, ring.largest()));
        }
    }
}
