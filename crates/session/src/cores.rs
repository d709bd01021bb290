//! How many cores a process computes on.

use std::thread::available_parallelism;

use lanner_primitives::parallel;

/// Lets long loops of all sessions of this process share every core that it may use.
pub fn use_all_cores() {
    parallel::set_threads(available_parallelism().map_or(1, usize::from));
}
