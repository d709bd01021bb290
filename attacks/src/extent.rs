//! How much of the attacks is run.

/// Set for every message in every way, as `make test-all` does.
const VARIABLE: &str = "LANNER_ATTACKS";

/// Whether every message is attacked in every way, which takes minutes; else the first of each kind is, and each other one in one way.
#[must_use]
pub fn is_whole() -> bool {
    std::env::var_os(VARIABLE).is_some_and(|value| value == "all")
}

/// So many runs, or as many as the shorter attacks take.
#[must_use]
pub fn of(runs: usize) -> usize {
    if is_whole() { runs } else { runs / 2 }
}
