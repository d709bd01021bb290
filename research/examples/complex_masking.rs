//! Why the transform is over `Z_p`: FALCON's masks under a complex transform are either wrong or seen through.
//!
//! `cargo run --release -p lanner-research --example complex_masking`. It fails unless what it says is so.
//!
//! The paper (Li et al. 2018, section 5.1) masks the integer parts of a complex spectrum `F(y)` by those of `F(r)`, modulo `p`; the shares are
//! `y - r` and `r`. A slot that wraps is off by `p`, and the inverse transform divides that by the number of pixels.
//!
//! 1. With `r` uniform mod `p` slots wrap, and hardly a pixel of the two shares adds up to `y`.
//! 2. With `r` so small that no slot wraps the pixels are right, but one slot, the sum of all pixels, tells a dark image from a bright one.
//! 3. With the transform over `Z_p` every pixel is right and every slot uniform.

use std::f64::consts::TAU;

use lanner_primitives::{Prg, Ring, Seed, Share};
use lanner_ring::{Dft2, Modulus};
use lanner_testkit::{chi_square_limit, uniform_chi_square};

/// The paper's plaintext modulus for networks; 16 divides one less.
const PAPERS_P: u64 = 1_316_638_721;
/// Height and width.
const SIDE: usize = 16;
const PIXELS: usize = SIDE * SIDE;
/// The largest value after a convolution of 5 x 5 weights and pixels of 8 bits.
const LARGEST: i64 = 25 * 127 * 255;
const RUNS: usize = 40;

type Complex = [f64; 2];

fn main() {
    let wrong = uniform_masks();
    println!("1. masks uniform mod p, complex transform: {:.2} % of pixels are wrong", wrong * 100.0);
    let (wrong, told) = small_masks();
    println!(
        "2. masks too small to wrap: {:.2} % are wrong; the image is told in {:.0} % of runs",
        wrong * 100.0,
        told * 100.0
    );
    let (wrong, statistic) = exact_masks();
    println!(
        "3. masks uniform mod p, transform over Z_p: {:.2} % are wrong; chi-square {statistic:.0} of 63 degrees",
        wrong * 100.0
    );
}

/// The share of wrong pixels with masks that hide.
fn uniform_masks() -> f64 {
    let ring = Ring::Prime(PAPERS_P);
    let mut rng = Prg::new(Seed::from_bytes([1; 16]));
    let mut wrong = 0;
    for run in 0..RUNS {
        let y = image(run);
        let mask = Share::random(ring, PIXELS, &mut rng);
        let r: Vec<i64> = mask.values().iter().map(|value| *value as i64).collect();
        wrong += y.iter().zip(reconstructed(&y, &r)).filter(|(y, got)| *y != got).count();
    }
    let share = wrong as f64 / (RUNS * PIXELS) as f64;
    assert!(share > 0.99, "the complex transform is exact after all");
    share
}

/// The share of wrong pixels with masks that do not wrap, and how often the sum of the pixels is seen through them.
fn small_masks() -> (f64, f64) {
    let mut rng = Prg::new(Seed::from_bytes([2; 16]));
    // |F(y - r)| <= pixels * (largest + bound) stays below p / 2.
    let bound = PAPERS_P / (2 * PIXELS as u64) - LARGEST as u64;
    let range = Modulus::new((1..=bound).rev().find(|n| lanner_ring::is_prime(*n)).unwrap_or(2));
    let Ok(range) = range else { return (1.0, 0.0) };
    let (mut wrong, mut told) = (0, 0);
    for run in 0..RUNS {
        let bright = run % 2 == 0;
        let y = vec![if bright { LARGEST } else { 0 }; PIXELS];
        let mut mask = vec![0; PIXELS];
        lanner_ring::sample::uniform_below(&range, &mut mask, &mut rng);
        let r: Vec<i64> = mask.iter().map(|value| *value as i64).collect();
        wrong += y.iter().zip(reconstructed(&y, &r)).filter(|(y, got)| *y != got).count();
        // All that the client looks at is the first slot.
        let sum = masked(&y, &r)[0][0];
        let middle = PIXELS as f64 * (LARGEST as f64 - range.value() as f64) / 2.0;
        told += usize::from((sum > middle) == bright);
    }
    let told = told as f64 / RUNS as f64;
    assert!(wrong == 0, "small masks do not wrap");
    assert!(told > 0.99, "small masks hide the image after all");
    (wrong as f64 / (RUNS * PIXELS) as f64, told)
}

/// The share of wrong pixels and the chi-square statistic of all masked slots, with the transform over `Z_p`.
fn exact_masks() -> (f64, f64) {
    let ring = Ring::Prime(PAPERS_P);
    let mut rng = Prg::new(Seed::from_bytes([3; 16]));
    let transform = Modulus::new(PAPERS_P).and_then(|modulus| Dft2::new(&modulus, [SIDE; 2]));
    let Ok(transform) = transform else { return (1.0, f64::INFINITY) };
    let (mut wrong, mut bins) = (0, [0; 64]);
    for run in 0..RUNS {
        let y = image(run);
        let mut slots: Vec<u64> = y.iter().map(|value| ring.embed(*value)).collect();
        let mask = Share::random(ring, PIXELS, &mut rng);
        transform.forward(&mut slots);
        for (slot, r) in slots.iter_mut().zip(mask.values()) {
            *slot = ring.sub(*slot, *r);
        }
        for slot in &slots {
            bins[(slot * 64 / PAPERS_P) as usize] += 1;
        }
        let mut server = mask.values().to_vec();
        transform.inverse(&mut slots);
        transform.inverse(&mut server);
        let sums = slots.iter().zip(&server).map(|(c, s)| ring.signed(ring.add(*c, *s)));
        wrong += y.iter().zip(sums).filter(|(y, got)| *y != got).count();
    }
    let statistic = uniform_chi_square(&bins);
    assert!(wrong == 0, "the transform over Z_p is not exact");
    assert!(statistic < chi_square_limit(63), "masked slots are not uniform");
    (wrong as f64 / (RUNS * PIXELS) as f64, statistic)
}

/// Any image.
fn image(run: usize) -> Vec<i64> {
    (0..PIXELS).map(|i| ((i * 7919 + run * 104_729) as i64 % (2 * LARGEST)) - LARGEST).collect()
}

/// The integer parts of `F(y) - F(r)` as residues nearest to zero: what the client decrypts.
fn masked(y: &[i64], r: &[i64]) -> Vec<Complex> {
    let values = |values: &[i64]| -> Vec<Complex> {
        transform(&values.iter().map(|value| [*value as f64, 0.0]).collect::<Vec<_>>(), 1.0)
    };
    let residue = |y: f64, r: f64| {
        let p = PAPERS_P as f64;
        let difference = y.round() - r.round();
        difference - p * (difference / p).round()
    };
    let pairs = values(y).into_iter().zip(values(r));
    pairs.map(|([y, yi], [r, ri])| [residue(y, r), residue(yi, ri)]).collect()
}

/// The sum of both shares: the client's, from what it decrypts, and the server's, which is the mask.
fn reconstructed(y: &[i64], r: &[i64]) -> Vec<i64> {
    let ring = Ring::Prime(PAPERS_P);
    let share = transform(&masked(y, r), -1.0).into_iter().map(|[real, _]| (real / PIXELS as f64).round());
    share.zip(r).map(|(c, s)| ring.signed(ring.add(ring.embed(c as i64), ring.embed(*s)))).collect()
}

/// The two-dimensional complex transform by definition, axis by axis, without a factor.
fn transform(values: &[Complex], sign: f64) -> Vec<Complex> {
    let turned = |values: Vec<Complex>| -> Vec<Complex> {
        (0..PIXELS).map(|i| values[i % SIDE * SIDE + i / SIDE]).collect()
    };
    let rows = |values: &[Complex]| values.chunks(SIDE).flat_map(|row| row_transform(row, sign)).collect();
    let once: Vec<Complex> = rows(values);
    turned(rows(&turned(once)))
}

fn row_transform(row: &[Complex], sign: f64) -> Vec<Complex> {
    let frequency = |k: usize| {
        let add = |[re, im]: Complex, (i, [a, b]): (usize, &Complex)| {
            let (sin, cos) = (sign * TAU * (i * k % row.len()) as f64 / row.len() as f64).sin_cos();
            [re + a * cos - b * sin, im + a * sin + b * cos]
        };
        row.iter().enumerate().fold([0.0; 2], add)
    };
    (0..row.len()).map(frequency).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_demonstration_holds() {
        super::main();
    }
}
