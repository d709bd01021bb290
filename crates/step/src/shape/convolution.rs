//! The public shape of a linear layer.

use serde::{Deserialize, Serialize};

use crate::{ProtocolError, Result};

/// A two-dimensional convolution over `in_channels x height x width`; a fully connected layer is the case of one pixel.
///
/// Weights are `[out_channels][in_channels / groups][kernel[0]][kernel[1]]`, row-major.
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
    /// Vertical and horizontal distance between the taps of the kernel.
    pub dilations: [usize; 2],
    /// Groups; each maps its share of the input channels to its share of the output channels.
    pub groups: usize,
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
            dilations: [1, 1],
            groups: 1,
        }
    }

    /// Rows and columns of the image that the kernel spans.
    #[must_use]
    pub fn reach(&self) -> [usize; 2] {
        [0, 1].map(|axis| self.dilations[axis] * self.kernel[axis].saturating_sub(1) + 1)
    }

    /// Input channels of a group.
    #[must_use]
    pub fn group_inputs(&self) -> usize {
        self.in_channels / self.groups
    }

    /// Output channels of a group.
    #[must_use]
    pub fn group_outputs(&self) -> usize {
        self.out_channels / self.groups
    }

    /// Height and width of the output.
    ///
    /// # Errors
    /// [`ProtocolError::Parameters`] if a dimension is zero, the kernel exceeds the padded image, or the channels do not divide
    /// into the groups.
    pub fn output_image(&self) -> Result<[usize; 2]> {
        let sizes = [self.image, self.kernel, self.strides, self.dilations];
        let counts = [self.in_channels, self.out_channels, self.groups];
        let divides = |channels: usize| channels.is_multiple_of(self.groups);
        ProtocolError::refuse_if(
            sizes.as_flattened().iter().chain(&counts).any(|size| *size == 0)
                || !divides(self.in_channels)
                || !divides(self.out_channels),
            "convolution",
        )?;
        let mut output = [0; 2];
        for (axis, reach) in self.reach().into_iter().enumerate() {
            let padded = self.image[axis] + self.pads[axis] + self.pads[axis + 2];
            let room = padded.checked_sub(reach).ok_or(ProtocolError::Parameters("convolution"))?;
            output[axis] = room / self.strides[axis] + 1;
        }
        Ok(output)
    }

    /// Number of input elements.
    #[must_use]
    pub const fn inputs(&self) -> usize {
        self.in_channels * self.image[0] * self.image[1]
    }

    /// Number of output elements.
    ///
    /// # Errors
    /// As [`Self::output_image`].
    pub fn outputs(&self) -> Result<usize> {
        let [height, width] = self.output_image()?;
        Ok(self.out_channels * height * width)
    }

    /// Number of weights.
    #[must_use]
    pub fn weights(&self) -> usize {
        self.out_channels * self.group_inputs() * self.kernel[0] * self.kernel[1]
    }

    /// The convolution itself, in the clear and without reduction: the twin of every private kernel.
    ///
    /// # Errors
    /// [`ProtocolError::Length`] if the lengths do not fit the shape.
    pub fn apply(&self, weights: &[i64], input: &[i64]) -> Result<Vec<i64>> {
        let [height, width] = self.output_image()?;
        ProtocolError::check_length("weights of a convolution", self.weights(), weights.len())?;
        ProtocolError::check_length("inputs of a convolution", self.inputs(), input.len())?;
        let mut output = Vec::with_capacity(self.out_channels * height * width);
        for channel in 0..self.out_channels {
            for y in 0..height {
                output.extend((0..width).map(|x| self.at(weights, input, channel, [y, x])));
            }
        }
        Ok(output)
    }

    fn at(&self, weights: &[i64], input: &[i64], out_channel: usize, output: [usize; 2]) -> i64 {
        let product = |(channel, tap, weight): (usize, [usize; 2], usize)| {
            self.element(channel, tap, output).map_or(0, |element| weights[weight] * input[element])
        };
        self.taps_of(out_channel).map(product).sum()
    }

    /// Taps over all input channels, numbered by channel, row and column.
    #[must_use]
    pub fn taps(&self) -> usize {
        self.in_channels * self.kernel[0] * self.kernel[1]
    }

    /// The number of a tap.
    #[must_use]
    pub fn tap_number(&self, channel: usize, tap: [usize; 2]) -> usize {
        (channel * self.kernel[0] + tap[0]) * self.kernel[1] + tap[1]
    }

    /// The input channel of a numbered tap, and its place in the kernel.
    #[must_use]
    pub fn numbered_tap(&self, number: usize) -> (usize, [usize; 2]) {
        let [height, width] = self.kernel;
        (number / (height * width), [number / width % height, number % width])
    }

    /// The taps of an output channel: for each the input channel, the place in the kernel and the index of the weight.
    pub fn taps_of(&self, out_channel: usize) -> impl Iterator<Item = (usize, [usize; 2], usize)> {
        let first = out_channel / self.group_outputs() * self.group_inputs();
        (0..self.group_inputs()).flat_map(move |of_group| {
            let tap = move |dy, dx| {
                let weight = self.weight_index(out_channel, of_group, [dy, dx]);
                (first + of_group, [dy, dx], weight)
            };
            let [height, width] = self.kernel;
            (0..height).flat_map(move |dy| (0..width).map(move |dx| tap(dy, dx)))
        })
    }

    /// The input element that a tap reads for a pixel of the output; none in the padding.
    #[must_use]
    pub fn element(&self, channel: usize, tap: [usize; 2], pixel: [usize; 2]) -> Option<usize> {
        let [y, x] = [self.source(0, pixel[0], tap[0])?, self.source(1, pixel[1], tap[1])?];
        Some((channel * self.image[0] + y) * self.image[1] + x)
    }

    /// The input index that a tap reads for an output index along one axis; none in the padding.
    #[must_use]
    pub fn source(&self, axis: usize, output: usize, tap: usize) -> Option<usize> {
        let padded = output * self.strides[axis] + tap * self.dilations[axis];
        padded.checked_sub(self.pads[axis]).filter(|index| *index < self.image[axis])
    }

    /// The index of a weight; `of_group` counts the input channels of the output channel's group.
    #[must_use]
    pub fn weight_index(&self, out_channel: usize, of_group: usize, tap: [usize; 2]) -> usize {
        let channel = out_channel * self.group_inputs() + of_group;
        (channel * self.kernel[0] + tap[0]) * self.kernel[1] + tap[1]
    }
}
