//! The index of the largest value.

use super::masked::{MaskedBuilder, MaskedCircuit, Sharing};
use crate::GcError;
use crate::circuit::Wire;

/// The index of the largest of `k` values, ties to the lowest index: `ceil(log2 k)` output bits, unsigned.
///
/// A tree in which each half's winner keeps its index: the comparison's bit is the index's next bit. AND gates: k times
/// those of [`super::rescale`] with `d = 0`, `(2k - 3) b` to compare and select, and fewer than k for the index
/// (`k - 1 - log2 k` for k a power of two).
///
/// # Errors
/// [`GcError::Parameters`] as for [`signed_bound`](super::signed_bound), and if `k` is below two.
pub fn argmax(scores: impl Into<Sharing>, k: usize) -> Result<MaskedCircuit, GcError> {
    let mut builder = MaskedBuilder::guarded(scores.into())?;
    let winner = tournament(&mut builder, k, &mut |_| ())?;
    builder.finish(&winner.index)
}

/// As [`argmax`], followed by the largest value: b more output bits in two's complement, and b more AND gates.
///
/// # Errors
/// As for [`argmax`].
pub fn argmax_with_max(scores: impl Into<Sharing>, k: usize) -> Result<MaskedCircuit, GcError> {
    let mut builder = MaskedBuilder::guarded(scores.into())?;
    let mut winner = tournament(&mut builder, k, &mut |_| ())?;
    if let Some(sign) = winner.value.last_mut() {
        *sign = !*sign;
    }
    let outputs: Vec<_> = winner.index.into_iter().chain(winner.value).collect();
    builder.finish(&outputs)
}

pub(super) struct Winner {
    /// The value in offset form.
    pub(super) value: Vec<Wire>,
    /// The index among the values of its part.
    pub(super) index: Vec<Wire>,
}

/// The winner of the next `k` values, each of which is shown to `visit` in offset form.
pub(super) fn tournament(
    builder: &mut MaskedBuilder,
    k: usize,
    visit: &mut dyn FnMut(&[Wire]),
) -> Result<Winner, GcError> {
    if k < 2 {
        return Err(GcError::Parameters("an argmax needs two values"));
    }
    Ok(winner(builder, k, visit))
}

/// The winner of the next `k` values: `next_power_of_two(k) / 2` of them against the rest.
fn winner(builder: &mut MaskedBuilder, k: usize, visit: &mut dyn FnMut(&[Wire])) -> Winner {
    if k == 1 {
        let value = builder.offset_value();
        visit(&value);
        return Winner { value, index: Vec::new() };
    }
    let half = k.next_power_of_two() / 2;
    let low = winner(builder, half, visit);
    let mut high = winner(builder, k - half, visit);
    high.index.resize(low.index.len(), Wire::ZERO);
    let gates = &mut builder.gates;
    // Strictly larger, so that a tie stays with the lower index.
    let (value, from_high) = gates.max_word(&low.value, &high.value);
    let mut index = gates.mux_word(from_high, &high.index, &low.index);
    index.push(from_high);
    Winner { value, index }
}
