//! The indices of the largest values, in order.

use super::masked::{MaskedBuilder, MaskedCircuit, Sharing};
use crate::GcError;
use crate::circuit::{CircuitBuilder, Wire};

/// The indices of the `best` largest of `k` values, the largest first, ties to the lowest index: `best` times `ceil(log2 k)` output bits,
/// unsigned.
///
/// A tree of merges by Batcher's odd-even method (Knuth, TAOCP 3, section 5.3.4), in which a part keeps its `best` first. What is compared is a value
/// with the complement of its index below it, so that no two are equal. AND gates: k times those of [`super::rescale`] with `d = 0`, and fewer than
/// `2 (b + ceil(log2 k))` for each comparison of the merges, since gates that only order what is dropped are left out.
///
/// # Errors
/// [`GcError::Parameters`] as for [`super::argmax`], and unless `1 <= best <= k`.
pub fn top_k(scores: impl Into<Sharing>, k: usize, best: usize) -> Result<MaskedCircuit, GcError> {
    if k < 2 || !(1..=k).contains(&best) {
        return Err(GcError::Parameters("the number of best values, or fewer than two values"));
    }
    let mut builder = MaskedBuilder::guarded(scores.into())?;
    let index_bits = k.next_power_of_two().trailing_zeros();
    let keys = (0..k).map(|index| {
        let mut key = CircuitBuilder::constant_word(!(index as u64), index_bits);
        key.extend(builder.offset_value());
        key
    });
    let keys: Vec<_> = keys.collect();
    let first = largest(&mut builder.gates, &keys, best);
    let indices = first.iter().flat_map(|key| key[..index_bits as usize].iter().map(|bit| !*bit));
    let indices: Vec<_> = indices.collect();
    builder.finish(&indices)
}

/// A word to compare.
type Key = Vec<Wire>;

/// The `best` largest keys in falling order.
fn largest(gates: &mut CircuitBuilder, keys: &[Key], best: usize) -> Vec<Key> {
    if keys.len() < 2 {
        return keys.to_vec();
    }
    let (low, high) = keys.split_at(keys.len() / 2);
    let (low, high) = (largest(gates, low, best), largest(gates, high, best));
    let mut merged = merge(gates, &low, &high);
    merged.truncate(best);
    merged
}

/// Merges two falling sequences of any lengths: those of even and of odd places, then neighbours.
fn merge(gates: &mut CircuitBuilder, a: &[Key], b: &[Key]) -> Vec<Key> {
    match (a, b) {
        ([], rest) | (rest, []) => return rest.to_vec(),
        ([a], [b]) => return exchange(gates, a, b).to_vec(),
        _ => {}
    }
    let places = |keys: &[Key], first: usize| keys.iter().skip(first).step_by(2).cloned().collect::<Vec<_>>();
    let even = merge(gates, &places(a, 0), &places(b, 0));
    let odd = merge(gates, &places(a, 1), &places(b, 1));
    let mut merged = vec![even[0].clone()];
    for place in 1..even.len().max(odd.len() + 1) {
        match (even.get(place), odd.get(place - 1)) {
            (Some(even), Some(odd)) => merged.extend(exchange(gates, odd, even)),
            (Some(key), None) | (None, Some(key)) => merged.push(key.clone()),
            (None, None) => {}
        }
    }
    merged
}

/// The larger, then the smaller: two ANDs a bit.
fn exchange(gates: &mut CircuitBuilder, a: &Key, b: &Key) -> [Key; 2] {
    let larger = gates.greater_than(b, a);
    let mut pair = [Vec::with_capacity(a.len()), Vec::with_capacity(a.len())];
    for (a, b) in a.iter().zip(b) {
        let differ = gates.xor(*a, *b);
        let change = gates.and(larger, differ);
        pair[0].push(gates.xor(*a, change));
        pair[1].push(gates.xor(*b, change));
    }
    pair
}
