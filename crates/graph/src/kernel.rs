//! The arithmetic of the operators, generic over the number: one definition serves the float meaning and the fixed-point reference.

use std::ops::{AddAssign, Mul};

use crate::window::{ConvGeometry, Window};

/// A number that operators compute with.
pub(crate) trait Number: Copy + PartialOrd + AddAssign + Mul<Output = Self> {}

impl Number for f32 {}
impl Number for i32 {}
impl Number for i64 {}

/// Adds the convolution of `input` [c, h, w] to `output` (its shape by `geometry`), which the caller fills with the bias.
pub(crate) fn add_conv<T: Number>(
    input: &[T],
    shape: [usize; 3],
    weight: &[T],
    geometry: &ConvGeometry,
    out_size: [usize; 2],
    output: &mut [T],
) {
    let [channels, height, width] = shape;
    let (group_in, group_out) = (channels / geometry.groups, geometry.out_channels / geometry.groups);
    let [kernel_h, kernel_w] = geometry.kernel;
    for (out_channel, plane) in output.chunks_exact_mut(out_size[0] * out_size[1]).enumerate() {
        let first_in = out_channel / group_out * group_in;
        for i in 0..group_in {
            let source = &input[(first_in + i) * height * width..][..height * width];
            for tap in 0..kernel_h * kernel_w {
                let w = weight[(out_channel * group_in + i) * kernel_h * kernel_w + tap];
                add_tap(
                    source,
                    [height, width],
                    w,
                    [tap / kernel_w, tap % kernel_w],
                    geometry,
                    out_size,
                    plane,
                );
            }
        }
    }
}

/// Adds one tap's products to one output channel.
fn add_tap<T: Number>(
    source: &[T],
    size: [usize; 2],
    w: T,
    tap: [usize; 2],
    geometry: &ConvGeometry,
    out_size: [usize; 2],
    plane: &mut [T],
) {
    let [rows, columns] = [0, 1].map(|axis| {
        let offset = tap[axis] * geometry.dilations[axis];
        inside(offset, geometry.pads[axis], geometry.strides[axis], size[axis], out_size[axis])
    });
    if columns.count == 0 {
        return;
    }
    let [stride_h, stride_w] = [geometry.strides[0], geometry.strides[1]];
    for row in 0..rows.count {
        let line = &source[(rows.source + row * stride_h) * size[1] + columns.source..];
        let target = &mut plane[(rows.target + row) * out_size[1] + columns.target..][..columns.count];
        if stride_w == 1 {
            // The common case, apart so that it vectorises.
            for (y, &x) in target.iter_mut().zip(&line[..columns.count]) {
                *y += w * x;
            }
        } else {
            for (y, &x) in target.iter_mut().zip(line.iter().step_by(stride_w)) {
                *y += w * x;
            }
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

/// Adds `W x` to `output`, which the caller fills with the bias; `weight` is [outputs, inputs].
pub(crate) fn add_rows<T: Number>(input: &[T], weight: &[T], output: &mut [T]) {
    for (y, row) in output.iter_mut().zip(weight.chunks_exact(input.len())) {
        for (&w, &x) in row.iter().zip(input) {
            *y += w * x;
        }
    }
}

/// Adds `x W` to `output`, which the caller fills with the bias; `weight` is [inputs, outputs].
pub(crate) fn add_columns<T: Number>(input: &[T], weight: &[T], output: &mut [T]) {
    for (&x, row) in input.iter().zip(weight.chunks_exact(output.len())) {
        for (y, &w) in output.iter_mut().zip(row) {
            *y += w * x;
        }
    }
}

/// Folds the real elements of each window of `input` [c, h, w]: `first` takes a window's first element, `next` the others.
///
/// Returns the folded values and how many elements each had.
pub(crate) fn fold_windows<T: Copy>(
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
