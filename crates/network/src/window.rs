//! Sliding windows: the geometry that convolutions and pools share.

use serde::{Deserialize, Serialize};

use crate::tensor::element_count;

/// The largest size of an axis, kernel, stride, pad or dilation: far beyond real networks, small enough that no product overflows.
pub const MAX_AXIS: usize = 1 << 20;
/// The largest number of weights of a layer.
pub const MAX_WEIGHTS: usize = 1 << 28;
/// The largest area of an image with its padding.
const MAX_PLANE: usize = 1 << 24;

/// A pool's window over the last two axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// Height and width.
    pub kernel: [usize; 2],
    /// Vertical and horizontal step.
    pub strides: [usize; 2],
    /// Padding: top, left, bottom, right.
    pub pads: [usize; 4],
}

impl Window {
    /// Rows times columns.
    #[must_use]
    pub const fn area(&self) -> usize {
        self.kernel[0] * self.kernel[1]
    }

    /// The output's height and width over an input of height and width `size`.
    ///
    /// # Errors
    /// The reason, where a size is zero or huge, the window is larger than the padded input, or a window could lie in padding alone.
    pub fn output(&self, size: [usize; 2]) -> Result<[usize; 2], String> {
        for axis in 0..2 {
            // A pad as large as the kernel could make a window without a single real element, whose maximum is undefined.
            if self.pads[axis] >= self.kernel[axis] || self.pads[axis + 2] >= self.kernel[axis] {
                return Err(format!(
                    "pads {:?} must be smaller than the kernel {:?}",
                    self.pads, self.kernel
                ));
            }
        }
        output_size(size, self.kernel, self.strides, self.pads, [1, 1])
    }
}

/// A convolution's geometry. Weights are [out, in / groups, kernel height, kernel width], row-major.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConvGeometry {
    /// Output channels.
    pub out_channels: usize,
    /// Kernel height and width.
    pub kernel: [usize; 2],
    /// Vertical and horizontal step.
    pub strides: [usize; 2],
    /// Zero padding: top, left, bottom, right.
    pub pads: [usize; 4],
    /// Vertical and horizontal distance between taps.
    pub dilations: [usize; 2],
    /// Groups; each maps in / groups input channels to out / groups output channels.
    pub groups: usize,
}

impl ConvGeometry {
    /// The output shape over an input of shape [c, h, w].
    ///
    /// # Errors
    /// The reason, where the input is not [c, h, w], channels do not divide into the groups, or the window does not fit.
    pub fn output(&self, input: &[usize]) -> Result<Vec<usize>, String> {
        let &[channels, height, width] = input else {
            return Err(format!("needs an input of shape [channels, height, width], got {input:?}"));
        };
        let divides = |n: usize| self.groups != 0 && n.is_multiple_of(self.groups);
        if !divides(channels) || !divides(self.out_channels) || self.out_channels == 0 {
            return Err(format!(
                "{channels} input and {} output channels do not divide into {} groups",
                self.out_channels, self.groups
            ));
        }
        let size = output_size([height, width], self.kernel, self.strides, self.pads, self.dilations)?;
        let factors = [self.out_channels, channels / self.groups, self.kernel[0], self.kernel[1]];
        if element_count(&factors).is_none_or(|weights| weights > MAX_WEIGHTS) {
            return Err(format!("more than {MAX_WEIGHTS} weights: {factors:?}"));
        }
        Ok(vec![self.out_channels, size[0], size[1]])
    }

    /// The number of weights over `channels` input channels.
    #[must_use]
    pub const fn weight_count(&self, channels: usize) -> usize {
        self.out_channels * (channels / self.groups) * self.kernel[0] * self.kernel[1]
    }
}

/// floor((size + pads - dilated kernel) / stride) + 1 on each axis.
fn output_size(
    size: [usize; 2],
    kernel: [usize; 2],
    strides: [usize; 2],
    pads: [usize; 4],
    dilations: [usize; 2],
) -> Result<[usize; 2], String> {
    let mut output = [0; 2];
    let mut plane = 1;
    for axis in 0..2 {
        let positive = [size[axis], kernel[axis], strides[axis], dilations[axis]];
        let all = [pads[axis], pads[axis + 2]].into_iter().chain(positive);
        if positive.contains(&0) || all.into_iter().any(|n| n > MAX_AXIS) {
            return Err(format!(
                "sizes must be in 1..={MAX_AXIS}: kernel {kernel:?}, strides {strides:?}, pads {pads:?}"
            ));
        }
        let reach = dilations[axis] * (kernel[axis] - 1) + 1;
        let padded = size[axis] + pads[axis] + pads[axis + 2];
        plane *= padded;
        if reach > padded {
            return Err(format!(
                "the kernel {kernel:?} is larger than the padded input {size:?} (pads {pads:?})"
            ));
        }
        output[axis] = (padded - reach) / strides[axis] + 1;
    }
    if plane > MAX_PLANE {
        return Err(format!(
            "the padded input {size:?} (pads {pads:?}) has more than {MAX_PLANE} elements a channel"
        ));
    }
    Ok(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conv_output_shapes_follow_onnx() {
        let base = ConvGeometry {
            out_channels: 5,
            kernel: [5, 5],
            strides: [2, 2],
            pads: [1, 1, 1, 1],
            dilations: [1, 1],
            groups: 1,
        };
        assert_eq!(base.output(&[1, 28, 28]), Ok(vec![5, 13, 13]));
        let asymmetric = ConvGeometry { pads: [1, 2, 2, 1], ..base };
        assert_eq!(asymmetric.output(&[1, 28, 28]), Ok(vec![5, 14, 14]));
        let dilated = ConvGeometry { dilations: [2, 3], strides: [1, 1], pads: [0; 4], ..base };
        assert_eq!(dilated.output(&[3, 28, 28]), Ok(vec![5, 20, 16]));
    }

    #[test]
    fn impossible_windows_are_refused() {
        let window = Window { kernel: [2, 2], strides: [2, 2], pads: [0; 4] };
        assert_eq!(window.output([5, 4]), Ok([2, 2]));
        assert!(window.output([1, 4]).is_err());
        assert!(Window { strides: [0, 1], ..window }.output([4, 4]).is_err());
        assert!(Window { pads: [2, 0, 0, 0], ..window }.output([4, 4]).is_err());
        assert!(Window { kernel: [usize::MAX, 1], ..window }.output([4, 4]).is_err());
    }

    #[test]
    fn huge_layers_are_refused_before_any_product_overflows() {
        let side = MAX_AXIS;
        let geometry = ConvGeometry {
            out_channels: side,
            kernel: [side, side],
            strides: [side, side],
            pads: [side; 4],
            dilations: [1, 1],
            groups: 1,
        };
        assert!(geometry.output(&[side, 1, 1]).is_err());
        let wide = ConvGeometry { kernel: [1, 1], pads: [0; 4], ..geometry };
        assert!(wide.output(&[side, 1, 1]).unwrap_err().contains("weights"));
        let padded = ConvGeometry { out_channels: 1, kernel: [1, 1], ..geometry };
        assert!(padded.output(&[1, 1, 1]).unwrap_err().contains("padded input"));
    }
}
