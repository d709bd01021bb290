//! Whether two kinds of secrets take different times.

use std::hint::black_box;
use std::time::Instant;

use lanner_primitives::{Prg, Seed};
use rand_core::Rng;

/// Of a hundred measurements, those that are kept in each test: interruptions only make a run longer.
const KEPT: [usize; 5] = [20, 50, 75, 90, 97];

/// Runs before the first one that counts.
const WARM_UP: usize = 200;

/// Draws secrets of either class by the same steps, times an operation on each, and tests whether the means differ.
///
/// A secret is so many words: zeros in one class, random ones in the other. Classes alternate at random, words of both are drawn into the same
/// memory, and `prepare` makes of them, outside the clock, what `run` takes. The result is the statistic of largest magnitude among tests
/// that keep the fastest part of all measurements: positive if random secrets take longer.
pub(crate) fn test<S, R>(
    words: usize,
    measurements: usize,
    prepare: impl Fn(&[u64]) -> S,
    run: impl Fn(&mut S) -> R,
) -> f64 {
    let mut rng = Prg::new(Seed::from_bytes([7; 16]));
    let mut secret = vec![0; words];
    let mut times = Vec::with_capacity(measurements);
    for round in 0..WARM_UP + measurements {
        let is_random = rng.next_u64() >> 63;
        secret.fill_with(|| rng.next_u64() & black_box(is_random).wrapping_neg());
        let mut prepared = prepare(black_box(&secret));
        let start = Instant::now();
        let result = run(black_box(&mut prepared));
        let time = start.elapsed().as_nanos() as f64;
        drop(black_box(result));
        if round >= WARM_UP {
            times.push((time, is_random == 1));
        }
    }
    times.sort_by(|a, b| a.0.total_cmp(&b.0));
    let tests = KEPT.map(|part| welch(cropped(&times, part)));
    tests.into_iter().fold(0.0, |worst: f64, t| if t.abs() > worst.abs() { t } else { worst })
}

/// The fastest part of sorted measurements, in hundredths, with all that are as fast as the last one.
fn cropped(times: &[(f64, bool)], part: usize) -> &[(f64, bool)] {
    let longest = times[(times.len() * part / 100).min(times.len() - 1)].0;
    &times[..times.partition_point(|(time, _)| *time <= longest)]
}

/// The statistic of [Wel47](https://doi.org/10.1093/biomet/34.1-2.28): positive if random secrets take longer.
fn welch(times: &[(f64, bool)]) -> f64 {
    let [fixed, random] = [false, true].map(|class| moments(times, class));
    let spread = (fixed.variance / fixed.count + random.variance / random.count).sqrt();
    if spread > 0.0 { (random.mean - fixed.mean) / spread } else { 0.0 }
}

struct Moments {
    count: f64,
    mean: f64,
    variance: f64,
}

fn moments(times: &[(f64, bool)], class: bool) -> Moments {
    let of_class = || times.iter().filter(|(_, of)| *of == class).map(|(time, _)| *time);
    let count = of_class().count() as f64;
    let mean = of_class().sum::<f64>() / count;
    let variance = of_class().map(|time| (time - mean).powi(2)).sum::<f64>() / (count - 1.0);
    Moments { count, mean, variance }
}
