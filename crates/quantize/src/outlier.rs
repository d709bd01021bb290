//! Samples on which a network runs away, as networks of squares do: an activation far beyond the usual is squared again and again.
//!
//! Bits spread over such values would leave none for the others, and no ring holds twice their sums. So the activation bits go to what
//! most samples reach, and where no ring holds a calibration, its worst samples are set aside, one in a hundred at most.

use super::calibrate::Observed;
use super::calibrate::Samples;

/// How far beyond the median sample's largest activation its bits reach.
const TYPICAL: f64 = 4.0;

/// How far beyond the median sample's some value of a sample lies before the sample may be set aside.
const RUNAWAY: f64 = 8.0;

/// Of a given number of samples one may be set aside.
const SAMPLES_FOR_ONE: usize = 100;

/// What a value's activation bits reach, given its magnitude in each sample.
pub(super) fn typical(magnitudes: &[f64]) -> f64 {
    match median(magnitudes) {
        0.0 => f64::INFINITY,
        median => TYPICAL * median,
    }
}

/// The samples without the first few of those that run away: all of them first, then one less each time.
pub(super) fn set_aside<'s>(
    observed: &Observed,
    samples: &Samples<'s>,
) -> impl Iterator<Item = Samples<'s>> + use<'s> {
    let values = observed.ends.first().map_or(0, Vec::len);
    let mut excess = vec![0.0_f64; samples.len()];
    for value in 0..values {
        let magnitudes = observed.magnitudes(value);
        let median = median(&magnitudes);
        if median > 0.0 {
            excess.iter_mut().zip(magnitudes).for_each(|(excess, size)| *excess = excess.max(size / median));
        }
    }
    let mut worst: Vec<usize> = (0..samples.len()).filter(|&number| excess[number] > RUNAWAY).collect();
    worst.sort_by(|a, b| excess[*b].total_cmp(&excess[*a]));
    worst.truncate(samples.len() / SAMPLES_FOR_ONE);
    let samples = samples.clone();
    (0..=worst.len()).map(move |count| {
        let kept = |(number, _): &&(usize, &'s [f32])| !worst[..count].contains(number);
        samples.iter().filter(kept).copied().collect()
    })
}

/// The upper median.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibrate::Range;

    fn observed(magnitudes: &[f64]) -> Observed {
        let ends = |high: &f64| vec![[0.0, 1.0], [-1.0, *high]];
        Observed { ends: magnitudes.iter().map(ends).collect(), scores: Vec::new(), made: Vec::new() }
    }

    #[test]
    fn only_runaways_are_set_aside_the_worst_first_and_few_of_them() {
        let mut magnitudes = vec![2.0; 250];
        magnitudes[17] = 1e9;
        magnitudes[3] = 100.0;
        magnitudes[200] = 15.0;
        let sample = [0.0_f32];
        let samples: Samples<'_> = (0..250).map(|number| (number, &sample[..])).collect();
        let kept: Vec<_> = set_aside(&observed(&magnitudes), &samples).collect();
        assert_eq!(kept.iter().map(Vec::len).collect::<Vec<_>>(), [250, 249, 248]);
        assert!(kept[1].iter().all(|(number, _)| *number != 17));
        assert!(kept[2].iter().all(|(number, _)| ![3, 17].contains(number)));
        assert_eq!(set_aside(&observed(&[2.0; 250]), &samples).count(), 1);
        assert_eq!(set_aside(&observed(&magnitudes[..99]), &samples[..99].to_vec()).count(), 1);
    }

    #[test]
    fn activation_bits_reach_what_most_samples_reach() {
        let mut magnitudes = vec![2.0; 9];
        magnitudes[4] = 1e6;
        let observed = observed(&magnitudes);
        let sample = [0.0_f32];
        let seen = observed.seen(&(0..9).map(|number| (number, &sample[..])).collect());
        assert_eq!(seen[1].range, Range { low: -1.0, high: 1e6 });
        assert_eq!(seen[1].typical, Range { low: -1.0, high: 8.0 });
        // Most samples are zero there: nothing is typical.
        assert!(typical(&[0.0, 0.0, 3.0]).is_infinite());
    }
}
