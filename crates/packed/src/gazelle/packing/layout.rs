//! From elements to slots and back.

use super::Packing;
use super::channels::Channels;
use crate::gazelle::kernel::Kernel;

impl Packing {
    pub(super) fn image_groups(&self) -> usize {
        self.images.div_ceil(self.channels.positions)
    }

    /// Index of a frame.
    pub(super) fn frame(&self, image: usize, y: usize, x: usize) -> usize {
        (image / self.channels.positions * self.axes[0].frames + y) * self.axes[1].frames + x
    }

    /// Ciphertext of its frame and position where an output channel ends.
    pub(super) fn output_position(&self, image: usize, channel: usize) -> (usize, usize) {
        let Channels { period, copies, diagonals, positions, .. } = self.channels;
        let index =
            channel % self.shape.group_outputs() * self.shape.groups + channel / self.shape.group_outputs();
        let (ciphertext, row) = (index / (copies * diagonals), index % (copies * diagonals));
        let position = row / diagonals * period + row % diagonals;
        (ciphertext, if self.is_batch() { image % positions } else { position })
    }

    /// The element in a slot of an input ciphertext.
    pub(super) fn input_element(&self, ciphertext: usize, slot: usize) -> Option<usize> {
        let channels = &self.channels;
        let (frame, input) = (ciphertext / channels.inputs, ciphertext % channels.inputs);
        let (group, tile) = (frame / self.tiles(), frame % self.tiles());
        let (sample, slot) = (slot % self.samples.count(), slot / self.samples.count());
        let (position, pixel) = channels.place(slot);
        let (image, at) = if self.is_batch() {
            (group * channels.positions + position, 0)
        } else {
            (0, position % channels.period)
        };
        if image >= self.images || !(self.is_batch() || channels.holds_input(position)) {
            return None;
        }
        let (channel, phase) = channels.input(&self.shape, input, at)?;
        let across = self.axes[1].frames;
        let y = self.axes[0].image_pixel(tile / across, phase[0], pixel[0])?;
        let x = self.axes[1].image_pixel(tile % across, phase[1], pixel[1])?;
        let [height, width] = self.shape.image;
        let image = sample * self.images + image;
        Some(((image * self.shape.in_channels + channel) * height + y) * width + x)
    }

    fn is_batch(&self) -> bool {
        matches!(self.kernel, Kernel::Batched { .. })
    }

    fn tiles(&self) -> usize {
        self.axes[0].frames * self.axes[1].frames
    }
}
