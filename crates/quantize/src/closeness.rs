//! How close a network's scores are to the float graph's on the calibration samples.

use lanner_network::{Precision, Reached, arg_max};

use super::beside::softmax;
use super::calibrate::Samples;
use super::precision::{Aim, Told};

/// The float scores that a network is measured by.
pub(super) struct Closeness<'a> {
    /// Of every sample, by number.
    scores: &'a [Vec<f32>],
    /// What errors are relative to where the scores of a sample, or of one of its places, belong together: of the sample's number all places.
    ranges: Vec<Vec<f64>>,
    /// The same for each score by itself.
    own: Vec<f64>,
    /// What scores may be off by since they are rounded as asked: that does not count.
    rounding: f64,
    /// Whether scores count comparisons, so that one of them more or less says nothing where the label is the same.
    are_votes: bool,
    aim: Aim,
}

/// What a network reaches on some samples.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) reached: Reached,
    /// The same without what was made, where something was.
    pub(super) on_samples: Option<Reached>,
    /// The samples' numbers, the largest error first.
    pub(super) worst: Vec<usize>,
}

impl<'a> Closeness<'a> {
    /// Errors are relative to the range of the sample's scores, or of the median sample's where that is larger: scores that nearly tie
    /// are not to be more precise than others. Of a map with a label at each place that goes for each place by itself.
    /// Scores that are told by themselves, and a single one, are relative to their own range over all samples; those of a map to that of all with the same unit, for a place that hardly varies is to be no more precise than others.
    /// Probabilities have one unit: a class that no sample has would ask for precision without end.
    ///
    /// `shape` is that of a sample's scores.
    pub(super) fn new(scores: &'a [Vec<f32>], shape: &[usize], samples: &Samples<'_>, aim: Aim) -> Self {
        let of_place = |scores: &[f32]| width(scores.iter().map(|score| f64::from(*score)));
        let of_sample = |scores: &Vec<f32>| at_places(scores, aim.told).map(of_place).collect::<Vec<f64>>();
        let ranges: Vec<Vec<f64>> = scores.iter().map(of_sample).collect();
        let median = |places: &mut dyn Iterator<Item = f64>| {
            let mut sorted: Vec<f64> = places.collect();
            sorted.sort_by(f64::total_cmp);
            sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
        };
        let seen = || samples.iter().map(|(number, _)| &ranges[*number]);
        let all = || samples.iter().flat_map(|(number, _)| &scores[*number]).map(|score| f64::from(*score));
        // Where all scores of most samples are equal, all that there is to compare with.
        let usual = first_above_zero([median(&mut seen().flatten().copied()), width(all()), largest(all())]);
        // A place has a size of its own, unless it is that of rounding beside the others.
        let of_place = |place: usize| median(&mut seen().map(|places| places[place])).max(usual * ROUNDING);
        let least: Vec<f64> = match aim.told {
            Told::OrderAt { places } => (0..places).map(of_place).collect(),
            _ => vec![usual],
        };
        let count = samples.first().map_or(0, |(number, _)| scores[*number].len());
        let mut own = vec![f64::INFINITY; count];
        let are_shares = are_probabilities(shape, &samples.iter().map(|(number, _)| &scores[*number]));
        if are_shares {
            own.fill(first_above_zero([width(all()), largest(all()), usual]));
        }
        let axes = if are_shares { Vec::new() } else { unit_axes(shape, count) };
        // Along a side of a matrix, too: a feature that is the same for all tokens differs by rounding alone.
        let floor = if axes.len() > 1 { usual * ROUNDING } else { 0.0 };
        for axis in axes {
            let ends = axis.ends(samples.iter().map(|(number, _)| &scores[*number]));
            for (index, own) in own.iter_mut().enumerate() {
                let [low, high] = ends[axis.place(index)];
                *own = own.min(first_above_zero([high - low, high.max(-low), usual]).max(floor));
            }
        }
        Self {
            scores,
            ranges: ranges
                .into_iter()
                .map(|places| {
                    places.into_iter().zip(&least).map(|(range, least)| range.max(*least)).collect()
                })
                .collect(),
            own,
            rounding: 0.0,
            are_votes: false,
            aim,
        }
    }

    /// The same where scores are rounded to a unit.
    pub(super) fn rounded_to(self, unit: Option<f64>) -> Self {
        Self { rounding: unit.map_or(0.0, |unit| unit / 2.0), ..self }
    }

    /// The same where scores may be votes: of these only labels count where nothing else is told.
    pub(super) fn of_votes(self, are_votes: bool) -> Self {
        let told = matches!(self.aim.told, Told::Order | Told::Probability);
        Self { are_votes: are_votes && told, ..self }
    }

    /// Measures integer scores, in units of `scale`, of samples in the same order.
    pub(super) fn measure(&self, samples: &Samples<'_>, integers: &[Vec<i128>], scale: f64) -> Measured {
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
            let (keeps, loses) = self.labels(*number, integers, tolerated);
            let error = if self.are_votes && !loses { 0.0 } else { self.error(*number, integers, scale) };
            reached.error = reached.error.max(error);
            reached.labels_kept += usize::from(keeps);
            reached.labels_lost += usize::from(loses);
            errors.push((error, *number));
        }
        errors.sort_by(|a, b| b.0.total_cmp(&a.0));
        Measured { reached, on_samples: None, worst: errors.into_iter().map(|(_, number)| number).collect() }
    }

    /// The mean square of the errors of float scores of samples in the same order, each relative to what errors are relative to.
    pub(super) fn mean_square(&self, samples: &Samples<'_>, found: &[Vec<f32>]) -> f64 {
        let of_sample = |((number, _), found): (&(usize, _), &Vec<f32>)| {
            let range = |index: usize| match self.aim.told {
                Told::Values | Told::Signs => self.own[index],
                _ => {
                    let ranges = &self.ranges[*number];
                    ranges[index * ranges.len() / self.scores[*number].len()]
                }
            };
            let errors = self.scores[*number].iter().zip(found).enumerate();
            let squares = errors.map(|(index, (score, found))| {
                let error = (f64::from(*found) - f64::from(*score)) / range(index);
                error * error
            });
            squares.sum::<f64>() / found.len() as f64
        };
        samples.iter().zip(found).map(of_sample).sum::<f64>() / samples.len() as f64
    }

    /// The largest error of a score, of what it is relative to. Where scores are compared only, the smallest that it can be after all are
    /// moved alike.
    fn error(&self, number: usize, integers: &[i128], scale: f64) -> f64 {
        let (scores, range) = (&self.scores[number], self.ranges[number][0]);
        let of = |(score, integer): (&f32, &i128)| *integer as f64 * scale - f64::from(*score);
        let errors = || scores.iter().zip(integers).map(of);
        let of_order = || width(errors()) / 2.0 / range;
        match self.aim.told {
            Told::Order if scores.len() > 1 => of_order(),
            Told::Probability if scores.len() > 1 => of_order().max(of_probability(scores, integers, scale)),
            Told::OrderAt { .. } => {
                let places = at_places(scores, self.aim.told).zip(at_places(integers, self.aim.told));
                let of_place =
                    |(scores, integers): (&[f32], &[i128])| width(scores.iter().zip(integers).map(of)) / 2.0;
                largest(places.map(of_place).zip(&self.ranges[number]).map(|(error, range)| error / range))
            }
            Told::Scores | Told::Order | Told::Probability => largest(errors()) / range,
            Told::Values | Told::Signs => {
                let beyond = |error: f64| (error.abs() - self.rounding).max(0.0);
                largest(errors().zip(&self.own).map(|(error, own)| beyond(error) / own))
            }
        }
    }

    /// Whether a sample keeps its label, or each of its labels, and whether it loses one though the float scores are clear.
    fn labels(&self, number: usize, integers: &[i128], tolerated: f64) -> (bool, bool) {
        let scores = &self.scores[number];
        match self.aim.told {
            Told::Values => (false, false),
            Told::Signs => {
                let mut changed = scores
                    .iter()
                    .zip(integers)
                    .zip(&self.own)
                    .filter(|((score, integer), _)| (**score > 0.0) != (**integer > 0));
                let keeps = changed.clone().next().is_none();
                (keeps, changed.any(|((score, _), own)| f64::from(score.abs()) / own > tolerated))
            }
            told => {
                let places = at_places(scores, told).zip(at_places(integers, told)).zip(&self.ranges[number]);
                let mut changed =
                    places.filter(|((scores, integers), _)| largest_score(scores) != arg_max(integers));
                let keeps = changed.clone().next().is_none();
                (keeps, changed.any(|((scores, _), range)| margin(scores) / range > tolerated))
            }
        }
    }
}

/// The scores of one place after another, or of all together where none is told by itself.
fn at_places<T>(scores: &[T], told: Told) -> std::slice::ChunksExact<'_, T> {
    scores.chunks_exact((scores.len() / told.places()).max(1))
}

/// What the probability of the label that integers give is off by.
fn of_probability(scores: &[f32], integers: &[i128], scale: f64) -> f64 {
    let label = arg_max(integers);
    let exact = softmax(scores.iter().map(|score| f64::from(*score)))[label];
    (softmax(integers.iter().map(|integer| *integer as f64 * scale))[label] - exact).abs()
}

/// An axis of a sample's scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Axis {
    side: usize,
    /// How far neighbours on it are apart.
    stride: usize,
}

impl Axis {
    /// Where on it a score is.
    const fn place(self, index: usize) -> usize {
        index / self.stride % self.side
    }

    /// The smallest and the largest score at each of its places.
    fn ends<'s>(self, samples: impl Iterator<Item = &'s Vec<f32>>) -> Vec<[f64; 2]> {
        let mut ends = vec![[f64::INFINITY, f64::NEG_INFINITY]; self.side];
        for (index, score) in samples.flat_map(|scores| scores.iter().enumerate()) {
            let ([low, high], score) = (&mut ends[self.place(index)], f64::from(*score));
            (*low, *high) = (low.min(score), high.max(score));
        }
        ends
    }
}

/// The axes at one place of which scores have one unit. That of a vector: each has its own. That of an image's channels. Of a matrix it may be
/// either, columns of a table or channels over time, and scores are relative to the smaller range.
fn unit_axes(shape: &[usize], count: usize) -> Vec<Axis> {
    let axes =
        (0..shape.len()).map(|axis| Axis { side: shape[axis], stride: shape[axis + 1..].iter().product() });
    let axes: Vec<Axis> = axes.filter(|axis| axis.side > 1).collect();
    match axes.len() {
        0 | 1 => vec![Axis { side: count.max(1), stride: 1 }],
        2 => axes,
        _ => axes[..1].to_vec(),
    }
}

/// Whether the scores of all samples are probabilities: none leaves 0 to 1, and along an axis they add up to 1, or they are an image of one channel.
fn are_probabilities<'s>(shape: &[usize], samples: &(impl Iterator<Item = &'s Vec<f32>> + Clone)) -> bool {
    let within = |score: &f32| (-SLACK..=1.0 + SLACK).contains(score);
    let along = |axis: usize| {
        let (side, stride) = (shape[axis], shape[axis + 1..].iter().product::<usize>());
        let lines = |scores: &'s Vec<f32>| {
            scores.chunks_exact(side * stride).flat_map(move |block| {
                (0..stride).map(move |first| block.iter().skip(first).step_by(stride).sum::<f32>())
            })
        };
        side > 1 && samples.clone().all(|scores| lines(scores).all(|sum| (sum - 1.0).abs() <= SLACK))
    };
    let is_image = shape.len() == 3 && shape[0] == 1 && shape[1..].iter().all(|side| *side > 1);
    samples.clone().flatten().all(within) && (is_image || (0..shape.len()).any(along))
}

/// What a place's scores are apart at least, of what the usual place's are.
const ROUNDING: f64 = 1.0 / 65536.0;

/// What sums of probabilities may be off by.
const SLACK: f32 = 1e-3;

/// The first that is above 0, else 1.
fn first_above_zero(candidates: [f64; 3]) -> f64 {
    candidates.into_iter().find(|range| *range > 0.0).unwrap_or(1.0)
}

fn largest(values: impl Iterator<Item = f64>) -> f64 {
    values.map(f64::abs).fold(0.0, f64::max)
}

/// The largest less the smallest; 0 for none.
fn width(values: impl Iterator<Item = f64>) -> f64 {
    let ends = values.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], x| [low.min(x), high.max(x)]);
    (ends[1] - ends[0]).max(0.0)
}

/// The index of the largest score, of equals the first.
pub(crate) fn largest_score(scores: &[f32]) -> usize {
    scores.iter().enumerate().fold(0, |best, (i, score)| if *score > scores[best] { i } else { best })
}

/// The largest score less the next.
fn margin(scores: &[f32]) -> f64 {
    let best = largest_score(scores);
    let others = scores.iter().enumerate().filter(|(i, _)| *i != best).map(|(_, score)| *score);
    let next = others.fold(f32::NEG_INFINITY, f32::max);
    scores.get(best).map_or(0.0, |best| f64::from(*best) - f64::from(next))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCORES: [[f32; 2]; 3] = [[0.0, 4.0], [8.0, 0.0], [1.0, 1.5]];

    fn measured(integers: [[i128; 2]; 3], error: f64, told: Told) -> Measured {
        let scores: Vec<Vec<f32>> = SCORES.iter().map(|scores| scores.to_vec()).collect();
        let aim = Aim { precision: Precision::Error(error), demanded: true, told };
        let sample = [0.0_f32];
        let samples: Samples<'_> = (0..3).map(|number| (number, &sample[..])).collect();
        let integers: Vec<Vec<i128>> = integers.iter().map(|integers| integers.to_vec()).collect();
        Closeness::new(&scores, &[2], &samples, aim).measure(&samples, &integers, 0.25)
    }

    #[test]
    fn errors_are_relative_to_the_samples_range_or_the_median_one() {
        // Off by 0.25 of 4, 0.25 of 8, and 0.5 of the median sample's 4.
        let measured = measured([[1, 16], [33, 0], [4, 8]], 0.1, Told::Scores);
        assert!((measured.reached.error - 0.5 / 4.0).abs() < 1e-12);
        assert_eq!((measured.reached.labels_kept, measured.reached.labels_lost), (3, 0));
        assert_eq!(measured.worst, [2, 0, 1]);
    }

    #[test]
    fn what_all_scores_share_counts_only_where_they_are_revealed() {
        let shifted = [[40, 56], [72, 40], [44, 46]];
        assert!(measured(shifted, 0.1, Told::Order).reached.error < 1e-12);
        assert!((measured(shifted, 0.1, Told::Scores).reached.error - 2.5).abs() < 1e-12);
    }

    #[test]
    fn a_probability_is_measured_where_one_is_told() {
        // Of 0.5 and 4 apart on the samples, a quarter more makes less of the one than of the other.
        let integers = [[0, 16], [32, 0], [4, 7]];
        let logistic = |x: f64| 1.0 / (1.0 + (-x).exp());
        let expected = logistic(0.75) - logistic(0.5);
        let of_order = measured(integers, 0.1, Told::Order).reached.error;
        assert!((of_order - 0.125 / 4.0).abs() < 1e-12);
        let told = measured(integers, 0.1, Told::Probability);
        assert!((told.reached.error - expected).abs() < 1e-6 && expected > of_order);
        assert_eq!(told.worst[0], 2);
    }

    #[test]
    fn a_label_may_change_only_where_scores_nearly_tie() {
        let swapped = [[0, 16], [32, 0], [7, 5]];
        assert_eq!(measured(swapped, 0.2, Told::Scores).reached.labels_lost, 0);
        let lost = measured(swapped, 0.1, Told::Scores);
        assert_eq!((lost.reached.labels_kept, lost.reached.labels_lost), (2, 1));
    }

    #[test]
    fn places_are_measured_each_against_its_own_range() {
        // Two places of two classes: the first is off by 0.25 of its 4, the second by what both scores share.
        let scores = vec![vec![0.0_f32, 4.0, 100.0, 8.0], vec![1.0, 5.0, 0.0, 4.0]];
        let told = Told::OrderAt { places: 2 };
        let aim = Aim { precision: Precision::Error(0.1), demanded: true, told };
        let sample = [0.0_f32];
        let samples: Samples<'_> = (0..2).map(|number| (number, &sample[..])).collect();
        let closeness = Closeness::new(&scores, &[2, 2], &samples, aim);
        let measured = |integers| closeness.measure(&samples, &[integers, vec![4, 20, 0, 16]], 0.25);
        let off = measured(vec![1, 16, 440, 72]);
        assert!((off.reached.error - 0.125 / 4.0).abs() < 1e-12, "{off:?}");
        assert_eq!((off.reached.labels_kept, off.reached.labels_lost), (2, 0));
        // One place's label is another one, and was clear; the other sample keeps both.
        let lost = measured(vec![17, 16, 400, 32]).reached;
        assert_eq!((lost.labels_kept, lost.labels_lost), (1, 1));
        // A range is never taken for smaller than the usual one, 4.
        let close = vec![vec![0.0_f32, 0.01, 100.0, 8.0], scores[1].clone()];
        let closeness = Closeness::new(&close, &[2, 2], &samples, aim);
        let swapped = closeness.measure(&samples, &[vec![1, 0, 400, 32], vec![4, 20, 0, 16]], 0.25).reached;
        assert_eq!((swapped.labels_kept, swapped.labels_lost), (1, 0));
    }

    #[test]
    fn scores_of_their_own_units_are_measured_each_by_itself() {
        // The second score's range is 4; the first's, off by 0.25 of its 8, is not what it is held against.
        let off = [[0, 16], [33, 0], [4, 8]];
        assert!((measured(off, 0.1, Told::Values).reached.error - 0.5 / 4.0).abs() < 1e-12);
        assert_eq!(measured(off, 0.1, Told::Values).reached.labels_kept, 0);
        // Of scores that are 0 in the second and third sample, one has another sign.
        let signs = measured([[0, 16], [32, 1], [4, 6]], 0.1, Told::Signs).reached;
        assert_eq!((signs.labels_kept, signs.labels_lost), (2, 0));
        let lost = measured([[0, -1], [32, 0], [4, 6]], 0.1, Told::Signs).reached;
        assert_eq!((lost.labels_kept, lost.labels_lost), (2, 1));
    }

    /// Two channels of two by two pixels, the second of a hundredth of the size, and a pixel of each that is always the same.
    #[test]
    fn a_maps_values_are_relative_to_all_of_their_channel() {
        let scores = vec![
            vec![0.0_f32, 100.0, 50.0, 10.0, 0.0, 1.0, 0.5, 0.1],
            vec![80.0, 0.0, 20.0, 10.0, 0.8, 0.0, 0.2, 0.1],
        ];
        let aim = Aim { precision: Precision::Error(0.1), told: Told::Values, ..Aim::default() };
        let sample = [0.0_f32];
        let samples: Samples<'_> = (0..2).map(|number| (number, &sample[..])).collect();
        let off = |index: usize, by: i128| {
            let mut integers: Vec<Vec<i128>> =
                scores.iter().map(|x| x.iter().map(|x| (x * 100.0).round() as i128).collect()).collect();
            integers[1][index] += by;
            let closeness = Closeness::new(&scores, &[2, 2, 2], &samples, aim);
            closeness.measure(&samples, &integers, 0.01).reached.error
        };
        // One of 100, at a pixel that varies and at one that does not; and a hundredth of 1.
        assert!((off(0, 100) - 0.01).abs() < 1e-6 && (off(3, 100) - 0.01).abs() < 1e-6);
        assert!((off(7, 1) - 0.01).abs() < 1e-6, "{}", off(7, 1));
    }

    #[test]
    fn probabilities_have_one_unit() {
        let of = |shape: &[usize], samples: &[Vec<f32>]| are_probabilities(shape, &samples.iter());
        let rare = [vec![0.75, 0.25, 0.0], vec![0.5, 0.5, 0.0]];
        assert!(of(&[3], &rare));
        assert!(!of(&[3], &[vec![0.75, 0.25, 0.1]]) && !of(&[3], &[vec![1.5, -0.5, 0.0]]));
        // Places by classes, and classes by pixels.
        assert!(of(&[2, 3], &[[rare[0].clone(), rare[1].clone()].concat()]));
        assert!(of(&[2, 1, 2], &[vec![0.25, 0.0, 0.75, 1.0]]));
        // A mask; a matrix of numbers between 0 and 1.
        let marks = [vec![0.0, 0.9, 0.1, 0.2]];
        assert!(of(&[1, 2, 2], &marks) && !of(&[2, 2], &marks));

        let aim = Aim { precision: Precision::Error(0.1), told: Told::Values, ..Aim::default() };
        let sample = [0.0_f32];
        let samples: Samples<'_> = (0..2).map(|number| (number, &sample[..])).collect();
        let closeness = Closeness::new(&rare, &[3], &samples, aim);
        let integers = vec![vec![300, 100, 3], vec![200, 200, 0]];
        let error = closeness.measure(&samples, &integers, 0.0025).reached.error;
        assert!((error - 0.01).abs() < 1e-6, "{error}");
    }

    #[test]
    fn a_matrix_may_have_units_along_either_side() {
        let axes = |shape: &[usize]| unit_axes(shape, shape.iter().product());
        let axis = |side, stride| Axis { side, stride };
        assert_eq!(axes(&[24, 3]), [axis(24, 3), axis(3, 1)]);
        assert_eq!(axes(&[1, 4, 8, 8]), [axis(4, 64)]);
        assert_eq!(axes(&[1, 8, 8]), [axis(8, 8), axis(8, 1)]);
        assert_eq!(
            [axes(&[5]), axes(&[1, 5, 1]), axes(&[])],
            [vec![axis(5, 1)], vec![axis(5, 1)], vec![axis(1, 1)]]
        );
    }

    #[test]
    fn a_column_that_is_constant_but_for_rounding_needs_no_precision_of_its_own() {
        let scores = vec![vec![1.0_f32, 3e-12, 2.0, 1e-12, 4.0, 2e-12]];
        let aim = Aim { precision: Precision::Error(0.1), told: Told::Values, ..Aim::default() };
        let sample = [0.0_f32];
        let samples: Samples<'_> = vec![(0, &sample[..])];
        let integers = vec![vec![100, 0, 200, 0, 400, 0]];
        let measured = Closeness::new(&scores, &[3, 2], &samples, aim).measure(&samples, &integers, 0.01);
        assert!(measured.reached.error < 1e-6, "{}", measured.reached.error);
        // One whose numbers are small, and still far apart, does.
        let small = vec![vec![1.0_f32, 3e-3, 2.0, 1e-3, 4.0, 2e-3]];
        let measured = Closeness::new(&small, &[3, 2], &samples, aim).measure(&samples, &integers, 0.01);
        assert!(measured.reached.error > 0.9);
    }

    #[test]
    fn a_single_score_is_relative_to_its_range_over_the_samples() {
        let scores = vec![vec![1.0_f32], vec![3.0], vec![2.0]];
        let aim = Aim { precision: Precision::Error(0.1), ..Aim::default() };
        let sample = [0.0_f32];
        let samples: Samples<'_> = (0..3).map(|number| (number, &sample[..])).collect();
        let integers = vec![vec![1], vec![3], vec![2]];
        let measured = Closeness::new(&scores, &[1], &samples, aim).measure(&samples, &integers, 1.1);
        assert!((measured.reached.error - 0.15).abs() < 1e-6);
    }
}
