//! Where a layer's weights and values are, and its sums of products, task by task.

use lanner_primitives::parallel;
use lanner_step::{Convolution, ProtocolError, Result};
use zeroize::Zeroizing;

use super::arch::{self, Word};
use super::pixels::Pixels;

/// Where a layer's values are read and written: in the image with its padding.
pub(super) struct Places {
    shape: Convolution,
    /// Height and width of the image with its padding.
    padded: [usize; 2],
    /// Of each weight of an output channel, counted from the first value of its group.
    taps: Vec<usize>,
    /// Of each pixel of the output, for its first tap.
    pixels: Vec<usize>,
    /// Rows of weights that lie beside each other; each row lies by itself where there is one.
    tile: usize,
}

/// Some output channels of a group, and some of its pixels.
#[derive(Clone, Copy)]
struct Task {
    group: usize,
    /// The first channel, counted in its group, and how many.
    channels: [usize; 2],
    /// The first pixel, and how many: those of some columns.
    pixels: [usize; 2],
}

/// Rows of a tile. With an even number compilers make vectors of rows, not of columns.
const TILE: usize = 5;
/// Channels of a task: whole tiles.
const BLOCK: usize = 13 * TILE;
/// Taps that are read into columns at a time, which stay in the first cache.
const DEPTH: usize = 256;
/// Products of a task of few channels, at least.
const PRODUCTS: usize = 1 << 16;
/// Pixels of the output that are not worth columns.
const FEW: usize = 4;

impl Places {
    /// Those of a shape.
    ///
    /// # Errors
    /// [`ProtocolError::Parameters`] if it does not fit together.
    pub(super) fn new(shape: &Convolution) -> Result<Self> {
        let [height, width] = shape.output_image()?;
        let padded = [0, 1].map(|axis| shape.image[axis] + shape.pads[axis] + shape.pads[axis + 2]);
        let words = padded[0].checked_mul(padded[1]).and_then(|words| words.checked_mul(shape.in_channels));
        ProtocolError::refuse_if(
            words.is_none_or(|words| words > isize::MAX as usize / size_of::<u64>()),
            "the padding of a linear layer",
        )?;
        let grid = |rows: usize, columns: usize, steps: [usize; 2]| {
            let row = move |y| (0..columns).map(move |x| y * steps[0] * padded[1] + x * steps[1]);
            (0..rows).flat_map(row).collect::<Vec<_>>()
        };
        let pixels = grid(height, width, shape.strides);
        let kernel = grid(shape.kernel[0], shape.kernel[1], shape.dilations);
        let of_channel = |channel| kernel.iter().map(move |tap| channel * padded[0] * padded[1] + tap);
        let taps = (0..shape.group_inputs()).flat_map(of_channel).collect();
        Ok(Self { shape: shape.clone(), padded, taps, tile: tile(shape, pixels.len()), pixels })
    }

    /// The layer's shape.
    pub(super) fn shape(&self) -> &Convolution {
        &self.shape
    }

    /// Number of output elements.
    pub(super) fn outputs(&self) -> usize {
        self.shape.out_channels * self.pixels.len()
    }

    /// Weights in the order of their use: of each group, for each tile of rows, those of each tap in turn. Rows that are missing are zero.
    pub(super) fn lay<T: Word>(&self, weights: &[i64]) -> Zeroizing<Vec<T>> {
        let (rows, depth) = (self.shape.group_outputs(), self.taps.len());
        let mut words = Zeroizing::new(vec![T::default(); self.shape.groups * self.group_words()]);
        for (index, weight) in weights.iter().enumerate() {
            let (channel, tap) = (index / depth, index % depth);
            let (group, row) = (channel / rows, channel % rows);
            let place = (row / self.tile * depth + tap) * self.tile + row % self.tile;
            words[group * self.group_words() + place] = T::of(*weight as u64);
        }
        words
    }

    /// Words of the weights of a group.
    fn group_words(&self) -> usize {
        self.shape.group_outputs().next_multiple_of(self.tile) * self.taps.len()
    }

    /// The layer on values, by weights that were laid out; of the words that wrap around, whatever the ring.
    pub(super) fn apply<T: Word, const COLUMNS: usize>(
        &self,
        weights: &[T],
        values: &[u64],
    ) -> Zeroizing<Vec<u64>> {
        let image = self.pad::<T>(values);
        let group_len = self.shape.group_inputs() * self.padded[0] * self.padded[1];
        let sums = parallel::map(self.tasks(COLUMNS), |task| {
            let image = &image[task.group * group_len..][..group_len];
            let weights = &weights[task.group * self.group_words()..][..self.group_words()];
            (task, self.sums::<T, COLUMNS>(task, weights, image))
        });
        let pixels = self.pixels.len();
        let mut outputs = Zeroizing::new(vec![0; self.shape.out_channels * pixels]);
        for (task, sums) in sums {
            let [channel, channels] = task.channels;
            let first = task.group * self.shape.group_outputs() + channel;
            let panels = sums.chunks_exact(channels.next_multiple_of(self.tile));
            for (panel, pixel) in panels.zip((task.pixels[0]..).step_by(COLUMNS)) {
                let rows = outputs[first * pixels..].chunks_exact_mut(pixels);
                for (row, sums) in rows.zip(panel).take(channels) {
                    row[pixel..].iter_mut().zip(sums).for_each(|(output, sum)| *output = sum.value());
                }
            }
        }
        outputs
    }

    /// All channels and pixels.
    fn tasks(&self, columns: usize) -> impl Iterator<Item = Task> + use<> {
        let (rows, pixels) = (self.shape.group_outputs(), self.pixels.len());
        let part = |first: usize, most: usize, all: usize| [first, most.min(all - first)];
        let panels = (PRODUCTS / (rows.min(BLOCK) * self.taps.len() * columns)).max(1);
        let columns = panels * columns;
        (0..self.shape.groups).flat_map(move |group| {
            (0..pixels).step_by(columns).flat_map(move |pixel| {
                (0..rows).step_by(BLOCK).map(move |channel| Task {
                    group,
                    channels: part(channel, BLOCK, rows),
                    pixels: part(pixel, columns, pixels),
                })
            })
        })
    }

    /// The image with its padding.
    fn pad<T: Word>(&self, values: &[u64]) -> Zeroizing<Vec<T>> {
        let ([top, left, ..], [height, width]) = (self.shape.pads, self.padded);
        let mut image = Zeroizing::new(vec![T::default(); self.shape.in_channels * height * width]);
        for (number, values) in values.chunks_exact(self.shape.image[1]).enumerate() {
            let (channel, y) = (number / self.shape.image[0], number % self.shape.image[0]);
            let row = &mut image[(channel * height + top + y) * width + left..];
            row.iter_mut().zip(values).for_each(|(word, value)| *word = T::of(*value));
        }
        image
    }

    /// The sums of a task: for some columns at a time, a row for each channel. `weights` and `image` are the group's.
    fn sums<T: Word, const COLUMNS: usize>(
        &self,
        task: Task,
        weights: &[T],
        image: &[T],
    ) -> Zeroizing<Vec<[T; COLUMNS]>> {
        let [first, count] = task.channels;
        let depth = self.taps.len();
        let rows = count.next_multiple_of(self.tile);
        let weights = &weights[first * depth..][..rows * depth];
        let pixels = &self.pixels[task.pixels[0]..][..task.pixels[1]];
        let panels = pixels.len().div_ceil(COLUMNS);
        let mut sums = Zeroizing::new(vec![[T::default(); COLUMNS]; panels * rows]);
        if self.pixels.len() < FEW {
            for (number, pixel) in pixels.iter().enumerate() {
                let column: Zeroizing<Vec<T>> =
                    Zeroizing::new(self.taps.iter().map(|tap| image[pixel + tap]).collect());
                for (sums, weights) in sums.iter_mut().zip(weights.chunks_exact(depth)) {
                    sums[number] = arch::dot(weights, &column);
                }
            }
            return sums;
        }
        let mut columns = Zeroizing::new(vec![[T::default(); COLUMNS]; depth.min(DEPTH)]);
        for (pixels, sums) in pixels.chunks(COLUMNS).zip(sums.chunks_exact_mut(rows)) {
            let pixels = Pixels::<COLUMNS>::new(pixels);
            for (number, taps) in self.taps.chunks(DEPTH).enumerate() {
                pixels.read(image, taps, &mut columns);
                let columns = &columns[..taps.len()];
                if self.tile == TILE {
                    add::<T, TILE, COLUMNS>(weights, [depth, number * DEPTH], columns, sums);
                } else {
                    add::<T, 1, COLUMNS>(weights, [depth, number * DEPTH], columns, sums);
                }
            }
        }
        sums
    }
}

/// Rows of weights that lie beside each other, where the output has so many pixels.
pub(super) fn tile(shape: &Convolution, pixels: usize) -> usize {
    if pixels < FEW || shape.group_outputs() < TILE - 1 { 1 } else { TILE }
}

/// Adds the products of some taps from the first on to the sums of all tiles of `ROWS` rows.
fn add<T: Word, const ROWS: usize, const COLUMNS: usize>(
    weights: &[T],
    [depth, first]: [usize; 2],
    columns: &[[T; COLUMNS]],
    sums: &mut [[T; COLUMNS]],
) {
    let tiles = weights.as_chunks::<ROWS>().0.chunks_exact(depth);
    for (weights, sums) in tiles.zip(sums.as_chunks_mut::<ROWS>().0) {
        arch::add_rows(&weights[first..][..columns.len()], columns, sums);
    }
}
