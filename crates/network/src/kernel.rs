//! The arithmetic of the operators, generic over the number: one definition serves the float meaning and the fixed-point reference.

use crate::arch::{ROWS, add_combinations, add_product};
#[cfg(test)]
mod tests;

pub use crate::arch::{Sum, add_rows};
use crate::window::{ConvGeometry, Window};

/// How many taps' patches exist at once: bounds the memory that a huge kernel takes.
const TAPS: usize = 64;

/// How many rows of patches, of any channels, exist at once where [`add_wide_conv`] multiplies them.
const DEPTH: usize = 128;

/// Columns of the tiles in which [`add_conv`] adds up wide convolutions: a vector of `f32`.
const COLUMNS: usize = 16;

/// Whether each group of a convolution has enough outputs for [`add_wide_conv`].
#[must_use]
pub fn is_wide(geometry: &ConvGeometry) -> bool {
    geometry.out_channels / geometry.groups >= ROWS
}

/// Adds the convolution of `input` [c, h, w] to `output` (its shape by `geometry`), which the caller fills with the bias.
///
/// One input channel and [`TAPS`] taps at a time, the patches are laid out tap by tap over the whole output plane, so that every
/// product is a long multiply-accumulate over contiguous memory whatever the stride. Wide convolutions are [`add_wide_conv`]'s: their sums are
/// added up in the same order.
pub fn add_conv<T: Copy + Default, S: Sum<T> + Default>(
    input: &[T],
    shape: [usize; 3],
    weight: &[T],
    geometry: &ConvGeometry,
    out_size: [usize; 2],
    output: &mut [S],
) {
    if is_wide(geometry) {
        return add_wide_conv::<T, T, S, COLUMNS>(input, shape, weight, geometry, out_size, output);
    }
    let [channels, height, width] = shape;
    let (group_in, group_out) = (channels / geometry.groups, geometry.out_channels / geometry.groups);
    let (taps, plane) = (geometry.kernel[0] * geometry.kernel[1], out_size[0] * out_size[1]);
    let mut patches = vec![T::default(); taps.min(TAPS) * plane];
    for (channel, source) in input.chunks_exact(height * width).enumerate() {
        let (group, i) = (channel / group_in, channel % group_in);
        for first in (0..taps).step_by(TAPS) {
            let count = TAPS.min(taps - first);
            for (tap, patch) in (first..first + count).zip(patches.chunks_exact_mut(plane)) {
                fill_patch(source, [height, width], tap, geometry, out_size, patch);
            }
            let first_out = group * group_out;
            add_combinations(
                &weight[(first_out * group_in + i) * taps + first..],
                group_in * taps,
                &patches[..count * plane],
                plane,
                &mut output[first_out * plane..][..group_out * plane],
            );
        }
    }
}

/// [`add_conv`] as products of matrices, which read each patch once for many outputs: [`DEPTH`] rows of patches at a time. Sums are
/// added up `N` columns at a time.
pub fn add_wide_conv<W: Copy + Into<T>, T: Copy + Default, S: Sum<T> + Default, const N: usize>(
    input: &[T],
    [channels, height, width]: [usize; 3],
    weight: &[W],
    geometry: &ConvGeometry,
    out_size: [usize; 2],
    output: &mut [S],
) {
    let (group_in, group_out) = (channels / geometry.groups, geometry.out_channels / geometry.groups);
    let (taps, plane) = (geometry.kernel[0] * geometry.kernel[1], out_size[0] * out_size[1]);
    let depth = group_in * taps;
    let mut patches = vec![T::default(); depth.min(DEPTH) * plane];
    let mut panels = Vec::new();
    for (group, output) in output.chunks_exact_mut(group_out * plane).enumerate() {
        let weight = &weight[group * group_out * depth..][..group_out * depth];
        for first in (0..depth).step_by(DEPTH) {
            let rows = first..depth.min(first + DEPTH);
            for (row, patch) in rows.clone().zip(patches.chunks_exact_mut(plane)) {
                let channel = group * group_in + row / taps;
                let source = &input[channel * height * width..][..height * width];
                fill_patch(source, [height, width], row % taps, geometry, out_size, patch);
            }
            panels.clear();
            for weights in weight.chunks(ROWS * depth) {
                panels.extend(rows.clone().map(|row| {
                    let mut panel = [T::default(); ROWS];
                    let of_row = weights.iter().skip(row).step_by(depth);
                    panel.iter_mut().zip(of_row).for_each(|(panel, &w)| *panel = w.into());
                    panel
                }));
            }
            add_product::<T, S, N>(&panels, &patches[..rows.len() * plane], plane, output);
        }
    }
}

/// The source elements that one tap reads for every output, zero in the padding.
fn fill_patch<T: Copy + Default>(
    source: &[T],
    size: [usize; 2],
    tap: usize,
    geometry: &ConvGeometry,
    out_size: [usize; 2],
    patch: &mut [T],
) {
    let tap = [tap / geometry.kernel[1], tap % geometry.kernel[1]];
    let [rows, columns] = [0, 1].map(|axis| {
        let offset = tap[axis] * geometry.dilations[axis];
        inside(offset, geometry.pads[axis], geometry.strides[axis], size[axis], out_size[axis])
    });
    patch.fill(T::default());
    if columns.count == 0 {
        return;
    }
    let [stride_h, stride_w] = geometry.strides;
    for row in 0..rows.count {
        let line = &source[(rows.source + row * stride_h) * size[1] + columns.source..];
        let target = &mut patch[(rows.target + row) * out_size[1] + columns.target..][..columns.count];
        if stride_w == 1 {
            target.copy_from_slice(&line[..columns.count]);
        } else {
            target.iter_mut().zip(line.iter().step_by(stride_w)).for_each(|(y, &x)| *y = x);
        }
    }
}

/// The run of outputs along one axis for which a tap reads a real element.
struct Run {
    target: usize,
    source: usize,
    count: usize,
}

/// Outputs t with `0 <= t stride + offset - pad < size` and `t < out`.
fn inside(offset: usize, pad: usize, stride: usize, size: usize, out: usize) -> Run {
    let target = pad.saturating_sub(offset).div_ceil(stride);
    let end = (size + pad).saturating_sub(offset).div_ceil(stride).min(out);
    let count = end.saturating_sub(target);
    let source = if count == 0 { 0 } else { target * stride + offset - pad };
    Run { target, source, count }
}

/// Adds `x W` to `output`, which the caller fills with the bias; `weight` is [inputs, outputs].
pub fn add_columns<T: Copy + Default, S: Sum<T> + Default>(input: &[T], weight: &[T], output: &mut [S]) {
    add_combinations(input, input.len(), weight, output.len(), output);
}

/// Folds the real elements of each window of `input` [c, h, w]: `first` takes a window's first element, `next` the others.
///
/// Returns the folded values and how many elements each had.
pub fn fold_windows<T: Copy>(
    input: &[T],
    shape: [usize; 3],
    window: &Window,
    out_size: [usize; 2],
    fold: impl Fn(T, T) -> T,
) -> Vec<(T, usize)> {
    let [channels, height, width] = shape;
    let mut output = Vec::with_capacity(channels * out_size[0] * out_size[1]);
    for plane in input.chunks_exact(height * width) {
        for row in 0..out_size[0] {
            for column in 0..out_size[1] {
                let rows = span(row, window.strides[0], window.pads[0], window.kernel[0], height);
                let columns = span(column, window.strides[1], window.pads[1], window.kernel[1], width);
                let count = rows.len() * columns.len();
                let first = plane[rows.start * width + columns.start];
                let line = |r: usize| &plane[r * width + columns.start..r * width + columns.end];
                let rest = rows.clone().flat_map(line).skip(1);
                output.push((rest.fold(first, |folded, &x| fold(folded, x)), count));
            }
        }
    }
    output
}

/// The real elements along one axis of window number `index`; never empty, since pads are smaller than the kernel.
fn span(index: usize, stride: usize, pad: usize, kernel: usize, size: usize) -> std::ops::Range<usize> {
    let start = index * stride;
    start.saturating_sub(pad)..(start + kernel - pad).min(size)
}
