//! Squares of shared values, by encryption and one exchange, in GAZELLE's arrangement (Juvekar et al. 2018, section VII-C3).
//!
//! ```text
//! C: c                                        S: s, with x = c + s
//! offline:
//!   a, a' uniform (c1 of [c] and [c^2])
//!       ----------------------------------->  a' + 2 s a, and W of it
//!       <-----------------------------------  c1 of [W x^2 - r], blinded
//! online:
//!   c0 of [c], of [c^2]
//!       ----------------------------------->  [x^2] = [c^2] + 2 s [c] + s^2
//!       <-----------------------------------  c0 of [W x^2 - r]
//! W x^2 - r                                   r + b
//! ```
//!
//! The paper's three ciphertexts are the masked output of the layer before, `[c]` and `[c^2]`: the server goes on with `[x^2]`
//! in the layer after ([`Target::Layer`]), so a square costs one more upload and no round. That puts two products in a row on
//! the noise: at `N = 8192`, `1.8 + 2 (b + 5.5)` bits for a `t` of `b` bits, and one more for each doubling of the layer's
//! products and of its sums. Set B has room to hide that up to `b = 20` with some tens of products (a matrix of a thousand inputs), set W up
//! to `b = 25`, neither for `b = 28`; [`Target::fits`] decides.
//! Otherwise the squares are shared first ([`Target::Shares`], `W` the identity): that fits every `t`, and takes a round more.
//!
//! Values double their scale, and `x^2` must fit the ring. Threat model: semi-honest parties. The server sees two
//! ciphertexts; the client sees what a packed layer shows, a uniform share and a blinded ciphertext. Deviations: of the shares'
//! place (the client's share is what the paper masks by `r`), and all work on second halves is done ahead of time, for which the
//! server must know its share then.

mod client;
mod server;
mod step;

pub use client::ClientSquare;
pub use server::{ServerMaterial, ServerSquare};
pub use step::{Square, SquareLinear};

use lanner_bfv::function_privacy::Budget;
use lanner_bfv::{BfvError, NoiseBound, Parameters, PlaintextModulus};
use lanner_primitives::{Ring, Share};
use lanner_ring::Modulus;
use lanner_step::{Cost, OfflineCost, ProtocolError};

use crate::exchange;
use crate::gazelle::packing::Packing;
use crate::gazelle::{Layout, noise_after};

/// What becomes of the squares.
#[derive(Clone, Debug)]
pub enum Target {
    /// A given number of squares are shared.
    Shares(usize),
    /// A linear layer reads them; its output is shared.
    Layer(Box<Packing>),
}

impl Target {
    /// Whether the parameters have room to compute and hide this modulo `prime`.
    ///
    /// # Errors
    /// [`ProtocolError::Bfv`] if the prime does not fit the parameters at all.
    pub fn fits(&self, parameters: &Parameters, prime: u64) -> Result<bool, ProtocolError> {
        let modulus = PlaintextModulus::new(parameters, prime)?;
        match Budget::new(&modulus, self.noise(parameters, prime)?) {
            Ok(_) => Ok(true),
            Err(BfvError::Budget { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// The cost of the offline phase.
    ///
    /// # Errors
    /// [`ProtocolError::Bfv`] if the prime does not fit the parameters.
    pub fn offline_cost(&self, parameters: &Parameters, prime: u64) -> Result<OfflineCost, ProtocolError> {
        exchange::offline_cost(self.ciphertexts(parameters), parameters, prime)
    }

    /// The cost of the online phase.
    ///
    /// # Errors
    /// [`ProtocolError::Bfv`] if the prime does not fit the parameters.
    pub fn online_cost(&self, parameters: &Parameters, prime: u64) -> Result<Cost, ProtocolError> {
        exchange::online_cost(self.ciphertexts(parameters), parameters, prime)
    }

    /// Ciphertexts from the client and to it.
    #[must_use]
    pub fn ciphertexts(&self, parameters: &Parameters) -> [usize; 2] {
        let [inputs, outputs] = match self {
            Self::Shares(values) => [values.div_ceil(parameters.degree()); 2],
            Self::Layer(packing) => packing.ciphertexts(),
        };
        [2 * inputs, outputs]
    }

    /// A bound on the noise of the outputs, whatever the shares and the weights.
    ///
    /// # Errors
    /// As [`noise_after`].
    pub fn noise(&self, parameters: &Parameters, prime: u64) -> Result<NoiseBound, ProtocolError> {
        let fresh = NoiseBound::fresh();
        let squares = fresh.multiplied(parameters, prime).plus(fresh).plus_plaintext();
        match self {
            Self::Shares(_) => Ok(squares),
            Self::Layer(packing) => noise_after(packing, parameters, prime, squares),
        }
    }

    /// Elements that are squared.
    fn inputs(&self) -> usize {
        match self {
            Self::Shares(values) => *values,
            Self::Layer(packing) => packing.inputs(),
        }
    }

    fn layout(&self, parameters: &Parameters, ring: Ring) -> Layout {
        match self {
            Self::Shares(values) => Layout::dense(ring, parameters.degree(), *values),
            Self::Layer(packing) => Layout::new(packing, ring),
        }
    }
}

/// The squares of the elements of a share. Constant time.
fn squared(share: &Share, prime: u64) -> Result<Share, ProtocolError> {
    let modulus = Modulus::new(prime).map_err(BfvError::from)?;
    Ok(Share::new(share.ring(), share.values().iter().map(|x| modulus.mul(*x, *x)).collect())?)
}
