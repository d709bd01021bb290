//! Polynomials modulo `X^n + 1` in a residue number system, their transforms, and samplers.
//!
//! - [`Modulus`]: constant-time arithmetic modulo one prime.
//! - [`Ntt`]: the negacyclic number-theoretic transform, in the standard bit-reversed order on every backend.
//! - [`Dft`], [`Dft2`]: the cyclic transform modulo one prime, of any size that divides `q - 1`, in one and two dimensions.
//! - [`RnsBasis`], [`Poly`]: `R_q` with `q` a product of word-sized primes, in the [`Coeff`] or the [`Eval`] domain.
//! - [`GaloisElement`], [`EvalPermutation`]: the automorphisms `X -> X^g` in both domains.
//! - [`Accumulator`], [`Modulus::dot`]: sums of products with one reduction at the end.
//! - [`Conversion`]: residues modulo some primes to residues modulo others.
//! - [`Words`]: what does not change any more, where it was made or in a [`Region`] that is shared.
//! - [`sample`]: uniform, ternary, error and flooding polynomials.
//!
//! Threat model: coefficients may be secret. No operation on them branches or indexes by a value, except
//! where a function says that it is variable time. Moduli, degrees, exponents and seeds of public
//! polynomials are public.

mod accumulate;
mod arch;
mod automorphism;
mod basis;
mod buffer;
mod conversion;
mod crt;
mod dft;
mod error;
mod modulus;
mod ntt;
mod poly;
mod prime;
mod product;
mod rescale;
pub mod sample;
mod slices;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
mod words;

pub use accumulate::{Accumulator, Ending};
#[doc(hidden)]
pub use arch::Backend;
pub use automorphism::{EvalPermutation, GaloisElement};
pub use basis::RnsBasis;
pub use buffer::Buffer;
pub use conversion::Conversion;
pub use crt::Centered;
pub use dft::{Dft, Dft2};
pub use error::RingError;
pub use modulus::{Modulus, Shoup};
pub use ntt::Ntt;
pub use poly::{Coeff, Domain, Eval, Poly};
pub use prime::is_prime;
pub use product::product;
pub use words::{Extent, Region, Words};
