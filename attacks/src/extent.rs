//! How much of the attacks is run.

/// Set for every message in every way, as `make test-all` does.
const VARIABLE: &str = "LANNER_ATTACKS";

/// Whether every message is attacked in every way, which takes minutes; else the first of each kind is, and each fourth other one in one way.
#[must_use]
pub fn is_whole() -> bool {
    std::env::var_os(VARIABLE).is_some_and(|value| value == "all")
}

/// So many runs, or as many as the shorter attacks take.
#[must_use]
pub fn of(runs: usize) -> usize {
    if is_whole() { runs } else { runs / SHORTER }
}

/// Whether message `number` is attacked that is not the first of its kind.
#[must_use]
pub fn has(number: usize) -> bool {
    is_whole() || number.is_multiple_of(SHORTER)
}

/// The part of further messages that the shorter attacks change.
const SHORTER: usize = 4;
