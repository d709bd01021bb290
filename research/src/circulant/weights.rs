//! Weights that are circulant in blocks (section 2.4), found in dense integers.

use lanner_ring::Dft;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use lanner_step::Convolution;
use lanner_step::ProtocolError;

/// Weights whose outputs and inputs, channels of a convolution, are cut into blocks of `k`, such that at each place of the kernel, in each block, the weight
/// of output `a` and input `b` depends on `(a - b) mod k` alone.
///
/// Where `k` does not divide a side the last blocks reach beyond it.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct BlockCirculant {
    block: usize,
    /// Blocks of outputs and of inputs.
    blocks: [usize; 2],
    /// Places of the kernel.
    taps: usize,
    /// By difference, output block, input block, tap.
    free: Vec<i64>,
}

impl BlockCirculant {
    /// Weights in the order of [`Convolution`], with blocks of `block`.
    ///
    /// # Errors
    /// [`ProtocolError::Parameters`] unless they are circulant in such blocks, to the last bit; if `block` is zero, there are groups, or the number of weights is
    /// another.
    pub fn of(shape: &Convolution, weights: &[i64], block: usize) -> Result<Self, ProtocolError> {
        shape.output_image()?;
        ProtocolError::refuse_if(
            block == 0 || shape.groups != 1 || weights.len() != shape.weights(),
            "weights of circulant blocks",
        )?;
        let blocks = [shape.out_channels, shape.in_channels].map(|channels| channels.div_ceil(block));
        let taps = shape.kernel[0] * shape.kernel[1];
        let mut circulant = Self { block, blocks, taps, free: vec![0; block * blocks[0] * blocks[1] * taps] };
        let mut seen = vec![false; circulant.free.len()];
        for (place, weight) in weights.iter().enumerate() {
            let (output, input) = (place / taps / shape.in_channels, place / taps % shape.in_channels);
            let difference = (output % block + block - input % block) % block;
            let free = circulant.index(difference, [output / block, input / block], place % taps);
            ProtocolError::refuse_if(
                std::mem::replace(&mut seen[free], true) && circulant.free[free] != *weight,
                "weights that are not circulant in blocks",
            )?;
            circulant.free[free] = *weight;
        }
        Ok(circulant)
    }

    /// The same with the largest blocks there are, of a power of two.
    ///
    /// # Errors
    /// As [`Self::of`], if weights are not circulant in blocks of two or more.
    pub fn largest(shape: &Convolution, weights: &[i64]) -> Result<Self, ProtocolError> {
        let most = shape.out_channels.min(shape.in_channels).max(1).ilog2();
        let found = (1..=most).rev().find_map(|bits| Self::of(shape, weights, 1 << bits).ok());
        found.ok_or(ProtocolError::Parameters("weights that are not circulant in blocks"))
    }

    /// `k`.
    #[must_use]
    pub fn block(&self) -> usize {
        self.block
    }

    /// Blocks of outputs and of inputs.
    #[must_use]
    pub fn blocks(&self) -> [usize; 2] {
        self.blocks
    }

    /// Places of the kernel.
    #[must_use]
    pub fn taps(&self) -> usize {
        self.taps
    }

    /// The transforms of all blocks' first columns, with the root of `transform`.
    ///
    /// # Errors
    /// [`ProtocolError::Parameters`] unless the transform has the size of a block.
    pub fn spectrum(&self, transform: &Dft) -> Result<Spectrum<'_>, ProtocolError> {
        ProtocolError::refuse_if(transform.size() != self.block, "a transform and circulant blocks")?;
        let modulus = transform.modulus();
        let mut values: Zeroizing<Vec<u64>> =
            Zeroizing::new(self.free.iter().map(|weight| modulus.reduce_signed(*weight)).collect());
        transform.forward(&mut values);
        Ok(Spectrum { weights: self, values })
    }

    fn index(&self, first: usize, [output, input]: [usize; 2], tap: usize) -> usize {
        ((first * self.blocks[0] + output) * self.blocks[1] + input) * self.taps + tap
    }
}

/// Transformed blocks.
pub struct Spectrum<'w> {
    weights: &'w BlockCirculant,
    values: Zeroizing<Vec<u64>>,
}

impl Spectrum<'_> {
    /// What multiplies value `frequency` of an input block's transform, for an output block; `blocks` is output and input.
    pub(super) fn at(&self, frequency: usize, blocks: [usize; 2], tap: usize) -> u64 {
        self.values[self.weights.index(frequency, blocks, tap)]
    }
}
