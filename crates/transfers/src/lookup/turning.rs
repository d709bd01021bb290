//! Indexing that no memory access tells of.

use zeroize::Zeroizing;

use super::super::lanes::Values;

/// Room to turn a column: twice as many entries as it has, and as many again.
pub(super) struct Turning([Values; 2]);

impl Turning {
    pub(super) fn new(entries: &[u64]) -> Self {
        Self([(); 2].map(|()| Zeroizing::new(vec![0; 2 * entries.len()])))
    }

    /// Entry `j + place` at every `j`, places modulo the length, which is a power of two.
    pub(super) fn by(&mut self, entries: &[u64], place: u64) -> &[u64] {
        let Self([turned, next]) = self;
        let rows = entries.len();
        turned[..rows].copy_from_slice(entries);
        turned[rows..].copy_from_slice(entries);
        let mut step = rows / 2;
        while step > 0 {
            // Later steps look so much further ahead.
            let used = rows + step - 1;
            // Or a compiler that knows the mask for one of two would branch on it.
            let turns = std::hint::black_box(place >> step.trailing_zeros() & 1).wrapping_neg();
            let (here, there) = (&turned[..used], &turned[step..step + used]);
            for (next, (here, there)) in next[..used].iter_mut().zip(here.iter().zip(there)) {
                *next = here ^ ((here ^ there) & turns);
            }
            std::mem::swap(turned, next);
            step /= 2;
        }
        &turned[..rows]
    }
}

/// The entry at a place, of which no memory access tells.
pub(crate) fn choose(entries: &[u64], place: u64) -> u64 {
    let take = |(at, entry): (u64, &u64)| {
        // All ones where both are equal.
        let other = at ^ place;
        entry & ((other | other.wrapping_neg()) >> 63).wrapping_sub(1)
    };
    (0..).zip(entries).map(take).fold(0, |chosen, entry| chosen | entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turning_and_choosing_are_indexing() {
        for bits in 1..=8 {
            let entries: Vec<u64> = (0..1 << bits).map(|i| (i * 0x9e37_79b9) & 0xffff).collect();
            let mut turning = Turning::new(&entries);
            for place in 0..entries.len() {
                let turned = turning.by(&entries, place as u64);
                let at = |j: usize| entries[(j + place) % entries.len()];
                assert!((0..entries.len()).all(|j| turned[j] == at(j)));
                assert_eq!(choose(&entries, place as u64), entries[place]);
            }
        }
    }
}
