//! Development helpers: seeded generators, networks drawn at random, and statistics.
//!
//! Nothing here is secure or constant-time; no shipped crate depends on it.

mod network;
mod rng;
mod statistics;

pub use network::draw_network;
pub use rng::TestRng;
pub use statistics::{
    chi_square, chi_square_limit, mean_and_variance, sum_of_three_uniform, uniform_chi_square,
};
