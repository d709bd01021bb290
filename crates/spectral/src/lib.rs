//! Falcon spectral (Lou et al. 2020): one request, one response, and in between the server computes a whole network of sums and products on
//! ciphertexts.
//!
//! ```text
//! C                                          S
//! keys: public, rotations, products  -->         once a session, or kept
//! [x], laid out for the first layer  -->
//!                                                layers on ciphertexts, modulo each prime by itself
//!                                    <--     [scores], sealed
//! ```
#![allow(clippy::doc_markdown, reason = "ReLU is the field's name, not code")]

mod encrypt;
mod evaluate;
mod grid;
mod layer;
mod layout;
mod linear;
mod primes;
mod program;
mod reveal;
mod samples;
mod square;

pub use encrypt::{Encrypt, INPUT};
pub use grid::{Grid, Taps};
pub use layer::Linear;
pub use layout::{Layout, Patches};
pub use linear::Kernel;
pub use primes::{Primes, largest};
pub use program::{Counts, Diagonal, Gathering, Program, Search};
pub use reveal::Reveal;
pub use square::Square;

use lanner_bfv::{Ciphertext, Evaluator, ParameterSet, Parameters};
use lanner_step::{KeyUse, Lifetime, Needs, Result};

/// What a step needs of a session's keys; its material holds them, and so lives as long as the session.
fn needs(set: ParameterSet, uses: impl IntoIterator<Item = (KeyUse, usize)>) -> Needs {
    Needs { keys: Some((set, uses.into_iter().collect())), material: Lifetime::Session, ..Needs::default() }
}

/// The same message at fewer limbs.
fn dropped(evaluator: &Evaluator, ciphertext: Ciphertext, limbs: usize) -> Result<Ciphertext> {
    if ciphertext.limbs() == limbs {
        Ok(ciphertext)
    } else {
        Ok(evaluator.mod_switch_to(&ciphertext, limbs)?)
    }
}

/// Bytes of a ciphertext in memory.
fn ciphertext_bytes(parameters: &Parameters, limbs: usize) -> u64 {
    (2 * limbs * parameters.degree() * size_of::<u64>()) as u64
}
