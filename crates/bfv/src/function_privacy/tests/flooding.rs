//! The distance that the proof of docs/protocols/flooding.md bounds, computed exactly for small widths.

use super::super::budget::DISTANCE;

/// The law of the sum of three uniform integers below `width`, from its least value on.
fn law(width: usize) -> Vec<f64> {
    let uniform = vec![1.0 / width as f64; width];
    let with_uniform = |p: &[f64]| {
        let mut sums = vec![0.0; p.len() + width - 1];
        for (i, x) in p.iter().enumerate() {
            for (j, y) in uniform.iter().enumerate() {
                sums[i + j] += x * y;
            }
        }
        sums
    };
    with_uniform(&with_uniform(&uniform))
}

/// The law and the same one shifted, over all values that either takes.
fn shifted(p: &[f64], shift: usize) -> (Vec<f64>, Vec<f64>) {
    let zeros = vec![0.0; shift];
    ([p, &zeros].concat(), [&zeros, p].concat())
}

fn distance(p: &[f64], q: &[f64]) -> f64 {
    p.iter().zip(q).map(|(p, q)| (p - q).abs()).sum::<f64>() / 2.0
}

/// Twice the squared Hellinger distance.
fn roots(p: &[f64], q: &[f64]) -> f64 {
    p.iter().zip(q).map(|(p, q)| (p.sqrt() - q.sqrt()).powi(2)).sum()
}

#[test]
fn the_distance_of_a_shift_is_within_its_bound() {
    for width in [512, 1024] {
        let p = law(width);
        let (from, to) = shifted(&p, 1);
        let steepness = roots(&from, &to).sqrt() * width as f64;
        assert!((DISTANCE - 0.01..DISTANCE).contains(&steepness), "{steepness}");
        for shift in [1, 2, 40, width / 2, width] {
            let (from, to) = shifted(&p, shift);
            assert!(distance(&from, &to) <= DISTANCE * shift as f64 / width as f64, "{width} {shift}");
        }
    }
}

#[test]
fn the_distance_of_two_coefficients_grows_with_the_norm() {
    let p = law(512);
    for [a, b] in [[1, 1], [30, 40], [7, 100]] {
        let ((p1, q1), (p2, q2)) = (shifted(&p, a), shifted(&p, b));
        let row = |(x, y): (&f64, &f64)| -> f64 {
            p2.iter().zip(&q2).map(|(p, q)| (x * p - y * q).abs()).sum::<f64>() / 2.0
        };
        let both: f64 = p1.iter().zip(&q1).map(row).sum();
        let norm = ((a * a + b * b) as f64).sqrt();
        assert!(both <= DISTANCE * norm / 512.0, "{a} {b}");
        assert!(both > 0.6 * norm / 512.0, "the bound is far off: {a} {b}");
    }
}

/// Uniform noise of the same reach does not keep the bound: it is the shape that matters.
#[test]
fn many_small_shifts_are_hidden_and_would_not_be_by_uniform_noise_of_the_same_reach() {
    let width = 1024;
    let (from, to) = shifted(&law(width), 1);
    let (flat, moved) = shifted(&vec![1.0 / (1.5 * 2.0 * width as f64); 3 * width], 1);
    // The least and the greatest distance that the Hellinger distance of a given number of coefficients allows.
    let limits = |p: &[f64], q: &[f64], coefficients: i32| {
        let squared = 1.0 - (1.0 - roots(p, q) / 2.0).powi(coefficients);
        [squared, (2.0 * squared).sqrt()]
    };
    assert!(limits(&from, &to, 4096)[1] <= DISTANCE * 64.0 / width as f64);
    assert!(limits(&flat, &moved, 4096)[0] > 0.7);
    // Beyond its bound, noise shows.
    assert!(limits(&from, &to, 1 << 22)[0] > 0.7);
}
