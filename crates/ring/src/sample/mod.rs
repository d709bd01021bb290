//! Random polynomials.
//!
//! Every sampler consumes bytes in an order that depends only on public values (the length, the primes, and, for
//! [`uniform`], the words of the public result), so a seeded generator gives the same polynomial everywhere.
//! Words are read little-endian.

mod flood;
mod small;
mod uniform;

pub use flood::flood;
pub use small::{ERROR_BOUND, ERROR_STD, error, ternary};
pub use uniform::{uniform, uniform_below};
