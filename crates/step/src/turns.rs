//! Ciphertexts of a step, some at a time.

use std::ops::Range;

use lanner_primitives::parallel;

/// The numbers of a given number of ciphertexts, in the groups that are computed at once and sent: the peer works on one while the next is made.
pub fn in_turns(count: usize) -> impl Iterator<Item = Range<usize>> {
    let each = TURN * parallel::threads();
    (0..count).step_by(each).map(move |start| start..count.min(start + each))
}

/// Ciphertexts of one core in a turn.
const TURN: usize = 4;
