//! What a linear layer has besides its shape.

use std::sync::Arc;

use zeroize::{Zeroize, ZeroizeOnDrop};

/// A linear layer's integers. Clones share them, and the last one erases them when it is dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinearWeights(Arc<Integers>);

#[derive(Debug, PartialEq, Eq)]
struct Integers {
    channels: usize,
    weight: Vec<i64>,
    bias: Vec<i128>,
    /// Of each output channel's weights, the sum of those above 0 and the sum of those below.
    sums: Vec<[i128; 2]>,
    /// The smallest and the largest weight, and 0.
    ends: [i64; 2],
}

impl ZeroizeOnDrop for LinearWeights {}

impl Drop for Integers {
    fn drop(&mut self) {
        self.weight.zeroize();
        self.bias.zeroize();
        self.sums.zeroize();
        self.ends.zeroize();
    }
}

impl LinearWeights {
    /// Weights and biases for a given number of output channels; a [`Network`](super::Network) checks them against its node.
    pub fn new(channels: usize, weight: Vec<i64>, bias: Vec<i128>) -> Self {
        let sums = weight.chunks_exact(per_channel(&weight, channels)).map(signed_sums).collect();
        let ends = weight.iter().fold([0; 2], |[low, high], &w| [w.min(low), w.max(high)]);
        Self(Arc::new(Integers { channels, weight, bias, sums, ends }))
    }

    /// What is added to each element of a value, and nothing else.
    #[must_use]
    pub fn bias_alone(bias: Vec<i128>) -> Self {
        let sums = vec![[1, 0]; bias.len()];
        Self(Arc::new(Integers { channels: bias.len(), weight: Vec::new(), bias, sums, ends: [0; 2] }))
    }

    /// Output channels.
    #[must_use]
    pub fn channels(&self) -> usize {
        self.0.channels
    }

    /// Row-major: `Conv2d` [out, in / groups, kernel height, kernel width], `Linear` [outputs, inputs]. Each fits `i32`.
    #[must_use]
    pub fn weight(&self) -> &[i64] {
        &self.0.weight
    }

    /// The smallest and the largest weight, and 0 if that is smaller or larger.
    #[must_use]
    pub fn weight_ends(&self) -> [i64; 2] {
        self.0.ends
    }

    /// The largest absolute weight.
    #[must_use]
    pub fn largest_weight(&self) -> u64 {
        let [low, high] = self.0.ends;
        low.unsigned_abs().max(high.unsigned_abs())
    }

    /// At the accumulator's scale, signed: one per output channel, or one per output element.
    #[must_use]
    pub fn bias(&self) -> &[i128] {
        &self.0.bias
    }

    /// The smallest and the largest bias.
    #[must_use]
    pub fn bias_ends(&self) -> [i128; 2] {
        [self.bias().iter().min(), self.bias().iter().max()].map(|end| end.copied().unwrap_or_default())
    }

    /// The bias of every output element, row-major, for a layer with `outputs` output elements.
    #[must_use]
    pub fn bias_of(&self, outputs: usize) -> Vec<i128> {
        crate::shape::per_channel_or_whole(self.bias(), &[outputs])
    }

    /// Each output channel's (or row's) weights.
    pub fn rows(&self) -> impl Iterator<Item = &[i64]> {
        self.weight().chunks_exact(per_channel(self.weight(), self.channels()))
    }

    /// Of each output channel, the sum of the weights above 0 and of those below, and its biases.
    pub fn sums(&self) -> impl Iterator<Item = ([i128; 2], &[i128])> {
        let biases = self.bias().chunks_exact(per_channel(self.bias(), self.channels()));
        self.0.sums.iter().copied().zip(biases)
    }
}

fn per_channel<T>(values: &[T], channels: usize) -> usize {
    (values.len() / channels.max(1)).max(1)
}

/// The sums of the values above 0 and of those below. Large networks have millions of weights, which is why small ones are added in 64 bits.
fn signed_sums(values: &[i64]) -> [i128; 2] {
    let (mut positive, mut negative) = (0, 0);
    for some in values.chunks(1 << 16) {
        let bits = some.iter().fold(0, |bits, &w| bits | (w ^ (w >> 63)));
        if bits >> 46 == 0 {
            positive += i128::from(some.iter().map(|&w| w.max(0)).sum::<i64>());
            negative += i128::from(some.iter().map(|&w| w.min(0)).sum::<i64>());
        } else {
            positive += some.iter().map(|&w| i128::from(w.max(0))).sum::<i128>();
            negative += some.iter().map(|&w| i128::from(w.min(0))).sum::<i128>();
        }
    }
    [positive, negative]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_weight_is_that_of_either_sign() {
        for (weight, ends, largest) in [
            (vec![], [0, 0], 0),
            (vec![3, 7], [0, 7], 7),
            (vec![-9, 7, 0], [-9, 7], 9),
            (vec![i64::MIN, 1], [i64::MIN, 1], 1 << 63),
        ] {
            let layer = LinearWeights::new(1, weight, vec![0]);
            assert_eq!((layer.weight_ends(), layer.largest_weight()), (ends, largest));
        }
    }
}
