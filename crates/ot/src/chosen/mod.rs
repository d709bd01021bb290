//! Chosen OT: the sender's messages, the receiver's choices, from random transfers made beforehand.
//!
//! [Bea95](https://doi.org/10.1007/3-540-44750-4_8): Beaver, "Precomputing Oblivious Transfer". The receiver sends its choice against its random one, one bit
//! `d = c xor x` a transfer; the sender masks message `j` with key `j xor d`, so that message `c` lies under key `x`.
//! One round. Messages of other lengths than a block are masked with the pseudorandom stream of the key.
//!
//! Security: `d` is uniform to the sender and the other key to the receiver. Each key masks one message: the material is
//! consumed.

// Material is taken by value although it is only read: that is what keeps it from being used twice.
#![expect(clippy::needless_pass_by_value)]

mod receiver;
mod sender;

pub use receiver::{receive_blocks, receive_bytes};
pub use sender::{send_blocks, send_bytes};

use lanner_primitives::{Bits, Block, Prg, Seed};

use crate::Cost;

/// The cost of `count` transfers of strings of `length` bytes, given their material; a block is 16 bytes.
#[must_use]
pub fn cost(count: usize, length: usize) -> Cost {
    let chunks = if length == 0 { 0 } else { count.div_ceil(chunk_transfers(length)) };
    Cost {
        sender_bytes: (2 * count * length) as u64,
        sender_messages: chunks as u64,
        receiver_bytes: Bits::byte_len(count) as u64,
        receiver_messages: u64::from(count > 0),
    }
}

/// Transfers of one message of masked pairs, for messages of `length` bytes: about half a megabyte.
fn chunk_transfers(length: usize) -> usize {
    (CHUNK_BYTES / (2 * length).max(1)).max(1)
}

const CHUNK_BYTES: usize = 1 << 19;

/// Adds the stream of a key to a message mod 2.
fn mask_bytes(key: Block, message: &mut [u8]) {
    let mut prg = Prg::new(Seed::from_bytes(key.to_bytes()));
    let mut stream = zeroize::Zeroizing::new(vec![0; message.len()]);
    prg.fill_bytes(&mut stream);
    for (m, s) in message.iter_mut().zip(stream.iter()) {
        *m ^= s;
    }
}
