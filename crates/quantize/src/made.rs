//! Inputs of the compiler's own making, where an owner states the range of inputs and gives samples that say little of it.
//!
//! Samples that lie close together show small sums, and bits and rings that are chosen on these alone are wrong for the rest of the range. What is
//! made here shows what the network does there: the range's ends, drawn values, and smooth patterns such as pictures have. Nothing secret is drawn
//! from: the same graph, samples and range give the same inputs.

use std::f64::consts::TAU;

use lanner_network::position;

use super::features::draw;

/// Of less than this share of the range that samples cover, inputs are made: with twice what they show, far from all of it is accounted for.
const SPARSE: f64 = 0.25;

/// The most inputs that are made, and the most that are where a sample takes many products.
pub(super) const MOST: usize = 16;
pub(super) const FEW: usize = 4;

/// The most periods of a smooth pattern along an axis.
const PERIODS: f64 = 2.0;

/// The share of the range that samples cover: from an element's smallest value to its largest, averaged over the elements of a sample.
pub(super) fn covered(samples: &[&[f32]], [low, high]: [f64; 2]) -> f64 {
    let elements = samples.first().map_or(0, |sample| sample.len());
    let mut ends = vec![[f32::INFINITY, f32::NEG_INFINITY]; elements];
    for sample in samples {
        for ([low, high], x) in ends.iter_mut().zip(*sample) {
            (*low, *high) = (low.min(*x), high.max(*x));
        }
    }
    let widths = ends.iter().map(|[low, high]| (f64::from(*high) - f64::from(*low)).max(0.0));
    widths.sum::<f64>() / elements.max(1) as f64 / (high - low)
}

/// Whether samples say so little of the range that inputs are made.
pub(super) fn is_sparse(covered: f64) -> bool {
    covered < SPARSE
}

/// Inputs in the range, the most telling first: its ends, corners, drawn values, and patterns.
pub(super) fn inputs(shape: &[usize], range: [f64; 2], count: usize) -> Vec<Vec<f32>> {
    let [low, high] = range;
    let mut made: Vec<Vec<f32>> = Vec::with_capacity(count);
    let elements: usize = shape.iter().product();
    let mut drawn = 0;
    for number in 0.. {
        if made.len() >= count || number >= 2 * MOST {
            break;
        }
        let of_each = |value: &mut dyn FnMut(usize) -> f64| -> Vec<f32> {
            (0..elements).map(|index| value(index).clamp(low, high) as f32).collect()
        };
        let mut next = || {
            drawn += 1;
            draw(drawn)
        };
        let input = match (number, number % 3) {
            (0, _) => of_each(&mut |_| high),
            (1, _) => of_each(&mut |_| low),
            (2, _) => of_each(&mut |_| 0.0),
            (_, 0) => of_each(&mut |_| if next() < 0.5 { low } else { high }),
            (_, 1) => of_each(&mut |_| low + (high - low) * next()),
            _ => {
                let pattern = Pattern::new(shape, &mut next);
                of_each(&mut |index| low + (high - low) * (0.5 + 0.5 * pattern.at(index)))
            }
        };
        if !made.contains(&input) {
            made.push(input);
        }
    }
    made
}

/// A product of waves along the axes.
struct Pattern<'s> {
    shape: &'s [usize],
    /// Periods over the whole axis, and the phase.
    waves: Vec<[f64; 2]>,
}

impl<'s> Pattern<'s> {
    fn new(shape: &'s [usize], next: &mut dyn FnMut() -> f64) -> Self {
        Self { shape, waves: shape.iter().map(|_| [PERIODS * next(), next()]).collect() }
    }

    /// Between -1 and 1.
    fn at(&self, index: usize) -> f64 {
        let of_axis = |(axis, [periods, phase]): (usize, &[f64; 2])| {
            let place = position(self.shape, axis, index) as f64 / self.shape[axis] as f64;
            (TAU * (periods * place + phase)).cos()
        };
        self.waves.iter().enumerate().map(of_axis).product()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_covered_is_an_average_over_elements() {
        // The first element has all of its range, the second a half, the third one value.
        let samples: [&[f32]; 3] = [&[-1.0, 0.0, 2.0], &[3.0, 2.0, 2.0], &[0.0, 1.0, 2.0]];
        assert!((covered(&samples, [-1.0, 3.0]) - 0.5).abs() < 1e-12);
        assert!(covered(&samples[..1], [-1.0, 3.0]).abs() < 1e-12);
        assert!(is_sparse(0.2) && !is_sparse(0.3));
    }

    #[test]
    fn inputs_are_different_within_the_range_and_the_same_again() {
        for (shape, range) in [(&[5][..], [-2.0, 0.7]), (&[2, 6, 6], [0.0, 1.0]), (&[1], [-1.0, 0.0])] {
            let made = inputs(shape, range, MOST);
            assert_eq!(made, inputs(shape, range, MOST));
            assert_eq!(made[..FEW.min(3)], inputs(shape, range, 3)[..]);
            for (number, input) in made.iter().enumerate() {
                assert_eq!(input.len(), shape.iter().product::<usize>());
                assert!(input.iter().all(|x| (range[0] as f32..=range[1] as f32).contains(x)));
                assert!(!made[..number].contains(input));
            }
            // Both ends and 0, one of which may be an end.
            let uniform = |end: f64| made.contains(&vec![end as f32; shape.iter().product()]);
            assert!(uniform(range[0]) && uniform(range[1]) && uniform(0.0));
        }
    }

    #[test]
    fn patterns_are_smooth() {
        let made = inputs(&[1, 16, 16], [0.0, 1.0], MOST);
        let step = |input: &Vec<f32>| {
            let rows =
                input.chunks_exact(16).flat_map(|row| row.windows(2).map(|pair| (pair[0] - pair[1]).abs()));
            rows.fold(0.0, f32::max)
        };
        let smooth = made.iter().filter(|input| (1e-3..0.5).contains(&step(input))).count();
        assert!(smooth >= 3, "{smooth}");
    }
}
