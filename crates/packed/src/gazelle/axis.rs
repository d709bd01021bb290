//! One axis of a convolution: strides by phases, padding, and tiles.
//!
//! With stride `s`, phase `a` of an image is `x_a[i] = x[s i + a]`; output pixel `i` reads phase pixels `i + shift`.

use lanner_step::Convolution;

/// One axis of a convolution over frames: equal windows of the zero-padded input, each with its own outputs.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    /// Pixels of the image, and of the output.
    image: usize,
    total_outputs: usize,
    /// Number of frames, pixels of one, and outputs of one.
    pub(super) frames: usize,
    frame: usize,
    pub(super) outputs: usize,
    /// Where the first frame starts in the image; negative in the padding.
    start: isize,
    /// Padding before the frame that is not packed.
    pad: usize,
    kernel: usize,
    stride: usize,
    dilation: usize,
}

impl Axis {
    /// The image itself as the only frame: padding takes no slots.
    pub(super) fn whole(shape: &Convolution, axis: usize, outputs: usize) -> Self {
        Self {
            image: shape.image[axis],
            total_outputs: outputs,
            frames: 1,
            frame: shape.image[axis],
            outputs,
            start: 0,
            pad: shape.pads[axis],
            kernel: shape.kernel[axis],
            stride: shape.strides[axis],
            dilation: shape.dilations[axis],
        }
    }

    /// Frames with all pixels that their outputs read, those in the padding as zeros; neighbours overlap.
    pub(super) fn tiled(shape: &Convolution, axis: usize, total: usize, frames: usize) -> Self {
        let outputs = total.div_ceil(frames);
        Self {
            frames: total.div_ceil(outputs),
            frame: (outputs - 1) * shape.strides[axis] + shape.reach()[axis],
            outputs,
            start: -(shape.pads[axis] as isize),
            pad: 0,
            ..Self::whole(shape, axis, total)
        }
    }

    /// Phase pixels of a frame.
    pub(super) fn phase_pixels(&self) -> usize {
        self.frame.div_ceil(self.stride)
    }

    /// The distinct shifts, rising.
    pub(super) fn shifts(&self) -> Vec<isize> {
        let mut shifts: Vec<_> = (0..self.kernel).map(|tap| self.split(tap).0).collect();
        shifts.dedup();
        shifts
    }

    /// The phases that some tap reads, rising.
    pub(super) fn phases(&self) -> Vec<usize> {
        let mut phases: Vec<_> = (0..self.kernel).map(|tap| self.split(tap).1).collect();
        phases.sort_unstable();
        phases.dedup();
        phases
    }

    /// Shift and phase of a tap.
    fn split(&self, tap: usize) -> (isize, usize) {
        let (offset, stride) = ((tap * self.dilation) as isize - self.pad as isize, self.stride as isize);
        (offset.div_euclid(stride), offset.rem_euclid(stride) as usize)
    }

    /// The tap of a shift and a phase.
    pub(super) fn tap(&self, shift: isize, phase: usize) -> Option<usize> {
        let offset = shift * self.stride as isize + phase as isize + self.pad as isize;
        let offset = usize::try_from(offset).ok().filter(|offset| offset.is_multiple_of(self.dilation))?;
        Some(offset / self.dilation).filter(|tap| *tap < self.kernel)
    }

    /// The tap by which output `output` of a frame reads phase pixel `output + shift`; none outside the frame.
    pub(super) fn tap_inside(&self, output: usize, shift: isize, phase: usize) -> Option<usize> {
        let source = (output as isize + shift) * self.stride as isize + phase as isize;
        let inside = output < self.outputs && (0..self.frame as isize).contains(&source);
        self.tap(shift, phase).filter(|_| inside)
    }

    /// Whether any output reads anything at this shift and phase.
    pub(super) fn reads(&self, shift: isize, phase: usize) -> bool {
        (0..self.outputs).any(|output| self.tap_inside(output, shift, phase).is_some())
    }

    /// The image's pixel at a phase pixel of a frame; none in the padding.
    pub(super) fn image_pixel(&self, frame: usize, phase: usize, pixel: usize) -> Option<usize> {
        let inside = pixel * self.stride + phase;
        let origin = (frame * self.outputs * self.stride) as isize + self.start;
        let source = usize::try_from(origin + inside as isize).ok()?;
        (inside < self.frame && source < self.image).then_some(source)
    }

    /// Frame, and output in it, of each output.
    pub(super) fn output_places(&self) -> impl Iterator<Item = (usize, usize)> + Clone + '_ {
        (0..self.total_outputs).map(|output| (output / self.outputs, output % self.outputs))
    }
}
