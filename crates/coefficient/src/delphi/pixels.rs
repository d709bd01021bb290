//! Pixels of the output whose sums are made at once, and what taps find for them.

use super::arch::Word;

/// Words of a cache line, which are copied at once where pixels lie beside each other.
const RUN: usize = 8;

/// Some pixels of the output.
pub(super) struct Pixels<const COLUMNS: usize> {
    /// Where their first taps are; the last of too few is repeated, and makes sums that nobody reads.
    places: [usize; COLUMNS],
    /// Whether those of each run lie beside each other.
    beside: [bool; COLUMNS],
}

impl<const COLUMNS: usize> Pixels<COLUMNS> {
    /// Those of some places, of which there is one at least.
    pub(super) fn new(places: &[usize]) -> Self {
        let place = |column: usize| places.get(column).or(places.last()).copied().unwrap_or_default();
        let places: [usize; COLUMNS] = std::array::from_fn(place);
        let mut beside = [false; COLUMNS];
        for (beside, run) in beside.iter_mut().zip(places.as_chunks::<RUN>().0) {
            *beside = run.iter().enumerate().all(|(number, place)| *place == run[0] + number);
        }
        Self { places, beside }
    }

    /// What each tap finds in an image, for all pixels.
    pub(super) fn read<T: Word>(&self, image: &[T], taps: &[usize], columns: &mut [[T; COLUMNS]]) {
        for (tap, row) in taps.iter().zip(columns) {
            let runs = self.places.as_chunks::<RUN>().0.iter().zip(row.as_chunks_mut::<RUN>().0);
            for ((places, row), beside) in runs.zip(self.beside) {
                if beside {
                    row.copy_from_slice(&image[tap + places[0]..][..RUN]);
                } else {
                    *row = places.map(|place| image[tap + place]);
                }
            }
        }
    }
}
