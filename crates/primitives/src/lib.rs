//! Blocks, pseudorandom generators, correlation-robust hashes, a sparse code, bit vectors and their transposition, and the rings of shares.
//!
//! Everything here is local computation on secrets: nothing sends a message, and nothing branches on a secret or uses
//! one as an index. What both parties derive (seed expansion, hashes, transposition) is the same on every machine;
//! `arch` holds the accelerated twins of the portable code and chooses among them when the first is called.

#[cfg(target_endian = "big")]
compile_error!("blocks are read and written as little-endian memory");

mod arch;
mod bits;
mod block;
mod cipher;
mod error;
mod gf128;
mod groups;
mod hash;
mod local_code;
mod low_bits;
pub mod parallel;
mod prg;
mod ring;
mod seed;
mod share;
mod siblings;
mod stream;
mod transpose;
mod two_call;

pub use arch::{features, instructions};
pub use bits::Bits;
pub use block::Block;
pub use error::PrimitivesError;
pub use gf128::{double_and_add, field_dot, field_powers};
pub use groups::HashGroups;
pub use hash::{CorrelationRobustHash, sigma};
pub use local_code::LocalCode;
pub use low_bits::{bit_of_words, low_bits};
pub use prg::Prg;
pub use ring::{Factor, Ring};
pub use seed::{Direction, Label, Seed, derive_seed};
pub use share::{Share, ShareError};
pub use siblings::{add_at_siblings, add_by_parents};
pub use stream::PrgStream;
pub use transpose::{TRANSPOSE_ROWS, transpose};
pub use two_call::TweakableHash;
