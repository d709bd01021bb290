//! How close a network's scores are to the float graph's on the calibration samples.

use super::calibrate::Samples;
use super::precision::{Aim, Precision, Reached};
use crate::fixed::arg_max;

/// The float scores that a network is measured by.
pub(super) struct Closeness<'a> {
    /// Of every sample, by number.
    scores: &'a [Vec<f32>],
    /// What errors are relative to, by the sample's number.
    ranges: Vec<f64>,
    aim: Aim,
}

/// What a network reaches on some samples.
pub(super) struct Measured {
    pub(super) reached: Reached,
    /// The samples' numbers, the largest error first.
    pub(super) worst: Vec<usize>,
}

impl<'a> Closeness<'a> {
    /// Errors are relative to the range of the sample's scores, or of the median sample's where that is larger: scores that nearly tie
    /// are not to be more precise than others. A single score's range is the one over all samples.
    pub(super) fn new(scores: &'a [Vec<f32>], samples: &Samples<'_>, aim: Aim) -> Self {
        let of_sample = |scores: &Vec<f32>| width(scores.iter().map(|score| f64::from(*score)));
        let ranges: Vec<f64> = scores.iter().map(of_sample).collect();
        let mut sorted: Vec<f64> = samples.iter().map(|(number, _)| ranges[*number]).collect();
        sorted.sort_by(f64::total_cmp);
        let all = || samples.iter().flat_map(|(number, _)| &scores[*number]).map(|score| f64::from(*score));
        let median = sorted.get(sorted.len() / 2).copied().unwrap_or(0.0);
        let largest = || all().map(f64::abs).fold(0.0, f64::max);
        // Where all scores of most samples are equal, all that there is to compare with.
        let usual = [median, width(all()), largest(), 1.0].into_iter().find(|range| *range > 0.0);
        let usual = usual.unwrap_or(1.0);
        Self { scores, ranges: ranges.into_iter().map(|range| range.max(usual)).collect(), aim }
    }

    /// Measures integer scores, in units of `scale`, of samples in the same order.
    pub(super) fn measure(&self, samples: &Samples<'_>, integers: &[Vec<i64>], scale: f64) -> Measured {
        let tolerated = match self.aim.precision {
            Precision::Error(error) => error,
            Precision::Bits(_) => f64::INFINITY,
        };
        let mut reached = Reached {
            asked: self.aim.precision,
            error: 0.0,
            samples: samples.len(),
            labels_kept: 0,
            labels_lost: 0,
        };
        let mut errors = Vec::with_capacity(samples.len());
        for ((number, _), integers) in samples.iter().zip(integers) {
            let (scores, range) = (&self.scores[*number], self.ranges[*number]);
            let error = self.error(scores, integers, scale) / range;
            let keeps = label(scores) == arg_max(integers);
            let loses = !keeps && margin(scores) / range > tolerated;
            reached.error = reached.error.max(error);
            reached.labels_kept += usize::from(keeps);
            reached.labels_lost += usize::from(loses);
            errors.push((error, *number));
        }
        errors.sort_by(|a, b| b.0.total_cmp(&a.0));
        Measured { reached, worst: errors.into_iter().map(|(_, number)| number).collect() }
    }

    /// The largest error of a score. Where scores are compared only, the smallest that it can be after all are moved alike.
    fn error(&self, scores: &[f32], integers: &[i64], scale: f64) -> f64 {
        let errors =
            scores.iter().zip(integers).map(|(score, integer)| *integer as f64 * scale - f64::from(*score));
        if self.aim.compared && scores.len() > 1 {
            return width(errors) / 2.0;
        }
        errors.map(f64::abs).fold(0.0, f64::max)
    }
}

/// The largest less the smallest; 0 for none.
fn width(values: impl Iterator<Item = f64>) -> f64 {
    let ends = values.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], x| [low.min(x), high.max(x)]);
    (ends[1] - ends[0]).max(0.0)
}

fn label(scores: &[f32]) -> usize {
    scores.iter().enumerate().fold(0, |best, (i, score)| if *score > scores[best] { i } else { best })
}

/// The largest score less the next.
fn margin(scores: &[f32]) -> f64 {
    let best = label(scores);
    let others = scores.iter().enumerate().filter(|(i, _)| *i != best).map(|(_, score)| *score);
    let next = others.fold(f32::NEG_INFINITY, f32::max);
    scores.get(best).map_or(0.0, |best| f64::from(*best) - f64::from(next))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCORES: [[f32; 2]; 3] = [[0.0, 4.0], [8.0, 0.0], [1.0, 1.5]];

    fn measured(integers: [[i64; 2]; 3], error: f64, compared: bool) -> Measured {
        let scores: Vec<Vec<f32>> = SCORES.iter().map(|scores| scores.to_vec()).collect();
        let aim = Aim { precision: Precision::Error(error), demanded: true, compared };
        let sample = [0.0_f32];
        let samples: Samples<'_> = (0..3).map(|number| (number, &sample[..])).collect();
        let integers: Vec<Vec<i64>> = integers.iter().map(|integers| integers.to_vec()).collect();
        Closeness::new(&scores, &samples, aim).measure(&samples, &integers, 0.25)
    }

    #[test]
    fn errors_are_relative_to_the_samples_range_or_the_median_one() {
        // Off by 0.25 of 4, 0.25 of 8, and 0.5 of the median sample's 4.
        let measured = measured([[1, 16], [33, 0], [4, 8]], 0.1, false);
        assert!((measured.reached.error - 0.5 / 4.0).abs() < 1e-12);
        assert_eq!((measured.reached.labels_kept, measured.reached.labels_lost), (3, 0));
        assert_eq!(measured.worst, [2, 0, 1]);
    }

    #[test]
    fn what_all_scores_share_counts_only_where_they_are_revealed() {
        let shifted = [[40, 56], [72, 40], [44, 46]];
        assert!(measured(shifted, 0.1, true).reached.error < 1e-12);
        assert!((measured(shifted, 0.1, false).reached.error - 2.5).abs() < 1e-12);
    }

    #[test]
    fn a_label_may_change_only_where_scores_nearly_tie() {
        let swapped = [[0, 16], [32, 0], [7, 5]];
        assert_eq!(measured(swapped, 0.2, false).reached.labels_lost, 0);
        let lost = measured(swapped, 0.1, false);
        assert_eq!((lost.reached.labels_kept, lost.reached.labels_lost), (2, 1));
    }

    #[test]
    fn a_single_score_is_relative_to_its_range_over_the_samples() {
        let scores = vec![vec![1.0_f32], vec![3.0], vec![2.0]];
        let aim = Aim { precision: Precision::Error(0.1), ..Aim::default() };
        let sample = [0.0_f32];
        let samples: Samples<'_> = (0..3).map(|number| (number, &sample[..])).collect();
        let integers = vec![vec![1], vec![3], vec![2]];
        let measured = Closeness::new(&scores, &samples, aim).measure(&samples, &integers, 1.1);
        assert!((measured.reached.error - 0.15).abs() < 1e-6);
    }
}
