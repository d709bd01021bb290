//! Inputs between the samples and beside them, for networks that tell probabilities.
//!
//! A probability near 0 or 1 hides what the scores behind it are off by, and so do samples of a classifier that knows them well. What is made
//! here lies where a probability changes: on the way from one sample to another of another class. Of vectors there are also rows whose elements are those of
//! different samples, and rows a half beyond these. Nothing secret is drawn from: the same graph and samples give the same inputs.

use super::features::draw;
use super::precision::Told;

/// The most borders, and the most rows of mixed elements, which are as many as those beyond them.
const MOST_BORDERS: usize = 32;
const MOST_MIXED: usize = 16;

/// How far beyond a row that is mixed another one lies, on the way from a sample.
const STRETCHED: f64 = 1.5;

/// The pairs that are looked at for each border, and the halvings of the way between two inputs.
const PAIRS: usize = 4;
const HALVINGS: usize = 24;

/// The probabilities that tell what a score is off by.
const TELLING: [f64; 2] = [0.25, 0.75];

/// How far from 1 probabilities that belong together may add up to, and how far beyond 0 and 1 one may be.
const ROUNDING: f64 = 1e-3;

/// An input, as it is given and as the graph takes it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Input {
    pub(super) given: Vec<f32>,
    pub(super) taken: Vec<f32>,
}

/// Where inputs are made.
pub(super) struct Beside<'b> {
    /// The samples, and their scores.
    pub(super) samples: Vec<(Input, &'b [f32])>,
    /// What an element that the graph takes may be.
    pub(super) ends: [f64; 2],
    /// Whether elements have nothing to do with where they are, as the columns of a table.
    pub(super) is_table: bool,
    pub(super) told: Told,
    /// The scores of what the graph takes; none where it makes nothing of it.
    pub(super) run: &'b dyn Fn(&[f32]) -> Option<Vec<f32>>,
}

/// Whether the scores of samples are probabilities, or are told as one.
pub(super) fn are_probabilities(told: Told, scores: &[Vec<f32>]) -> bool {
    let within = |score: &f32| (-ROUNDING..=1.0 + ROUNDING).contains(&f64::from(*score));
    match told {
        Told::Probability => true,
        Told::Values => !scores.is_empty() && scores.iter().flatten().all(within),
        Told::Scores | Told::Order | Told::OrderAt { .. } | Told::Signs => false,
    }
}

/// The probabilities of scores that a softmax is told of.
pub(super) fn softmax(scores: impl Iterator<Item = f64>) -> Vec<f64> {
    let scores: Vec<f64> = scores.collect();
    let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let powers: Vec<f64> = scores.iter().map(|score| (score - largest).exp()).collect();
    let sum: f64 = powers.iter().sum();
    powers.into_iter().map(|power| power / sum).collect()
}

impl Beside<'_> {
    /// As many inputs as `count` allows for, or fewer.
    pub(super) fn inputs(&self, count: usize) -> Vec<Input> {
        let mut next = {
            let mut drawn = 0;
            move |below: usize| {
                drawn += 1;
                ((draw(drawn) * below as f64) as usize).min(below.saturating_sub(1))
            }
        };
        let mut made = Vec::new();
        let mut pool: Vec<(Input, Vec<f32>)> =
            self.samples.iter().map(|(input, scores)| (input.clone(), scores.to_vec())).collect();
        if pool.len() < 2 {
            return made;
        }
        let mixed = if self.is_table { MOST_MIXED.min(count / 4) } else { 0 };
        for _ in 0..mixed {
            let from = &self.samples[next(self.samples.len())].0;
            let mut row = from.clone();
            for element in 0..row.taken.len() {
                let (other, _) = &self.samples[next(self.samples.len())];
                (row.given[element], row.taken[element]) = (other.given[element], other.taken[element]);
            }
            for input in [self.between(from, &row, STRETCHED), row] {
                if let Some(scores) = (self.run)(&input.taken) {
                    pool.push((input.clone(), scores));
                    made.push(input);
                }
            }
        }
        let borders = MOST_BORDERS.min(count.saturating_sub(made.len()));
        let mut found = 0;
        for pair in 0..PAIRS * borders {
            if found == borders {
                break;
            }
            let (a, b) = (&pool[next(pool.len())], &pool[next(pool.len())]);
            if let Some(border) = self.border(pair, a, b) {
                made.push(border);
                found += 1;
            }
        }
        made
    }

    /// What lies on the way from one input to another, or beyond; elements that may not be that are the first one's.
    fn between(&self, a: &Input, b: &Input, part: f64) -> Input {
        let on_way = |a: f32, b: f32| f64::from(a) + part * (f64::from(b) - f64::from(a));
        let mut made = a.clone();
        for element in 0..made.taken.len() {
            let taken = on_way(a.taken[element], b.taken[element]);
            if (self.ends[0]..=self.ends[1]).contains(&taken) {
                made.taken[element] = taken as f32;
                made.given[element] = on_way(a.given[element], b.given[element]) as f32;
            }
        }
        made
    }

    /// An input between two of different classes, where the first one's is neither likely nor unlikely.
    fn border(&self, pair: usize, a: &(Input, Vec<f32>), b: &(Input, Vec<f32>)) -> Option<Input> {
        let (class, together) = self.class(pair, &a.1)?;
        let is_of = |scores: &[f32]| {
            let told = self.probabilities(scores);
            let is_largest = told.iter().all(|p| *p <= told[class]);
            (if together { is_largest } else { told[class] > 0.5 }, told[class])
        };
        let first = is_of(&a.1).0;
        if first == is_of(&b.1).0 {
            return None;
        }
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(low, high);
            let input = self.between(&a.0, &b.0, middle);
            let (side, likely) = is_of(&(self.run)(&input.taken)?);
            if (TELLING[0]..=TELLING[1]).contains(&likely) {
                return Some(input);
            }
            if side == first { low = middle } else { high = middle }
        }
        None
    }

    /// The class whose probability is looked at, and whether it is one of several that add up to 1.
    fn class(&self, pair: usize, scores: &[f32]) -> Option<(usize, bool)> {
        let told = self.probabilities(scores);
        let together = told.len() > 1 && (told.iter().sum::<f64>() - 1.0).abs() <= ROUNDING;
        let largest = (0..told.len()).max_by(|a, b| told[*a].total_cmp(&told[*b]))?;
        Some((if together { largest } else { pair % told.len() }, together))
    }

    fn probabilities(&self, scores: &[f32]) -> Vec<f64> {
        let scores = scores.iter().map(|score| f64::from(*score));
        if self.told == Told::Probability { softmax(scores) } else { scores.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two classes on a line, far from one another, and of steep probabilities.
    fn made(told: Told, is_table: bool, samples: &[[f32; 2]]) -> (Vec<Input>, Vec<Vec<f32>>) {
        let run = move |x: &[f32]| {
            let logit = 40.0 * (x[0] - x[1]);
            let likely = 1.0 / (1.0 + (-logit).exp());
            Some(if told == Told::Probability { vec![0.0, logit] } else { vec![1.0 - likely, likely] })
        };
        let scores: Vec<Vec<f32>> = samples.iter().map(|sample| run(sample).unwrap()).collect();
        let input =
            |x: &[f32; 2]| Input { given: x.iter().map(|x| 2.0 * x + 1.0).collect(), taken: x.to_vec() };
        let samples = samples.iter().zip(&scores).map(|(x, scores)| (input(x), &scores[..])).collect();
        let beside = Beside { samples, ends: [-6.0, 6.0], is_table, told, run: &run };
        let inputs = beside.inputs(64);
        assert_eq!(inputs, beside.inputs(64));
        let scores = inputs.iter().map(|input| run(&input.taken).unwrap()).collect();
        (inputs, scores)
    }

    const SAMPLES: [[f32; 2]; 4] = [[3.0, -2.0], [2.5, -3.0], [-1.0, 2.0], [-3.0, 1.0]];

    #[test]
    fn borders_lie_where_a_probability_changes() {
        for told in [Told::Values, Told::Probability] {
            let (inputs, scores) = made(told, false, &SAMPLES);
            assert_eq!(inputs.len(), MOST_BORDERS);
            for scores in scores {
                let likely = match told {
                    Told::Probability => softmax(scores.iter().map(|x| f64::from(*x)))[1],
                    _ => f64::from(scores[1]),
                };
                assert!((0.25..=0.75).contains(&likely), "{likely}");
            }
        }
    }

    #[test]
    fn rows_of_a_table_are_mixed_and_stretched_within_the_ends() {
        let (inputs, _) = made(Told::Values, true, &SAMPLES);
        assert_eq!(inputs.len(), MOST_BORDERS + 2 * MOST_MIXED);
        for input in &inputs {
            for (given, taken) in input.given.iter().zip(&input.taken) {
                assert!((given - (2.0 * taken + 1.0)).abs() < 1e-5);
                assert!(taken.abs() <= 6.0);
            }
        }
        let rows = &inputs[..2 * MOST_MIXED];
        assert!(rows.iter().any(|row| row.taken.iter().any(|x| x.abs() > 3.0)));
        assert!(rows.iter().any(|row| SAMPLES.iter().all(|sample| row.taken != sample)));
    }

    #[test]
    fn without_a_second_class_or_sample_there_is_no_border() {
        assert!(made(Told::Values, false, &SAMPLES[..2]).0.is_empty());
        assert!(made(Told::Values, true, &SAMPLES[..1]).0.is_empty());
    }

    #[test]
    fn probabilities_are_numbers_from_0_to_1() {
        let scores = |last: f32| vec![vec![0.0, 1.0], vec![0.5, last]];
        assert!(are_probabilities(Told::Values, &scores(0.5)));
        assert!(!are_probabilities(Told::Values, &scores(1.5)));
        assert!(!are_probabilities(Told::Scores, &scores(0.5)));
        assert!(are_probabilities(Told::Probability, &scores(1.5)));
    }
}
