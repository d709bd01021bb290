//! Which elements a weight multiplies, and what is sent for it.

use lanner_primitives::Share;
use lanner_step::{Convolution, ProtocolError, Result, Samples};
use lanner_wire::packed_len;
use zeroize::Zeroizing;

use crate::lanes::Values;

/// A layer of kernels of one tap in groups: block `g` is a matrix of some rows and columns of weights, and multiplies vectors, one for each pixel of each
/// sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Places {
    /// The blocks' number, rows and columns.
    blocks: [usize; 3],
    /// Pixels of a sample.
    pixels: usize,
    samples: Samples,
    /// Bits of the ring, and of a weight.
    bits: [u32; 2],
}

impl Places {
    /// The places of a layer over `Z_2^bits` whose weights have so many bits with their sign.
    ///
    /// # Errors
    /// [`ProtocolError::Parameters`] if the kernel has more than one tap, a stride or padding; unless a ring has 2 to 62 bits, and weights from 2 bits up to
    /// the ring's, 32 at most; or if there are `2^40` products or more.
    pub(super) fn new(shape: &Convolution, samples: Samples, [bits, weight_bits]: [u32; 2]) -> Result<Self> {
        let error = ProtocolError::Parameters("a layer of blocks");
        shape.output_image()?;
        if !is_block_diagonal(shape)
            || !(2..=62).contains(&bits)
            || !(2..=bits.min(32)).contains(&weight_bits)
        {
            return Err(error);
        }
        let (rows, columns) = (shape.group_outputs(), shape.group_inputs());
        let [height, width] = shape.image;
        let sides = [shape.groups, rows, columns, height, width, samples.count()];
        let products = sides.into_iter().try_fold(1_usize, usize::checked_mul);
        if !products.is_some_and(|products| products < 1 << 40) {
            return Err(error);
        }
        let blocks = [shape.groups, rows, columns];
        Ok(Self { blocks, pixels: height * width, samples, bits: [bits, weight_bits] })
    }

    /// Bits of the ring.
    pub(super) const fn bits(&self) -> u32 {
        self.bits[0]
    }

    /// Bits of a weight.
    pub(super) const fn weight_bits(&self) -> u32 {
        self.bits[1]
    }

    /// Weights.
    pub(super) const fn numbers(&self) -> usize {
        let [blocks, rows, columns] = self.blocks;
        blocks * rows * columns
    }

    /// Elements that a weight multiplies.
    pub(super) const fn width(&self) -> usize {
        self.samples.times(self.pixels)
    }

    /// Elements of the input.
    pub(super) const fn inputs(&self) -> usize {
        let [blocks, _, columns] = self.blocks;
        blocks * columns * self.width()
    }

    /// Elements of the output.
    pub(super) const fn outputs(&self) -> usize {
        let [blocks, rows, _] = self.blocks;
        blocks * rows * self.width()
    }

    /// Elements of the output of one sample.
    pub(super) const fn outputs_of_one(&self) -> usize {
        let [blocks, rows, _] = self.blocks;
        blocks * rows * self.pixels
    }

    /// Products of a weight and an element.
    pub(super) const fn products(&self) -> usize {
        self.numbers() * self.width()
    }

    /// Transfers, which the client sends: those of bit `i` of all weights come behind those of the bits below.
    pub(super) const fn transfers(&self) -> usize {
        self.numbers() * self.weight_bits() as usize
    }

    /// Weights whose corrections for one bit are packed together.
    pub(super) fn at_once(&self) -> usize {
        (AT_ONCE / self.width()).clamp(1, self.numbers())
    }

    /// Bytes of the corrections for bit `i` of all weights.
    pub(super) fn corrections_len(&self, i: u32) -> usize {
        let (numbers, at_once) = (self.numbers(), self.at_once());
        let len = |numbers: usize| packed_len(numbers * self.width(), self.bits() - i);
        let rest = if numbers.is_multiple_of(at_once) { 0 } else { len(numbers % at_once) };
        numbers / at_once * len(at_once) + rest
    }

    /// Bytes of what the server says of its weights.
    pub(super) const fn flips_len(&self) -> usize {
        packed_len(self.numbers(), self.weight_bits())
    }

    /// Bytes of all corrections.
    pub(super) fn message_len(&self) -> usize {
        (0..self.weight_bits()).map(|i| self.corrections_len(i)).sum()
    }

    /// A share of the input as rows, one for each input channel, of [`Self::width`] elements.
    pub(super) fn rows(&self, share: &Share) -> Values {
        let channels = self.inputs() / self.width();
        let mut rows = Zeroizing::new(vec![0; self.inputs()]);
        let of_sample = share.values().chunks_exact(channels * self.pixels);
        for (sample, values) in of_sample.enumerate() {
            for (channel, pixels) in values.chunks_exact(self.pixels).enumerate() {
                rows[channel * self.width() + sample * self.pixels..][..self.pixels].copy_from_slice(pixels);
            }
        }
        rows
    }

    /// The rows of output channels as the values of a share.
    pub(super) fn values(&self, rows: &Values) -> Values {
        let mut values = Zeroizing::new(vec![0; self.outputs()]);
        for (channel, row) in rows.chunks_exact(self.width()).enumerate() {
            for (sample, pixels) in row.chunks_exact(self.pixels).enumerate() {
                values[sample * self.outputs_of_one() + channel * self.pixels..][..self.pixels]
                    .copy_from_slice(pixels);
            }
        }
        values
    }

    /// The input channel that a weight multiplies, and the output channel that it adds to.
    pub(super) const fn channels(&self, number: usize) -> [usize; 2] {
        let [_, rows, columns] = self.blocks;
        let output = number / columns;
        [output / rows * columns + number % columns, output]
    }
}

/// Whether a layer is a block-diagonal matrix on each pixel.
pub(super) fn is_block_diagonal(shape: &Convolution) -> bool {
    shape.kernel == [1, 1] && shape.strides == [1, 1] && shape.pads == [0; 4]
}

/// Products whose corrections are packed together, about.
const AT_ONCE: usize = 1 << 12;
