//! The public shape of a linear layer.

use serde::{Deserialize, Serialize};

use crate::ProtocolError;

/// A two-dimensional convolution over `in_channels x height x width`; a fully connected layer is the case of one pixel.
///
/// Weights are `[out_channels][in_channels][kernel[0]][kernel[1]]`, row-major.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Convolution {
    /// Input channels (features, for a fully connected layer).
    pub in_channels: usize,
    /// Output channels (features, for a fully connected layer).
    pub out_channels: usize,
    /// Input height and width.
    pub image: [usize; 2],
    /// Kernel height and width.
    pub kernel: [usize; 2],
    /// Vertical and horizontal stride.
    pub strides: [usize; 2],
    /// Zero padding: top, left, bottom, right.
    pub pads: [usize; 4],
}

impl Convolution {
    /// A fully connected layer: weights are `[outputs][inputs]`.
    #[must_use]
    pub fn fully_connected(inputs: usize, outputs: usize) -> Self {
        Self {
            in_channels: inputs,
            out_channels: outputs,
            image: [1, 1],
            kernel: [1, 1],
            strides: [1, 1],
            pads: [0; 4],
        }
    }

    /// Height and width of the output.
    ///
    /// # Errors
    /// [`ProtocolError::Shape`] if a dimension is zero or the kernel exceeds the padded image.
    pub fn output_image(&self) -> Result<[usize; 2], ProtocolError> {
        let mut output = [0; 2];
        for (axis, size) in output.iter_mut().enumerate() {
            let padded = self.image[axis] + self.pads[axis] + self.pads[axis + 2];
            let fits = (1..=padded).contains(&self.kernel[axis]);
            if !fits || self.strides[axis] == 0 || self.image[axis] == 0 {
                return Err(ProtocolError::Shape { what: "convolution" });
            }
            *size = (padded - self.kernel[axis]) / self.strides[axis] + 1;
        }
        if self.in_channels == 0 || self.out_channels == 0 {
            return Err(ProtocolError::Shape { what: "convolution" });
        }
        Ok(output)
    }

    /// Number of input elements.
    #[must_use]
    pub fn inputs(&self) -> usize {
        self.in_channels * self.image[0] * self.image[1]
    }

    /// Number of output elements.
    ///
    /// # Errors
    /// As [`Self::output_image`].
    pub fn outputs(&self) -> Result<usize, ProtocolError> {
        let [height, width] = self.output_image()?;
        Ok(self.out_channels * height * width)
    }

    /// Number of weights.
    #[must_use]
    pub fn weights(&self) -> usize {
        self.out_channels * self.in_channels * self.kernel[0] * self.kernel[1]
    }

    /// The convolution itself, in the clear and without reduction: the twin of every private kernel.
    ///
    /// # Errors
    /// [`ProtocolError::Shape`] if the lengths do not fit the shape.
    pub fn apply(&self, weights: &[i64], input: &[i64]) -> Result<Vec<i64>, ProtocolError> {
        if weights.len() != self.weights() || input.len() != self.inputs() {
            return Err(ProtocolError::Shape { what: "convolution operands" });
        }
        let [height, width] = self.output_image()?;
        let mut output = Vec::with_capacity(self.out_channels * height * width);
        for channel in 0..self.out_channels {
            for y in 0..height {
                output.extend((0..width).map(|x| self.at(weights, input, channel, [y, x])));
            }
        }
        Ok(output)
    }

    fn at(&self, weights: &[i64], input: &[i64], out_channel: usize, output: [usize; 2]) -> i64 {
        let [kernel_height, kernel_width] = self.kernel;
        let mut sum = 0;
        for in_channel in 0..self.in_channels {
            for (dy, dx) in (0..kernel_height).flat_map(|dy| (0..kernel_width).map(move |dx| (dy, dx))) {
                let source = [
                    (output[0] * self.strides[0] + dy)
                        .checked_sub(self.pads[0])
                        .filter(|y| *y < self.image[0]),
                    (output[1] * self.strides[1] + dx)
                        .checked_sub(self.pads[1])
                        .filter(|x| *x < self.image[1]),
                ];
                if let [Some(y), Some(x)] = source {
                    let weight = self.weight_index(out_channel, in_channel, [dy, dx]);
                    sum += weights[weight] * input[(in_channel * self.image[0] + y) * self.image[1] + x];
                }
            }
        }
        sum
    }

    pub(crate) fn weight_index(&self, out_channel: usize, in_channel: usize, tap: [usize; 2]) -> usize {
        ((out_channel * self.in_channels + in_channel) * self.kernel[0] + tap[0]) * self.kernel[1] + tap[1]
    }
}
