//! The elements of several samples in the slots of ciphertexts, and back.

use lanner_step::Samples;

use super::grid::Place;
use super::layout::Layout;

impl Layout {
    /// The slots of all ciphertexts, for the elements of one sample after the other; zero where there is no element.
    #[must_use]
    pub fn pack(&self, samples: Samples, values: &[u64]) -> Vec<Vec<u64>> {
        let of_ciphertext = |places: &Vec<Place>| {
            let mut packed = vec![0; samples.times(places.len())];
            for (slots, place) in packed.chunks_mut(samples.count()).zip(places) {
                if let Place::Element(element) = place {
                    let of_samples = values.chunks(self.len());
                    slots
                        .iter_mut()
                        .zip(of_samples)
                        .for_each(|(slot, sample)| *slot = sample.get(*element).copied().unwrap_or(0));
                }
            }
            packed
        };
        self.places().iter().map(of_ciphertext).collect()
    }

    /// The elements of one sample after the other.
    pub(super) fn unpack_samples(&self, samples: Samples, slots: &[Vec<u64>]) -> Vec<u64> {
        let of = |sample: usize| {
            let own =
                |slots: &Vec<u64>| slots.iter().skip(sample).step_by(samples.count()).copied().collect();
            self.unpack(&slots.iter().map(own).collect::<Vec<_>>())
        };
        (0..samples.count()).flat_map(of).collect()
    }

    /// For each ciphertext, which slots hold elements, or zeros that count.
    pub(super) fn occupied_by(&self, samples: Samples) -> Vec<Vec<bool>> {
        self.occupied().iter().map(|occupied| samples.spread(occupied)).collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_told_apart_again() {
        let runs = Layout::Runs { slots: 16, len: 6, run: 3, stride: 4, period: 8 };
        for count in [1, 2, 8] {
            let samples = Samples::try_from(count).unwrap();
            let values: Vec<u64> = (1..=6 * count as u64).collect();
            let packed = runs.pack(samples, &values);
            assert_eq!(packed[0].len(), 16 * count);
            assert_eq!(runs.unpack_samples(samples, &packed), values);
            let occupied = runs.occupied_by(samples);
            assert!(packed[0].iter().zip(&occupied[0]).all(|(slot, is)| (*slot > 0) == *is));
        }
    }
}
