//! Development helpers: seeded generators, channels between threads, networks drawn at random, and statistics.
//!
//! Nothing here is secure or constant-time; no shipped crate depends on it.

mod alone;
mod arch;
mod network;
mod party;
mod rng;
mod statistics;
mod transcript;
mod uniform;

pub use alone::alone;
#[cfg(unix)]
pub use arch::in_a_fork;
pub use network::draw_network;
pub use party::{Party, Tamper, run};
pub use rng::TestRng;
pub use statistics::{
    chi_square, chi_square_limit, mean_and_variance, sum_of_three_uniform, two_sample_chi_square,
    uniform_chi_square,
};
pub use transcript::{Domain, Domains, Fault, Transcript};
pub use uniform::{check_bits, check_points, check_residues};
