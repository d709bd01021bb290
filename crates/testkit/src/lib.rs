//! Development helpers: seeded generators and statistics.
//!
//! Nothing here is secure or constant-time; no shipped crate depends on it.

mod rng;
mod statistics;

pub use rng::TestRng;
pub use statistics::{
    chi_square, chi_square_limit, mean_and_variance, sum_of_three_uniform, uniform_chi_square,
};
