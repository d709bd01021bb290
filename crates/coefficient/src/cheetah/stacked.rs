//! A layer for several samples as one layer on a taller image: theirs, one below the other.
//!
//! Each image has its padding around it, so that no window of one reads another. Windows that lie across two are outputs of the taller
//! layer that nobody asks for: outputs are sent coefficient by coefficient, and these are not among them.

use lanner_step::{Convolution, ProtocolError, Result, Samples};

/// A layer, and the taller one that computes it for several samples.
#[derive(Clone, Debug)]
pub struct Stacked {
    sample: Convolution,
    whole: Convolution,
    samples: Samples,
    /// Rows from one image to the next, a multiple of the stride.
    pitch: usize,
    /// Height and width of a sample's output.
    outputs: [usize; 2],
}

impl Stacked {
    /// A layer for several samples.
    ///
    /// # Errors
    /// [`ProtocolError::Parameters`] if the shape is no layer.
    pub fn new(sample: &Convolution, samples: Samples) -> Result<Self> {
        let outputs = sample.output_image()?;
        let [top, left, bottom, right] = sample.pads;
        let pitch = (top + sample.image[0] + bottom).next_multiple_of(sample.strides[0]);
        let mut whole = sample.clone();
        if !samples.is_one() {
            whole.image[0] = samples.times(pitch);
            whole.pads = [0, left, 0, right];
        }
        Ok(Self { sample: sample.clone(), whole, samples, pitch, outputs })
    }

    /// The layer of one sample.
    pub(super) const fn sample(&self) -> &Convolution {
        &self.sample
    }

    /// The layer that computes all of them.
    pub(super) const fn whole(&self) -> &Convolution {
        &self.whole
    }

    /// Elements of the inputs of all samples, and of their outputs.
    pub(super) const fn elements(&self) -> [usize; 2] {
        let [height, width] = self.outputs;
        let outputs = self.sample.out_channels * height * width;
        [self.samples.times(self.sample.inputs()), self.samples.times(outputs)]
    }

    /// The element of the samples' inputs at a pixel of the taller image; none in the padding between two.
    pub(super) fn input(&self, channel: usize, [row, column]: [usize; 2]) -> Option<usize> {
        let [height, width] = self.sample.image;
        let (sample, row) = if self.samples.is_one() {
            (0, row)
        } else {
            (row / self.pitch, (row % self.pitch).checked_sub(self.sample.pads[0])?)
        };
        let element = (channel * height + row) * width + column;
        (row < height).then_some(sample * self.sample.inputs() + element)
    }

    /// The element of the samples' outputs at a pixel of the taller one's; none of a window that lies across two images.
    pub(super) fn output(&self, channel: usize, [row, column]: [usize; 2]) -> Option<usize> {
        let [height, width] = self.outputs;
        let (sample, row) = if self.samples.is_one() {
            (0, row)
        } else {
            let pitch = self.pitch / self.sample.strides[0];
            (row / pitch, row % pitch)
        };
        let element = (channel * height + row) * width + column;
        (row < height).then_some(sample * self.sample.out_channels * height * width + element)
    }
}

impl TryFrom<&Convolution> for Stacked {
    type Error = ProtocolError;

    /// A layer for one sample.
    fn try_from(sample: &Convolution) -> Result<Self> {
        Self::new(sample, Samples::ONE)
    }
}
