//! Inputs of the compiler's own making, where an owner states the range of inputs and gives samples that say little of it.
//!
//! Samples that lie close together show small sums, and bits and rings that are chosen on these alone are wrong for the rest of the range. What is
//! made here shows what the network does there: the range's ends, drawn values, and smooth patterns such as pictures have. Nothing secret is drawn
//! from: the same graph, samples and range give the same inputs.

use std::f64::consts::TAU;

use lanner_network::{Tensors, position};

use super::features::draw;
use super::options::ChoiceRows;

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

/// Samples with other choices: those that make the largest and the smallest sums with a weight come first, then all others as far as there are rows for them. What a table says of a
/// choice that no sample has may be far larger than what samples show.
pub(super) fn chosen(
    samples: &[&[f32]],
    choices: &[ChoiceRows],
    tensors: &Tensors,
    count: usize,
) -> Vec<Vec<f32>> {
    let mut made: Vec<Vec<f32>> = samples.iter().cycle().take(count).map(|sample| sample.to_vec()).collect();
    for &ChoiceRows { first, rows, choices } in choices {
        let mut order = telling(tensors, choices).into_iter().cycle();
        for input in &mut made {
            let Some(part) = input.get_mut(first..first + rows * choices) else { return Vec::new() };
            for (row, choice) in part.chunks_exact_mut(choices).zip(&mut order) {
                // What stands for a choice, in units of the input's.
                let one = row.iter().copied().fold(0.0, f32::max);
                row.fill(0.0);
                row[choice] = one;
            }
        }
    }
    made
}

/// All choices, those with the largest weights first.
fn telling(tensors: &Tensors, choices: usize) -> Vec<usize> {
    let mut largest = vec![0.0_f32; choices];
    for (_, tensor) in tensors.iter() {
        let shape = tensor.shape();
        // Of a layer's weights one axis is its input's elements.
        let Some(axis) = shape.iter().take(2).position(|side| *side == choices) else { continue };
        let inner: usize = shape[axis + 1..].iter().product();
        let mut extremes = vec![[(0.0_f32, 0); 2]; inner];
        let outer = choices * inner;
        for slab in tensor.data().chunks_exact(outer.max(1)) {
            extremes.fill([(0.0, 0); 2]);
            for (choice, row) in slab.chunks_exact(inner).enumerate() {
                for (ends, weight) in extremes.iter_mut().zip(row) {
                    let end = &mut ends[usize::from(*weight < 0.0)];
                    if weight.abs() > end.0 {
                        *end = (weight.abs(), choice);
                    }
                }
            }
            for (weight, choice) in extremes.iter().flatten() {
                largest[*choice] = largest[*choice].max(*weight);
            }
        }
    }
    let mut order: Vec<usize> = (0..choices).collect();
    order.sort_by(|a, b| largest[*b].total_cmp(&largest[*a]));
    order
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
#[allow(clippy::unwrap_used)]
mod tests {
    use lanner_network::Tensor;

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
    fn choices_with_the_largest_weights_are_made_first_and_every_row_has_one() {
        let mut tensors = Tensors::default();
        // Choice 3 has the largest weight, 1 the smallest; 0 and 2 are least.
        let weight = vec![0.1, 0.2, 0.1, 4.0, 0.1, -3.0, 0.0, 0.0];
        tensors.insert("w", Tensor::new(vec![2, 4, 1, 1], weight).unwrap()).unwrap();
        let sample = [0.5, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 7.0];
        let rows = [ChoiceRows { first: 1, rows: 2, choices: 4 }];
        let made = chosen(&[&sample], &rows, &tensors, 2);
        let places = |input: &[f32]| -> Vec<usize> {
            input[1..9].chunks(4).map(|row| row.iter().position(|x| *x > 0.0).unwrap()).collect()
        };
        assert_eq!(made.iter().map(|input| places(input)).collect::<Vec<_>>(), [vec![3, 1], vec![0, 2]]);
        let bits = |values: &[f32]| values.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        for input in &made {
            assert_eq!(bits(&[input[1..9].iter().sum(), input[0], input[9]]), bits(&[2.0, 0.5, 7.0]));
        }
        let beyond = [ChoiceRows { first: 9, rows: 2, choices: 4 }];
        assert!(chosen(&[&sample], &beyond, &tensors, 2).is_empty());
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
