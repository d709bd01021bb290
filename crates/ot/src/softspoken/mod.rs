//! Correlated OT by SoftSpoken extension with small fields of `2^4` elements.
//!
//! [Roy22](https://eprint.iacr.org/2022/192): Roy, "SoftSpokenOT: Quieter OT Extension from Small-Field Silent VOLE in the
//! Minicrypt Model", its small-field and subspace VOLE with `p = 2`, `k = 4` and the repetition code, with both of its
//! consistency checks: that of the trees at set-up (`leaves`), that of the corrections with each batch (`check`). Sender and receiver are named by what they get in the end; inside the roles of the
//! vector oblivious linear evaluation (VOLE) are the other way round.
//!
//! 1. Setup. The sender's `delta` is cut into 32 elements of `GF(2^4)`. For each, a tree of 16 seeds ([`punctured`]) is
//!    built from four base OTs: the receiver knows all leaves, the sender all but the one that its element names.
//! 2. Small-field VOLE ([`small_field`]). Expanding the leaves gives the receiver a bit vector `u` and a vector `v`
//!    over `GF(2^4)`, the sender `w = v + u * delta_g`, without any message.
//! 3. Extension. The receiver sends `c = u xor x` for each of the 32 trees, `x` being the choices; the sender adds
//!    `c * delta_g`. The 128 rows of bits of all trees, transposed, are the blocks `t` and `q = t xor x * delta`.
//!
//! 4. Proof. A batch, which is one call, ends with the receiver's proof that it corrected all trees by the same `x`, for 544 bytes. The sender gives no
//!    `q` before it has seen it.
//!
//! Security: against a malicious sender, who learns nothing of `x`; against a malicious receiver, who learns `b` bits of `delta` with
//! probability `2^-b` and is caught otherwise. What is sent on top of correlated transfers is not checked here.
//!
//! Random choices are the first tree's `u`, whose row need not be sent: 31 bits a transfer instead of 32.
//!
//! Deviations: elements are sums of bits rather than field elements, since only multiples of a subfield's `u` are taken;
//! `delta` has its lowest bit set so that it can be a garbling offset too (127 bits of it are secret); the first level of
//! each tree is the base OTs' keys themselves.

mod check;
mod leaves;
mod messages;
pub mod punctured;
mod receiver;
mod sender;
pub mod small_field;
#[cfg(test)]
mod tests;

use lanner_primitives::Block;
use rand_core::CryptoRng;

use crate::Cost;
use messages::{Choices, Chunks, PUNCTURE_BYTES};

pub use check::SECURITY_BITS as CHECK_SECURITY_BITS;
pub use receiver::CotReceiver;
pub use sender::CotSender;

/// The bits of an element of the small field: the paper's `k`.
pub const FIELD_BITS: usize = 4;

/// The elements of the small field, and the leaves of a tree.
pub const LEAVES: usize = 1 << FIELD_BITS;

/// The trees: elements of `delta`.
pub const TREES: usize = 128 / FIELD_BITS;

/// A uniform delta among those whose lowest bit is one.
#[must_use]
pub fn random_delta<R: CryptoRng + ?Sized>(rng: &mut R) -> Block {
    Block::random(rng).with_lsb(true)
}

/// The cost of setting up one direction.
#[must_use]
pub const fn setup_cost() -> Cost {
    let base = crate::base::cost(8 * Block::BYTES);
    Cost {
        sender_bytes: base.receiver_bytes + Block::BYTES as u64,
        sender_messages: base.receiver_messages + 1,
        receiver_bytes: base.sender_bytes + PUNCTURE_BYTES as u64,
        receiver_messages: base.sender_messages + 1,
    }
}

/// The cost of `count` transfers for choices that the receiver gives.
#[must_use]
pub fn extension_cost(count: usize) -> Cost {
    corrections(count, Choices::Given)
}

/// The cost of `count` transfers for random choices.
#[must_use]
pub fn random_extension_cost(count: usize) -> Cost {
    corrections(count, Choices::Random)
}

fn corrections(count: usize, choices: Choices) -> Cost {
    if count == 0 {
        return Cost::default();
    }
    let hiding = Choices::Random.trees();
    let blocks = Chunks::of(count).sum::<usize>() * choices.trees() + hiding;
    Cost {
        receiver_bytes: (blocks * Block::BYTES + check::PROOF_BYTES) as u64,
        // What hides the proof goes before, the proof behind.
        receiver_messages: Chunks::of(count).count() as u64 + 2,
        ..Cost::default()
    }
}
