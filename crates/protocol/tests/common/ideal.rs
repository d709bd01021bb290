//! The ideal twins: what a trusted dealer who sees both shares would hand out.

use lanner_primitives::{Prg, Ring, Share};
use lanner_step::{Convolution, Function, Windows};

/// A fresh sharing of secrets: the client's share, the server's.
pub(crate) fn deal(ring: Ring, secrets: &[i64], rng: &mut Prg) -> (Share, Share) {
    let server = Share::random(ring, secrets.len(), rng);
    (super::split(ring, secrets, &server), server)
}

/// A linear layer with bias.
pub(crate) fn linear(
    shape: &Convolution,
    weights: &[i64],
    bias: &[i64],
    shares: (&Share, &Share),
    rng: &mut Prg,
) -> (Share, Share) {
    let ring = shares.0.ring();
    let outputs = reduced_convolution(shape, weights, bias, ring, &shares.0.reveal(shares.1).unwrap());
    deal(ring, &outputs, rng)
}

/// The layer on secrets, reduced at every step: its integers may be larger than a word.
pub(crate) fn reduced_convolution(
    shape: &Convolution,
    weights: &[i64],
    bias: &[i64],
    ring: Ring,
    input: &[i64],
) -> Vec<i64> {
    // Weights one at a time keep the products small.
    let mut sums: Vec<u64> = bias.iter().map(|b| ring.embed(*b)).collect();
    let chunk = 1 << 12;
    let (low, high): (Vec<i64>, Vec<i64>) =
        input.iter().map(|x| (x.rem_euclid(chunk), x.div_euclid(chunk))).unzip();
    for (part, scale) in [(low, 1), (high, chunk)] {
        let products = shape.apply(weights, &part).unwrap();
        for (sum, product) in sums.iter_mut().zip(products) {
            let reduced = i128::from(ring.signed(ring.embed(product))) * i128::from(scale);
            let modulus = i128::from(ring.neg(1)) + 1;
            *sum = ring.add(*sum, reduced.rem_euclid(modulus) as u64);
        }
    }
    sums.into_iter().map(|sum| ring.signed(sum)).collect()
}

/// An activation layer.
pub(crate) fn activation(
    function: Function,
    windows: &Windows,
    to: Ring,
    shares: (&Share, &Share),
    rng: &mut Prg,
) -> (Share, Share) {
    let values = shares.0.reveal(shares.1).unwrap();
    let outputs: Vec<i64> = windows
        .groups()
        .unwrap()
        .iter()
        .map(|group| apply(function, group.iter().map(|i| values[*i]).max().unwrap()))
        .collect();
    deal(to, &outputs, rng)
}

/// The function of one maximum.
pub(crate) fn apply(function: Function, x: i64) -> i64 {
    let x = if function.relu { x.max(0) } else { x };
    let x = match function.slope {
        Some(slope) if x < 0 => ((i128::from(x) * i128::from(slope.numerator)) >> slope.shift) as i64,
        _ => x,
    };
    let x = if function.shift == 0 { x } else { (x + (1 << (function.shift - 1))) >> function.shift };
    function.high.map_or(x, |high| x.min(high))
}

/// An arg-max, ties to the lowest index.
pub(crate) fn argmax(shares: (&Share, &Share)) -> usize {
    let values = shares.0.reveal(shares.1).unwrap();
    let largest = values.iter().max().unwrap();
    values.iter().position(|value| value == largest).unwrap()
}

/// Which values are above zero.
pub(crate) fn positive(shares: (&Share, &Share)) -> Vec<usize> {
    let values = shares.0.reveal(shares.1).unwrap();
    (0..values.len()).filter(|i| values[*i] > 0).collect()
}

/// A fresh sharing.
pub(crate) fn reshare(shares: (&Share, &Share), rng: &mut Prg) -> (Share, Share) {
    deal(shares.0.ring(), &shares.0.reveal(shares.1).unwrap(), rng)
}

/// The label and its softmax probability, in floating point, of scores in units of `scale`.
pub(crate) fn softmax(shares: (&Share, &Share), scale: f64) -> (usize, f64) {
    let label = argmax(shares);
    let values = shares.0.reveal(shares.1).unwrap();
    let terms = values.iter().map(|x| (scale * (x - values[label]) as f64).exp());
    (label, 1.0 / terms.sum::<f64>())
}

/// The indices of the largest scores in order, ties to the lowest.
pub(crate) fn top(shares: (&Share, &Share), best: usize) -> Vec<usize> {
    let values = shares.0.reveal(shares.1).unwrap();
    let mut order: Vec<_> = (0..values.len()).collect();
    order.sort_by_key(|i| (std::cmp::Reverse(values[*i]), *i));
    order.truncate(best);
    order
}
